// From settings to a transport that can be used: the transport itself, faults around it, reliability around both.
#pragma once

#include "proto/reliable/settings.hpp"
#include "transport/contract.hpp"

namespace ulfm {

/// The protocol's settings: ULFM_WINDOW, ULFM_GIVE_UP, ULFM_FRAME, and the clock of the job.
reliable::ReliableSettings protocol_settings(const Config& config);

/// A transport and what it can do, decorators included.
struct TransportStack {
  std::unique_ptr<Transport> transport;
  std::string name;  ///< "direct", "direct+faults+protocol"
  bool reliable = false, ordered = false;
};

/// Makes what ULFM_FAULT, ULFM_PROTOCOL and the transport's nature ask for. Without faults a reliable transport comes
/// as it is, with nothing around it. `rank` is this process's place in the job: fates of frames are drawn by it.
/// Errors: the transport's own; Errc::invalid for a fault expression that does not parse, or for scheduled events and a
/// transport without links.
Result<TransportStack> make_stack(const Config& config, const TransportDescriptor& descriptor, int rank);

/// Closes the control channel and says what went over it, as the lines ULFM_STATS=1 prints; "" without one. Only a
/// closed one has counted all: connections may still be made when the last message has been sent.
std::string close_control(const std::string& who, Transport& transport);

/// The counts of a stack as the line ULFM_STATS=1 prints; "" when it counts nothing.
std::string stack_statistics_text(const std::string& who, const Transport& transport);

}  // namespace ulfm
