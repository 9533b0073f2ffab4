#include "transport/ofi/signals.hpp"

#include <sys/socket.h>

#include <cstdio>

namespace ulfm::ofi {
namespace {

bool is_local(int fd) noexcept {
  int domain = 0;
  socklen_t length = sizeof domain;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

}  // namespace

bool take_signal(int epoll_set) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll_set);
  std::FILE* const in = std::fopen(path, "re");
  if (in == nullptr) return false;
  bool any = false;
  char line[160];
  while (std::fgets(line, sizeof line, in) != nullptr) {
    int fd = -1;
    char byte;
    // The connections are TCP.
    if (std::sscanf(line, "tfd: %d", &fd) == 1 && is_local(fd)) any = recv(fd, &byte, 1, MSG_DONTWAIT) == 1 || any;
  }
  std::fclose(in);
  return any;
}

}  // namespace ulfm::ofi
