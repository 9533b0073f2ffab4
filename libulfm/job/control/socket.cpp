#include "job/control/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/core.h>

#include "job/abstract_name.hpp"

namespace ulfm::control {
namespace {

constexpr int kBacklog =
    1024;  // the kernel has its own limit; true peers wait there while unauthenticated peers are served
constexpr int kKeepAliveIdle = 15, kKeepAliveEvery = 5, kKeepAliveTries = 3;  // seconds, seconds, times
constexpr int kUserTimeout = 30000;                                           // ms that sent bytes may stay unanswered

int make_socket(SocketKind kind) {
  return socket(kind == SocketKind::tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

sockaddr_in tcp_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  in.sin_port = htons(port);
  return in;
}

Result<void> bind_tcp(const Fd& fd, EndpointKey& key) {
  key.address = INADDR_LOOPBACK;
  sockaddr_in in = tcp_address(key.address, 0);
  socklen_t length = sizeof in;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&in), length) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&in), &length) != 0)
    return fail_errno("control channel: binding to the loopback interface (ULFM_CONTROL=unix needs none)");
  key.port = ntohs(in.sin_port);
  return {};
}

Result<void> bind_unix(const Fd& fd, EndpointKey& key) {
  if (!bind_anywhere(fd.get(), key.name)) return fail_errno("control channel: binding a Unix-domain socket");
  return {};
}

}  // namespace

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = above_standard_streams(fd);
}

Result<Fd> listen_at(EndpointKey& key) {
  Fd fd(make_socket(key.kind));
  if (!fd) return fail_errno("control channel: making a socket");
  if (auto ok = key.kind == SocketKind::tcp ? bind_tcp(fd, key) : bind_unix(fd, key); !ok) return fail(ok.error());
  if (listen(fd.get(), kBacklog) != 0) return fail_errno("control channel: listening");
  return fd;
}

Result<Fd> begin_connect(const EndpointKey& key) {
  Fd fd(make_socket(key.kind));
  if (!fd) return fail_errno("control channel: making a socket");
  int rc = 0;
  if (key.kind == SocketKind::tcp) {
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // as in transport/tcp/connections.cpp
    const sockaddr_in in = tcp_address(key.address, key.port);
    rc = connect(fd.get(), reinterpret_cast<const sockaddr*>(&in), sizeof in);
  } else {
    const AbstractName name(key.name);
    rc = connect(fd.get(), name.get(), name.length());
  }
  if (rc == 0 || errno == EINPROGRESS) return fd;
  if (errno == EAGAIN) return fail(Errc::full, "the listener has no room now");
  if (errno == ECONNREFUSED)
    return fail(Errc::peer_failed, "nobody listens at the address of its control channel any more");
  return fail_errno("connecting to its control channel");
}

int outcome(const Fd& socket) noexcept {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

// Binding succeeds without it; connecting does not. Nothing is sent.
bool has_loopback() noexcept {
  const Fd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in in = tcp_address(INADDR_LOOPBACK, 9);
  return probe && connect(probe.get(), reinterpret_cast<const sockaddr*>(&in), sizeof in) == 0;
}

void set_option(int socket, int level, int option, int value) noexcept {
  (void)setsockopt(socket, level, option, &value, sizeof value);
}

void tune(const Fd& socket, SocketKind kind) noexcept {
  if (kind != SocketKind::tcp) return;
  const auto set = [&](int level, int option, int value) { set_option(socket.get(), level, option, value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdle);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveEvery);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveTries);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeout);
}

pid_t pid_of_peer(const Fd& socket) noexcept {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
}

bool is_same_user(const Fd& socket, SocketKind kind) noexcept {
  if (kind == SocketKind::tcp) return true;
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

std::string place_of_peer(const Fd& socket, SocketKind kind) {
  if (kind == SocketKind::unix_socket) return "a Unix-domain socket";
  sockaddr_in in{};
  socklen_t length = sizeof in;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&in), &length) != 0) return "a process that has gone";
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  return fmt::format("{}:{}", text, ntohs(in.sin_port));
}

}  // namespace ulfm::control
