// Events as the Trace Event Format (JSON), which Perfetto and chrome://tracing open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/job_record.hpp"

namespace ulfm::trace {

/// A process in a trace. `number` stands in its events.
struct TracedProcess {
  int number;
  std::string name;  ///< "rank 3 hello"
  pid_t pid;
  int order;  ///< among the others, from above
};

/// What the trace knows of an event from elsewhere.
struct EventContext {
  int peer_rank = -1;      ///< -1: nobody knows
  std::uint64_t flow = 0;  ///< joins the send of a frame with its arrival; 0: the other end is not in the trace
};

inline constexpr std::string_view kTraceEnd = "\n]}\n";

/// The beginning of the file.
std::string trace_head(std::uint64_t events, std::uint64_t lost);
/// What is said of a process before its events.
std::string trace_process(const TracedProcess& process);
/// An event, and the arrow that begins or ends at it.
std::string trace_event(int process, const record::RecordedEvent& event, const EventContext& context);

}  // namespace ulfm::trace
