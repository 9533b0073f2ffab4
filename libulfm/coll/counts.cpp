#include "coll/counts.hpp"

#include <fmt/core.h>

namespace ulfm::coll {

namespace {
constexpr std::array<const char*, ULFM_COLL_KINDS> kKinds{
    "barrier",   "bcast",   "reduce",   "allreduce", "reduce_scatter", "scan",     "exscan",    "gather",
    "allgather", "scatter", "alltoall", "gatherv",   "allgatherv",     "scatterv", "alltoallv", "neighbors"};
constexpr std::array<const char*, ULFM_COLL_WAYS> kWays{
    "through shared memory",          "by messages, a communicator's first",
    "by messages, no shared segment", "by messages, for their operation or type",
    "by messages, for their size",    "by messages, which run ahead",
    "by multicast in the network",    "by messages, without multicast",
    "by messages, persistent"};
}  // namespace

std::string Counts::text(const std::string& who) const {
  std::string text;
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    std::string kinds;
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
      if (const std::uint64_t n = counts_[way][kind]; n != 0)
        kinds += fmt::format("{} {} {}", kinds.empty() ? "" : ",", kKinds[kind], n);
    if (!kinds.empty()) text += fmt::format("ulfm: stats {} collectives {}:{}\n", who, kWays[way], kinds);
  }
  return text;
}

}  // namespace ulfm::coll
