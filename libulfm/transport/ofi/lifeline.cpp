#include "transport/ofi/lifeline.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "transport/hosts/greeting.hpp"
#include "transport/hosts/silence.hpp"

namespace ulfm::ofi {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 1000ms;  // for unauthenticated peers

using Ask = int (*)(int, sockaddr*, socklen_t*);

bool is_at(Ask ask, int fd, const SocketAddress& wanted) noexcept {
  SocketAddress found;
  socklen_t length = SocketAddress::room();
  return ask(fd, found.get(), &length) == 0 && found.ip() && found == wanted;
}

// Somebody has connected to that port of this process. `peer` is who.
bool is_connected_to(std::uint16_t port, int fd, SocketAddress& peer) noexcept {
  SocketAddress own;
  socklen_t own_length = SocketAddress::room(), peer_length = SocketAddress::room();
  return getsockname(fd, own.get(), &own_length) == 0 && own.ip() && own.port() == port &&
         getpeername(fd, peer.get(), &peer_length) == 0;
}

// The list of the descriptors needs one, too. Where there is none left, most numbers are descriptors.
template <typename Found>
bool any_number(Found found) {
  constexpr rlim_t kMost = 1 << 16;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = kMost;
  for (int fd = 0; fd < static_cast<int>(std::min(limit.rlim_cur, kMost)); ++fd)
    if (found(fd)) return true;
  return false;
}

// Calls `found` with each descriptor, and perhaps with numbers that are none, until one is what was looked for.
template <typename Found>
bool any_descriptor(Found found) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (!folder) return any_number(found);
  while (const dirent* entry = readdir(folder.get())) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(folder.get()) && found(fd)) return true;
  }
  return false;
}

}  // namespace

void Lifeline::find(const SocketAddress& own, const SocketAddress& peer, std::chrono::milliseconds give_up) noexcept {
  own_ = own;
  peer_ = peer;
  (void)any_descriptor([&](int fd) {
    socket_ = fd;
    return is_there();
  });
  if (!is_there()) return;
  // Libfabric does not ask for it, and a program that this one starts would keep the connection up after its end.
  (void)fcntl(socket_, F_SETFD, FD_CLOEXEC);
  hosts::ask_for_life(socket_, give_up, hosts::more_probes(give_up));
}

bool Lifeline::is_there() const noexcept {
  return is_at(getpeername, socket_, peer_) && is_at(getsockname, socket_, own_);
}

bool Lifeline::is_silent(std::chrono::milliseconds give_up) const noexcept {
  return is_there() && hosts::is_silent(socket_, give_up);
}

void Lifeline::cut() const noexcept {
  if (is_there()) (void)shutdown(socket_, SHUT_RDWR);
}

void Lifeline::leave() const noexcept {
  if (is_there()) (void)close(socket_);
}

namespace {

template <typename Do>
void for_each_socket_at(std::uint16_t port, Do what) noexcept {
  (void)any_descriptor([&](int fd) {
    SocketAddress own;
    socklen_t length = SocketAddress::room();
    const bool is_known = getsockname(fd, own.get(), &length) == 0 &&
                          (own.get()->sa_family == AF_INET || own.get()->sa_family == AF_INET6);
    if (is_known && own.port() == port) what(fd);
    return false;
  });
}

}  // namespace

void leave_sockets_at(std::uint16_t port) noexcept {
  for_each_socket_at(port, [](int fd) { (void)close(fd); });
}

void close_on_exec_at(std::uint16_t port) noexcept {
  for_each_socket_at(port, [](int fd) { (void)fcntl(fd, F_SETFD, FD_CLOEXEC); });
}

// Without memory for names, in the next turn.
std::size_t UnauthenticatedPeers::end_some(std::uint16_t port, const std::set<std::string>& known,
                                           Clock::time_point now) noexcept try {
  std::map<std::string, Clock::time_point> here;
  std::size_t ended = 0;
  (void)any_descriptor([&](int fd) {
    SocketAddress peer;
    if (!is_connected_to(port, fd, peer)) return false;
    const std::string name = peer.text();
    if (known.count(name) != 0) return false;
    const auto seen = first_seen_.find(name);
    const auto since = seen == first_seen_.end() ? now : seen->second;
    const auto patience =
        first_seen_.size() > hosts::kManyUnauthenticated ? hosts::kProveWithinOfMany : hosts::kProveWithin;
    if (now - since >= patience) {
      (void)shutdown(fd, SHUT_RDWR);  // libfabric takes it for a peer that has gone
      ++ended;
    } else {
      here.emplace(name, since);
    }
    return false;
  });
  first_seen_ = std::move(here);
  next_look_ = now + (first_seen_.size() > hosts::kManyUnauthenticated ? hosts::kProveWithinOfMany : kLookEvery);
  return ended;
} catch (const std::bad_alloc&) {
  return 0;
}

std::size_t UnauthenticatedPeers::count(std::uint16_t port, const std::set<std::string>& known) {
  std::size_t there = 0;
  (void)any_descriptor([&](int fd) {
    SocketAddress peer;
    there += is_connected_to(port, fd, peer) && known.count(peer.text()) == 0 ? 1 : 0;
    return false;
  });
  return there;
}

Accepting::Accepting(std::size_t listeners) noexcept {
  const std::span some = std::span(next_).first(std::min(listeners, next_.size()));
  for (int& one : some) one = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  for (const int one : some)
    if (one >= 0) (void)close(one);
}

std::size_t Accepting::count(std::uint16_t port) const noexcept {
  SocketAddress peer;
  return static_cast<std::size_t>(
      std::count_if(next_.begin(), next_.end(), [&](int fd) { return fd >= 0 && is_connected_to(port, fd, peer); }));
}

bool is_host_answering(const SocketAddress& peer) noexcept {
  // A socket that is still connecting has no peer.
  return any_descriptor([&](int fd) { return is_at(getpeername, fd, peer); });
}

}  // namespace ulfm::ofi
