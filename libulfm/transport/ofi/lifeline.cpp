#include "transport/ofi/lifeline.hpp"

#include <dirent.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstdlib>

namespace ulfm::ofi {
namespace {

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

bool is_host_answering(const SocketAddress& peer) noexcept {
  // A socket that is still connecting has no peer.
  return any_descriptor([&](int fd) { return is_at(getpeername, fd, peer); });
}

}  // namespace ulfm::ofi
