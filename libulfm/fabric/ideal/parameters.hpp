// The numbers of LogGP, and whether they can work.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace ulfm::fabric::ideal {

/// In cycles (Alexandrov, Ionescu, Schauser and Scheiman, LogGP: Incorporating Long Messages into the LogP Model, 1995;
/// Culler et al., LogP, 1993). A message of k bytes is there o + (k - 1) G + L + o cycles after its node began with it;
/// the node begins with the next one max(o, (k - 1) G + g) cycles after this one. Nothing else is in anybody's way.
struct Parameters {
  std::uint32_t latency = 16;  ///< L: of a byte's way, whatever the distance
  std::uint32_t overhead = 4;  ///< o: a processor's work to send a message, and to take it
  std::uint32_t gap = 4;       ///< g: between the last byte of a message and the first of the next
  std::uint32_t byte = 1;      ///< G: between the bytes of a message
};

inline constexpr std::uint32_t kMostCycles = 1u << 20;  ///< each of them
inline constexpr std::uint32_t kMostBytes = 1u << 30;   ///< of a message

/// Cycles from the first in which the sender works on a message to that in which the receiver has it, both counted.
constexpr std::uint64_t transit(const Parameters& p, std::uint32_t bytes) noexcept {
  const std::uint64_t behind = bytes == 0 ? 0 : bytes - 1;
  return 2 * std::uint64_t{p.overhead} + behind * p.byte + p.latency;
}
/// Cycles from one message of a node to its next, at least.
constexpr std::uint64_t spacing(const Parameters& p, std::uint32_t bytes) noexcept {
  const std::uint64_t behind = bytes == 0 ? 0 : bytes - 1, sent = behind * p.byte + p.gap;
  return sent > p.overhead ? sent : p.overhead;
}

/// Errc::invalid when a message would take no time.
Result<void> check(const Parameters& parameters);

}  // namespace ulfm::fabric::ideal
