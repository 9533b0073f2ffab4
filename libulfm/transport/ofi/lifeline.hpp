// A connection whose other host has gone has to end. TCP tells that by itself when it is asked to: it probes an idle
// connection, and gives one up that acknowledges nothing. A process that is stopped, by a debugger perhaps, still has a
// kernel that answers, so it is not given up.
//
// libfabric keeps its sockets to itself: they are looked for among the descriptors of this process, by their addresses.
#pragma once

#include <chrono>

#include "transport/ofi/socket_address.hpp"

namespace ulfm::ofi {

/// Has the socket with these two ends given up after `give_up` without an answer. False when there is none, as with
/// hardware that is no TCP.
bool limit_silence(const SocketAddress& own, const SocketAddress& peer, std::chrono::milliseconds give_up) noexcept;

/// The kernel of the other host has accepted a connection to `peer`: it is the process there that has not answered yet.
bool is_host_answering(const SocketAddress& peer) noexcept;

}  // namespace ulfm::ofi
