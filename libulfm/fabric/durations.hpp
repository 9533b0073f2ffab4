// How long everything takes on an emulated interconnect, for jobs in virtual time (ulfm-time(7)).
#pragma once

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

/// Options of every model that say how long something takes; they mean nothing without virtual time.
inline constexpr std::array<Options::Row, 15> kDurationRows{{
    {"preset", 0, 0, "thgbnet|thnpc2|ipsc2|pointdesign|loggp|gen2|gen1|gen3|ipsc1"},
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

/// Those of a model with these options. Errc::invalid when a preset is another model's.
Result<Durations> durations_of(std::string_view model, std::string_view options);

}  // namespace ulfm::fabric
