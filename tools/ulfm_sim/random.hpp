// A random number generator that gives the same numbers everywhere.
#pragma once

#include <cmath>
#include <cstdint>

namespace sim {

/// SplitMix64 (Steele, Lea and Flood 2014): one stream for each seed and stream number.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed * 0x9e3779b97f4a7c15u + 1) ^ mix(stream + 1)) {}

  std::uint64_t next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15u); }
  /// 0 to `bound` - 1; `bound` is not 0.
  std::uint32_t below(std::uint32_t bound) noexcept { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }
  /// 0 < u <= 1.
  double unit() noexcept { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }
  /// Trials up to the first success, at least 1; each succeeds with probability `p`, 0 < p <= 1.
  std::uint64_t geometric(double p) noexcept { return p >= 1 ? 1 : geometric_by(std::log1p(-p)); }
  /// The same; `miss` is the logarithm of 1 - `p`.
  std::uint64_t geometric_by(double miss) noexcept {
    const double trials = std::ceil(std::log(unit()) / miss);
    return trials < 1 ? 1 : trials > 0x1p62 ? std::uint64_t{1} << 62 : static_cast<std::uint64_t>(trials);
  }

 private:
  static std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }
  std::uint64_t state_;
};

}  // namespace sim
