// What is to go wrong: the expressions of ULFM_FAULT.
//
//   drop=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-2,delay=1e-3:200us,seed=42
//   link 2-3 down at 5s for 2s; switch 4 dead at 10s; node 3 dead at 4s
//
// Parts are separated by `,` or `;`. Rates are probabilities of one frame; moments count from the start of the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace ulfm {

/// Something of an emulated interconnect that fails at a moment.
struct FaultEvent {
  enum class Kind : std::uint8_t { link_down, switch_dead, node_dead };
  Kind kind = Kind::link_down;
  std::uint32_t from = 0;  ///< the switch or node; for a link the switch at one end
  std::uint32_t to = 0;    ///< link: the switch at the other end
  std::chrono::nanoseconds at{0};
  std::chrono::nanoseconds lasts{0};  ///< 0: for good
  friend bool operator==(const FaultEvent&, const FaultEvent&) = default;
};

struct FaultPlan {
  double drop = 0, corrupt = 0, duplicate = 0, reorder = 0, delay = 0;  ///< 0 to 1, of each frame
  std::chrono::nanoseconds delay_by{std::chrono::microseconds(100)};
  std::uint64_t seed = 1;
  std::vector<FaultEvent> events;

  /// Some frame may be treated badly.
  bool has_rates() const noexcept { return drop + corrupt + duplicate + reorder + delay > 0; }
};

/// Reads an expression; an empty one is a plan of nothing. Errc::invalid names the column, what was needed, what was
/// found, and gives an example.
Result<FaultPlan> parse_fault_plan(std::string_view text);

}  // namespace ulfm
