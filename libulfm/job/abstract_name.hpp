// A name for a socket in the abstract name space of Unix-domain sockets (unix(7)): it needs no file and is gone with
// the last socket that has it.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace ulfm {

/// The address for bind() and connect(). Longer names are cut to the kMost characters that there is room for.
class AbstractName {
 public:
  static constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;

  explicit AbstractName(std::string_view name) noexcept {
    address_.sun_family = AF_UNIX;
    const std::size_t length = name.copy(address_.sun_path + 1, kMost);  // behind the zero byte with which it begins
    length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const noexcept { return length_; }

 private:
  sockaddr_un address_{};
  socklen_t length_;
};

/// Binds the socket to a free name that the kernel chooses, of five hexadecimal digits. False: see errno.
inline bool bind_anywhere(int socket, std::string& name) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (bind(socket, any, sizeof address.sun_family) != 0 || getsockname(socket, any, &length) != 0) return false;
  name.assign(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  return true;
}

}  // namespace ulfm
