// What a sleep on libfabric's descriptors is woken by when nothing has come.
//
// Beside the connections, such a descriptor (an epoll set) has a socket of libfabric's own, into which it writes a byte
// with a completion or an event, for threads that sleep in its calls. fi_trywait() of provider net in 1.17 does not
// take that byte out, so after the first completion no sleep would last. It writes none as long as it believes that one
// is there: taking the byte out, which is done once, leaves sleeps to what really comes. Libfabric keeps the socket to
// itself; the kernel tells which descriptors a set has.
#pragma once

namespace ulfm::ofi {

/// Takes such a byte out of what the epoll set waits on itself. True when there was one.
bool take_signal(int epoll_set) noexcept;

}  // namespace ulfm::ofi
