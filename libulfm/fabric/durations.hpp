// How long everything takes on an emulated interconnect, for jobs in virtual time (ulfm-time(7)).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "fabric/options.hpp"

namespace ulfm::fabric {

/// Picoseconds. What is said "a byte" counts header and data of a frame.
struct Durations {
  std::uint64_t cycle = 0;         ///< of the model: a unit on a link, a clock of a router, a byte on a lane
  std::uint64_t send = 0;          ///< software of a message that is sent
  std::uint64_t send_byte = 0;     ///< and its copying, a byte
  std::uint64_t receive = 0;       ///< software of a message that is taken
  std::uint64_t receive_byte = 0;  ///< and its copying, a byte
  std::uint64_t card = 0;          ///< the card has a frame for so long, at either end
  std::uint64_t card_byte = 0;     ///< and moves it to or from memory, a byte
  std::uint64_t local = 0;         ///< a message to a process of the same node
  std::uint64_t local_byte = 0;
  std::uint64_t look = 0;                             ///< a look that finds nothing, and a question for the time
  std::uint64_t system_send = 0, system_receive = 0;  ///< software of a message that the system itself sends, takes
  /// Store and forward, on a cube: a node on the way has a frame for so long, and so much longer a byte; 0: never.
  std::uint64_t forward = 0, forward_byte = 0;
};

/// The times of a machine in the units of ulfm-time(7). What is 0 takes no time, but for `system_ns`.
struct Times {
  std::uint64_t cycle_ps = 0;
  std::uint64_t send_ns = 0, receive_ns = 0;  ///< software of a message
  std::uint64_t system_ns = 0;                ///< of a system's own message, at either end; 0: as of any other
  std::uint64_t card_ns = 0, card_byte_ps = 0;
  std::uint64_t local_ns = 0, local_byte_ps = 0;
  std::uint64_t look_ns = 0;
  std::uint64_t forward_ns = 0;
};

inline constexpr std::uint64_t kPicosecondsPerNanosecond = 1000;

/// A machine that a model's option "preset" names.
struct Preset {
  const char* name;
  Times times;
};

/// The options of every model that has presets. They mean nothing without virtual time. "preset" itself is not in the
/// table, because each model has presets of its own.
inline constexpr std::array<Options::Row, 14> kDurationRows{{
    {"cycle_ps", 1, 1'000'000'000},
    {"send_ns", 0, 1'000'000'000},
    {"send_byte_ps", 0, 1'000'000'000},
    {"receive_ns", 0, 1'000'000'000},
    {"receive_byte_ps", 0, 1'000'000'000},
    {"card_ns", 0, 1'000'000'000},
    {"card_byte_ps", 0, 1'000'000'000},
    {"local_ns", 0, 1'000'000'000},
    {"local_byte_ps", 0, 1'000'000'000},
    {"look_ns", 1, 1'000'000'000},
    {"system_send_ns", 0, 1'000'000'000},
    {"system_receive_ns", 0, 1'000'000'000},
    {"forward_ns", 0, 1'000'000'000},
    {"forward_byte_ps", 0, 1'000'000'000},
}};

/// Chooses one of the presets of a model.
inline constexpr const char* kPresetOption = "preset";

/// Whether a model's option means nothing without virtual time.
constexpr bool is_duration(std::string_view option) {
  return option == kPresetOption ||
         std::ranges::any_of(kDurationRows, [&](const auto& row) { return option == row.name; });
}

struct ModelKind;

/// The durations of a model whose options read_options() has accepted. Errc::invalid when the model has none, or when
/// an option does not go with it.
Result<Durations> durations_of(const ModelKind& kind, std::string_view options);

}  // namespace ulfm::fabric
