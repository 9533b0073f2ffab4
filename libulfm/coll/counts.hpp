// Which collectives went through the segment, and why others did not; for ULFM_STATS.
#pragma once

#include <ulfm/netmod.h>

#include <array>
#include <cstdint>
#include <string>

namespace ulfm::coll {

/// Counters of one process. One thread at a time.
class Counts {
 public:
  void count(int kind, int way) noexcept { ++counts_[static_cast<std::size_t>(way)][static_cast<std::size_t>(kind)]; }
  /// A line for each way that was taken, each beginning with "ulfm: stats " and `who`; empty when there was nothing.
  std::string text(const std::string& who) const;

 private:
  std::array<std::array<std::uint64_t, ULFM_COLL_KINDS>, ULFM_COLL_WAYS> counts_{};
};

}  // namespace ulfm::coll
