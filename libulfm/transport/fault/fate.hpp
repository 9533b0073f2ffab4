// What happens to one frame, drawn from a seeded generator.
#pragma once

#include <cstdint>

#include "base/fault_plan.hpp"

namespace ulfm::fault {

/// splitmix64 (Steele, Lea and Flood 2014): every seed is a good one, and any part of the state is the whole of it.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// 0 .. n - 1; n is small against 2^64, so that the bias does not matter.
  std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
  /// True with that probability.
  bool chance(double p) noexcept { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

 private:
  std::uint64_t state_;
};

struct Fate {
  bool drop = false, corrupt = false, duplicate = false, reorder = false, delay = false;
  std::uint32_t bits = 0;     ///< to turn, 1 to 4
  std::uint32_t behind = 0;   ///< later frames that go first, 1 to 8
  std::uint64_t entropy = 0;  ///< which bits
};

/// The fates of one connection's frames, in order.
class FateSource {
 public:
  FateSource(const FaultPlan& plan, std::uint64_t rank, std::uint64_t connection) noexcept
      : plan_(plan), random_(Random(Random(Random(plan.seed).next() + rank).next() + connection).next()) {}

  /// Takes the same numbers from the generator whatever the rates, so that one rate does not change what another does.
  Fate draw() noexcept {
    Fate fate;
    fate.drop = random_.chance(plan_.drop);
    fate.corrupt = random_.chance(plan_.corrupt);
    fate.duplicate = random_.chance(plan_.duplicate);
    fate.reorder = random_.chance(plan_.reorder);
    fate.delay = random_.chance(plan_.delay);
    fate.entropy = random_.next();
    fate.bits = 1 + static_cast<std::uint32_t>(random_.below(4));
    fate.behind = 1 + static_cast<std::uint32_t>(random_.below(8));
    return fate;
  }

 private:
  FaultPlan plan_;
  Random random_;
};

}  // namespace ulfm::fault
