#include "transport/ofi/lifeline.hpp"

#include <dirent.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstdlib>

namespace ulfm::ofi {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kManyPeers = 64;
constexpr auto kPatience = 5000ms, kShortPatience = 100ms, kLookEvery = 1000ms;

using Ask = int (*)(int, sockaddr*, socklen_t*);

bool is_at(Ask ask, int fd, const SocketAddress& wanted) noexcept {
  SocketAddress found;
  socklen_t length = SocketAddress::room();
  return ask(fd, found.get(), &length) == 0 && found.ip() && found == wanted;
}

void set(int fd, int level, int option, int value) noexcept {
  (void)setsockopt(fd, level, option, &value, sizeof value);
}

// Calls `found` with each descriptor until one is what was looked for.
template <typename Found>
bool any_descriptor(Found found) noexcept {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return false;
  bool is_found = false;
  for (const dirent* entry = readdir(folder); entry != nullptr && !is_found; entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    is_found = entry->d_name[0] != '.' && fd != dirfd(folder) && found(fd);
  }
  closedir(folder);
  return is_found;
}

}  // namespace

bool limit_silence(const SocketAddress& own, const SocketAddress& peer, std::chrono::milliseconds give_up) noexcept {
  return any_descriptor([&](int fd) {
    if (!is_at(getpeername, fd, peer) || !is_at(getsockname, fd, own)) return false;
    const int every = std::max(1, static_cast<int>(give_up.count() / 4000));  // seconds
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, every);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, every);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::min<std::int64_t>(give_up.count(), 1 << 30)));
    return true;
  });
}

std::size_t UnauthenticatedPeers::end_some(std::uint16_t port, const std::set<std::string>& known,
                                           Clock::time_point now) noexcept {
  std::map<std::string, Clock::time_point> here;
  std::size_t ended = 0;
  (void)any_descriptor([&](int fd) {
    SocketAddress own, peer;
    socklen_t own_length = SocketAddress::room(), peer_length = SocketAddress::room();
    if (getsockname(fd, own.get(), &own_length) != 0 || !own.ip() || own.port() != port ||
        getpeername(fd, peer.get(), &peer_length) != 0)
      return false;
    const std::string name = peer.text();
    if (known.count(name) != 0) return false;
    const auto seen = first_seen_.find(name);
    const auto since = seen == first_seen_.end() ? now : seen->second;
    const auto patience = first_seen_.size() > kManyPeers ? kShortPatience : kPatience;
    if (now - since >= patience) {
      (void)shutdown(fd, SHUT_RDWR);  // libfabric takes it for a peer that has gone
      ++ended;
    } else {
      here.emplace(name, since);
    }
    return false;
  });
  first_seen_ = std::move(here);
  next_look_ = now + (first_seen_.size() > kManyPeers ? kShortPatience : kLookEvery);
  return ended;
}

bool is_host_answering(const SocketAddress& peer) noexcept {
  // A socket that is still connecting has no peer.
  return any_descriptor([&](int fd) { return is_at(getpeername, fd, peer); });
}

}  // namespace ulfm::ofi
