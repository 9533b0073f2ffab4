// A connection whose other host has gone has to end. TCP tells that by itself when it is asked to: it probes an idle
// connection, and gives one up that acknowledges nothing. A process that is stopped, by a debugger perhaps, still has a
// kernel that answers, so it is not given up.
#pragma once

#include <netinet/in.h>

#include <chrono>

namespace ulfm::ofi {

/// Has the socket with these two ends given up after `give_up` without an answer. libfabric keeps its sockets to
/// itself, so it is looked for among the descriptors of this process. False when there is none, as with hardware that
/// is no TCP.
bool limit_silence(const sockaddr_in& own, const sockaddr_in& peer, std::chrono::milliseconds give_up) noexcept;

}  // namespace ulfm::ofi
