// Fault expressions: any text is a plan with sane numbers or an error that points into the text.
#include "base/fault_plan.hpp"
#include "fuzz.hpp"

using namespace ulfm;

std::vector<std::string> fuzz_seeds() {
  return {"drop=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-2,delay=1e-3:200us,seed=42",
          "link 2-3 down at 5s for 2s; switch 4 dead at 10s; node 3 dead at 4s",
          " drop = 1 ;; delay=0.5:1e3ms,seed=18446744073709551615", "link 0 - 4294967295 down at 0ns for 1ns",
          "drop=0x1p-3,corrupt=inf,seed=-0"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto plan = parse_fault_plan(text);
  if (!plan) {
    const std::string& what = plan.error().what;
    must(what.size() < 500, "an error is a sentence");
    // It quotes the text, which may speak of columns itself.
    bool found = false;
    for (std::size_t at = what.find("column "); at != std::string::npos; at = what.find("column ", at + 1)) {
      const unsigned long column = std::strtoul(what.c_str() + at + 7, nullptr, 10);
      found = found || (column >= 1 && column <= size + 1);
    }
    must(found, "an error has a column that lies in the text");
    return 0;
  }
  for (const double rate : {plan->drop, plan->corrupt, plan->duplicate, plan->reorder, plan->delay})
    must(rate >= 0 && rate <= 1, "a rate is a probability");
  must(plan->delay_by.count() >= 0, "a delay is not negative");
  for (const FaultEvent& event : plan->events) {
    must(event.at.count() >= 0 && event.lasts.count() >= 0, "time does not run back");
    must(event.kind != FaultEvent::Kind::link_down || event.from != event.to, "a link has two ends");
  }
  return 0;
}
