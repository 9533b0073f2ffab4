#include "base/fault_plan.hpp"

#include "property.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

FaultPlan plan_of(const std::string& text) {
  auto plan = parse_fault_plan(text);
  INFO((plan ? std::string() : plan.error().what));
  REQUIRE(plan);
  return *plan;
}

void refused(const std::string& text, std::size_t column, const std::string& needed, const std::string& found) {
  INFO(text);
  const auto plan = parse_fault_plan(text);
  REQUIRE_FALSE(plan);
  INFO(plan.error().what);
  CHECK(plan.error().code == Errc::invalid);
  CHECK(plan.error().what.find("column " + std::to_string(column) + ":") != std::string::npos);
  CHECK(plan.error().what.find("needs " + needed) != std::string::npos);
  CHECK(plan.error().what.find("found " + found) != std::string::npos);
  CHECK(plan.error().what.find("for example") != std::string::npos);
}

}  // namespace

TEST_CASE("rates, a seed and scheduled events", "[fault]") {
  const FaultPlan plan = plan_of("drop=1e-3,corrupt=1e-4,duplicate=0.5,reorder=1e-2,delay=1e-3:200us,seed=42");
  CHECK(plan.drop == 1e-3);
  CHECK(plan.corrupt == 1e-4);
  CHECK(plan.duplicate == 0.5);
  CHECK(plan.reorder == 1e-2);
  CHECK(plan.delay == 1e-3);
  CHECK(plan.delay_by == 200us);
  CHECK(plan.seed == 42);
  CHECK(plan.has_rates());
  CHECK(plan.events.empty());

  const FaultPlan later = plan_of("link 2-3 down at 5s for 2s; switch 4 dead at 10s, node 3 dead at 500ms");
  CHECK_FALSE(later.has_rates());
  REQUIRE(later.events.size() == 3);
  CHECK(later.events[0] == FaultEvent{FaultEvent::Kind::link_down, 2, 3, 5s, 2s});
  CHECK(later.events[1] == FaultEvent{FaultEvent::Kind::switch_dead, 4, 0, 10s, 0s});
  CHECK(later.events[2] == FaultEvent{FaultEvent::Kind::node_dead, 3, 0, 500ms, 0s});
}

TEST_CASE("blanks and empty parts do not matter; nothing is a plan of nothing", "[fault]") {
  CHECK(plan_of(" drop = 1 ;; seed=7 , ").drop == 1);
  CHECK(plan_of("link 0 - 1 down at 0ns").events.at(0).lasts == 0s);
  CHECK_FALSE(plan_of("").has_rates());
  CHECK_FALSE(plan_of(" ,;").has_rates());
  CHECK(plan_of("delay=0.1").delay_by == 100us);
}

TEST_CASE("an error points at its column and says what to write", "[fault]") {
  refused("drop=2", 6, "a probability", "\"2\"");
  refused("drop=-1e-3", 6, "a probability", "\"-1e-3\"");
  refused("drop=nan", 6, "a probability", "\"nan\"");
  refused("drop=", 6, "a probability", "the end");
  refused("drop", 5, "\"=\" behind drop", "the end");
  refused("drop=1e-3 corrupt=1", 11, "\",\"", "\"corrupt=1\"");
  refused("seed=1,dorp=1", 8, "drop, corrupt", "\"dorp=1\"");
  refused("delay=1e-3:200", 15, "ns, us, ms or s", "the end");
  refused("delay=1e-3:5h", 13, "ns, us, ms or s", "\"h\"");
  refused("seed=-1", 6, "a whole number", "\"-1\"");
  refused("seed=99999999999999999999", 6, "a whole number", "\"99999999999999999999\"");
  refused("link 2 down at 5s", 8, "\"-\" between two switches", "\"down at 5s\"");
  refused("link 2-2 down at 5s", 8, "another switch", "\"2 down at 5s\"");
  refused("link 2-3 dead at 5s", 10, "\"down\"", "\"dead at 5s\"");
  refused("link 2-3 down at 5s for 0s", 24, "a time above 0", "\" 0s\"");
  refused("switch x dead at 1s", 8, "the number of a switch", "\"x dead at 1s\"");
  refused("node 1 dead at 1e99s", 16, "a moment from 0", "\"1e99s\"");
  refused("\xff\xff", 1, "drop, corrupt", "\"\xff\xff\"");
  CHECK(parse_fault_plan(std::string(100000, 'x')).error().what.size() < 400);
}

TEST_CASE("the nearest word is the example", "[fault]") {
  CHECK(parse_fault_plan("dorp=1").error().what.find("drop=1e-3") != std::string::npos);
  CHECK(parse_fault_plan("swich 4 dead at 1s").error().what.find("switch 4 dead") != std::string::npos);
}

TEST_CASE("any text is a plan with sane numbers, or an error with a column", "[fault]") {
  static const char* const kPieces[] = {"drop",  "=",    "1e-3",      ",",         ";",     "link ", "2",
                                        "-",     "3",    " down at ", "5s",        " for ", "delay", ":",
                                        "200us", "seed", "switch ",   " dead at ", "node ", "x"};
  test::property("pieces", [](test::Draw& draw) {
    std::string text;
    while (draw.more() && text.size() < 300) text += kPieces[draw.below(std::size(kPieces))];
    const auto plan = parse_fault_plan(text);
    if (!plan) {
      test::must(plan.error().what.find("column ") != std::string::npos, plan.error().what);
      return;
    }
    for (const double rate : {plan->drop, plan->corrupt, plan->duplicate, plan->reorder, plan->delay})
      test::must(rate >= 0 && rate <= 1, text);
    for (const FaultEvent& event : plan->events) test::must(event.at >= 0s && event.lasts >= 0s, text);
  });
}
