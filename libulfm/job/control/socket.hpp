// Sockets of the control channel: non-blocking, closed on exec.
#pragma once

#include <chrono>
#include <utility>

#include "base/standard_streams.hpp"
#include "job/control/key.hpp"

namespace ulfm::control {

/// Owns a descriptor, which is none of the standard streams.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(above_standard_streams(fd)) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Listens: tcp at the loopback interface, which is what reaches the peers of one host; unix under a name of the
/// abstract name space that the kernel chooses, so nothing is left in a file system. Sets the key's place.
Result<Fd> listen_at(EndpointKey& key);

/// Begins to connect; the socket becomes writable when it is through. Errc::peer_failed when nobody listens there,
/// Errc::full when the listener has no room now.
Result<Fd> begin_connect(const EndpointKey& key);
/// What became of it: 0 or an errno.
int outcome(const Fd& socket) noexcept;

/// What the kernel refuses is left as it is: the connection works without.
void set_option(int socket, int level, int option, int value) noexcept;

/// TCP reaches the peers of this host. In a network namespace of its own a process may have no loopback that is up.
bool has_loopback() noexcept;

/// Settings of a connection: no delay, and the kernel's own keep-alive, so that a host that is gone is found out
/// without waking an idle process.
void tune(const Fd& socket, SocketKind kind) noexcept;

/// The process that made the other end of a Unix-domain socket, as the kernel knows it; 0 when it does not.
pid_t pid_of_peer(const Fd& socket) noexcept;

/// unix: the process at the other end is the same user's. Always true for tcp.
bool is_same_user(const Fd& socket, SocketKind kind) noexcept;

/// "127.0.0.1:41234", or "a Unix-domain socket".
std::string place_of_peer(const Fd& socket, SocketKind kind);

}  // namespace ulfm::control
