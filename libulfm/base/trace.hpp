// A trace of what goes over the control channel and over the transport, one event a packet or frame, kept in memory and
// written when the process ends. Off, it costs one branch where control packets pass, and nothing where data do.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace ulfm::trace {

enum class Channel : std::uint8_t { control, data };
enum class Way : std::uint8_t { sent, arrived };

struct Event {
  const char* name;  ///< of static duration
  Channel channel;
  Way way;
  const char* carrier;  ///< transport, or kind of control connection; of static duration
  std::uint32_t peer;   ///< its pid
  std::uint64_t bytes;
};

/// Events that are kept; of more, the last ones.
inline constexpr std::size_t kMostEvents = 1u << 18;

/// Is there a trace? Changes only in begin().
bool on() noexcept;
/// Notes an event that happens now. Any thread; nothing without a trace.
void note(const Event& event) noexcept;

/// From now on events are kept, 12 MB at most, and written to "FILE.RANK" when the process ends by exit(); by a process
/// that another one spawned to "FILE.RANK.PID", because its job counts ranks anew. Again: does nothing.
/// Errors: Errc::system when the file cannot be made, Errc::no_memory.
Result<void> begin(const std::string& file, int rank);

/// The events so far in the Trace Event Format (JSON), which Perfetto and chrome://tracing open. Times are microseconds
/// of CLOCK_MONOTONIC, which all processes of a host share.
std::string as_json();

}  // namespace ulfm::trace
