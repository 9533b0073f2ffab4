// What a job in virtual time has taken, for people and as JSON. Integers only: the same run gives the same text.
#include <fmt/format.h>

#include "fabric/engine/clock.hpp"

namespace ulfm::fabric {
namespace {

// Seconds with all their picoseconds.
std::string seconds(std::uint64_t picoseconds) {
  return fmt::format("{}.{:012}", picoseconds / 1'000'000'000'000, picoseconds % 1'000'000'000'000);
}

struct RankTime {
  std::uint32_t rank;
  std::uint64_t ended, computing, messages, waiting;
};

std::vector<RankTime> rank_times(const FabricArena& arena) {
  std::vector<RankTime> all;
  const std::uint32_t used = std::min(arena.header().endpoints_used.load(), arena.sizes().endpoints);
  for (std::uint32_t e = 0; e < used; ++e) {
    const ProcessClock& c = arena.clock(e);
    if (c.state.load() != ClockState::unused) all.push_back({e, c.now.load(), c.computing, c.messages, c.waiting});
  }
  return all;
}

std::uint64_t end_of(const std::vector<RankTime>& ranks) {
  std::uint64_t end = 0;
  for (const RankTime& rank : ranks) end = std::max(end, rank.ended);
  return end;
}

// Nothing when each rank made as many calls as its recording has; otherwise the first that did not.
std::string recording_mismatch(const FabricArena& arena) {
  for (const RankTime& r : rank_times(arena)) {
    const ProcessClock& c = arena.clock(r.rank);
    if (c.gaps_missed == 0 && c.gaps_left == 0) continue;
    const bool more = c.gaps_missed != 0;
    return fmt::format("ulfm: compute=recorded: {} made {} calls {} than were recorded{}; is it another program?\n",
                       arena.sizes().name_of(r.rank), more ? c.gaps_missed : c.gaps_left, more ? "more" : "fewer",
                       more ? ", and computing took no time there" : "");
  }
  return "";
}

double in_seconds(std::uint64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }

// A job that only starts and ends takes a picosecond or none; a ratio to that says nothing.
std::string slow_down(std::uint64_t picoseconds, double host_seconds) {
  constexpr std::uint64_t kShown = 1000;  // the last digit of what is printed
  if (picoseconds < kShown) return "no virtual time passed";
  return fmt::format("slow-down {:.3g}", host_seconds / in_seconds(picoseconds));
}

}  // namespace

std::string time_report(const FabricArena& arena, double host_seconds) {
  const std::vector<RankTime> ranks = rank_times(arena);
  std::string text = fmt::format("ulfm: virtual time {:.9f} s, host time {:.3f} s, {}\n", in_seconds(end_of(ranks)),
                                 host_seconds, slow_down(end_of(ranks), host_seconds));
  text += recording_mismatch(arena);
  const ArenaSizes& sizes = arena.sizes();
  for (const RankTime& r : ranks)
    text += fmt::format("ulfm: {}: ended at {:.9f} s, computing {:.9f} s, messages {:.9f} s, waiting {:.9f} s\n",
                        sizes.is_host(r.rank) ? "host" : fmt::format("rank {}", r.rank), in_seconds(r.ended),
                        in_seconds(r.computing), in_seconds(r.messages), in_seconds(r.waiting));
  return text;
}

std::string time_json(const FabricArena& arena, Model& model, double host_seconds) {
  const std::vector<RankTime> ranks = rank_times(arena);
  std::string text =
      fmt::format("{{\"virtual_s\":{},\"host_s\":{:.6f},\"ranks\":[", seconds(end_of(ranks)), host_seconds);
  const char* between = "\n";
  for (const RankTime& r : ranks) {
    text += fmt::format("{}{{\"rank\":{},\"compute_s\":{},\"send_s\":{},\"wait_s\":{}}}", between, r.rank,
                        seconds(r.computing), seconds(r.messages), seconds(r.waiting));
    between = ",\n";
  }
  text += "],\"links\":[";
  between = "\n";
  std::vector<LinkUse> links;
  if (ModelCycles* const cycles = model.cycles(); cycles != nullptr)
    links = cycles->links(arena.header().time.costs.cycle);
  for (const LinkUse& link : links) {
    text += fmt::format("{}{{\"from\":\"{}\",\"to\":\"{}\",\"busy_s\":{},\"wait_s\":{},\"bytes\":{}}}", between,
                        link.from, link.to, seconds(link.busy), seconds(link.wait), link.bytes);
    between = ",\n";
  }
  return fmt::format("{}]}}\n", text);
}

}  // namespace ulfm::fabric
