#include "fabric/topology/timeline.hpp"

#include "property.hpp"

using namespace ulfm;
using namespace ulfm::fabric;
using namespace std::chrono_literals;

namespace {

std::vector<FaultEvent> events(const std::string& text) { return parse_fault_plan(text).value().events; }

std::vector<TopologyChange> changes(const std::string& shape, const std::string& text) {
  return timeline(read_topology(shape).value(), events(text)).value();
}

}  // namespace

TEST_CASE("a link goes and comes back, with what is down in between", "[timeline]") {
  const auto all = changes("mesh:2x2", "link 1-0 down at 5s for 2s");
  REQUIRE(all.size() == 2);
  CHECK(all[0].at == 5'000'000'000u);
  CHECK_FALSE(all[0].up);
  CHECK(all[0].dead.size() == 1);
  CHECK(all[0].links.size() == 1);
  CHECK(all[1].at == 7'000'000'000u);
  CHECK(all[1].up);
  CHECK(all[1].links == all[0].links);
  CHECK(all[1].dead.empty());
}

TEST_CASE("changes come in the order of time", "[timeline]") {
  const auto all = changes("mesh:2x2", "switch 3 dead at 4s; link 0-1 down at 1s for 10s; node 2 dead at 2s");
  REQUIRE(all.size() == 4);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].at <= all[i].at);
  CHECK(all[2].dead_switch == 3);
  CHECK(all[3].up);
}

TEST_CASE("what two events have taken away is back when both are over", "[timeline]") {
  const auto all =
      changes("mesh:2x2", "link 0-1 down at 1s for 4s; link 1-0 down at 2s for 1s; link 0-1 down at 3s for 5s");
  REQUIRE(all.size() == 6);
  // 1 and 2 down, 3 up (but the first holds it) and down, 5 up (but the third holds it), 8 back
  for (const TopologyChange& change : all)
    if (change.up) CHECK(change.links.empty() == (change.at != 8'000'000'000u));
  CHECK(all.back().up);
  CHECK(all.back().dead.empty());
}

TEST_CASE("events that a topology does not have are refused with what it has", "[timeline]") {
  const auto why = [](const std::string& text) {
    const auto all = timeline(read_topology("mesh:2x2").value(), events(text));
    REQUIRE_FALSE(all);
    return all.error().what;
  };
  CHECK(why("link 0-3 down at 1s").find("switch 0 is linked with switch 1, 2") != std::string::npos);
  CHECK(why("link 0-9 down at 1s").find("switches 0 to 3") != std::string::npos);
  CHECK(why("switch 4 dead at 1s").find("switches 0 to 3") != std::string::npos);
  CHECK(why("node 4 dead at 1s").find("nodes 0 to 3") != std::string::npos);
}
