// A trace of what goes over the control channel and over the transport, and of waits. Off, it costs one branch where
// control packets pass or a wait ends, and nothing where data do.
//
// In a job of ulfmrun the events are noted in its memory, and it writes one file for the job (base/job_record.hpp).
// Elsewhere they are kept by the process and written when it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace ulfm::trace {

enum class Channel : std::uint8_t { control, data };
enum class Direction : std::uint8_t { sent, arrived };

struct Event {
  const char* name;  ///< of static duration, 17 letters at most
  Channel channel;
  Direction way;
  const char* carrier;  ///< transport, or kind of control connection; of static duration, 19 letters at most
  std::uint32_t peer;   ///< its pid
  std::uint64_t bytes;
  // Of data: by these the frame that was sent is found again where it arrived.
  std::uint16_t own_port = 0, peer_port = 0;
  std::uint64_t number = 0;  ///< of the frame on its connection, from 0
  std::uint64_t at = 0;      ///< now() when it began; 0: now
};

/// Nanoseconds of CLOCK_MONOTONIC; of virtual time in a process that has a clock of its own (base/virtual_time.hpp).
std::uint64_t now() noexcept;

/// Is there a trace? Changes only in begin().
bool on() noexcept;
/// Notes an event that happens now. Any thread; nothing without a trace.
void note(const Event& event) noexcept;
/// Notes a wait that has just ended. The same.
void note_wait(std::chrono::steady_clock::time_point began) noexcept;
/// One that began at that moment of virtual time (nanoseconds); the waits above are none there.
void note_virtual_wait(std::uint64_t began) noexcept;

/// From now on events are kept, record::kMostEvents at most: for ulfmrun, or else written to "FILE.RANK" when the
/// process ends by exit(); by a process that another one spawned to "FILE.RANK.PID", because its job counts ranks anew.
/// Again: does nothing. Errors: Errc::system when the file cannot be made, Errc::no_memory.
Result<void> begin(const std::string& file, int rank);

/// The events so far in the Trace Event Format (JSON), which Perfetto and chrome://tracing open. Times are microseconds
/// of now(), of which all processes of a host have the same.
std::string as_json();

}  // namespace ulfm::trace
