// An address with a port, as the kernel and libfabric take it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>

#include <fmt/core.h>

#include "base/ip.hpp"

namespace ulfm::hosts {

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const Ip& ip, std::uint16_t port) noexcept {
    if (ip.is_v4()) {
      auto& in = as<sockaddr_in>();
      in.sin_family = AF_INET;
      in.sin_addr.s_addr = htonl(ip.as_v4());
      in.sin_port = htons(port);
    } else {
      auto& in = as<sockaddr_in6>();
      in.sin6_family = AF_INET6;
      std::memcpy(&in.sin6_addr, ip.bytes.data(), ip.bytes.size());
      in.sin6_port = htons(port);
    }
  }
  /// What somebody else has filled in; nothing of it is believed beyond `length`.
  SocketAddress(const void* bytes, std::size_t length) noexcept {
    if (bytes != nullptr && length <= sizeof storage_) std::memcpy(&storage_, bytes, length);
  }
  /// Every address of this host.
  static SocketAddress any(bool v6, std::uint16_t port) noexcept { return {v6 ? Ip{} : Ip::v4(INADDR_ANY), port}; }

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage_); }
  std::size_t size() const noexcept { return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  static constexpr std::size_t room() noexcept { return sizeof(sockaddr_storage); }
  bool is_v6() const noexcept { return storage_.ss_family == AF_INET6; }

  Ip ip() const noexcept {
    Ip ip;
    if (is_v6()) std::memcpy(ip.bytes.data(), &as<sockaddr_in6>().sin6_addr, ip.bytes.size());
    else if (storage_.ss_family == AF_INET) ip = Ip::v4(ntohl(as<sockaddr_in>().sin_addr.s_addr));
    return ip;
  }
  std::uint16_t port() const noexcept {
    return ntohs(is_v6() ? as<sockaddr_in6>().sin6_port : as<sockaddr_in>().sin_port);
  }
  friend bool operator==(const SocketAddress& a, const SocketAddress& b) noexcept {
    return a.ip() == b.ip() && a.port() == b.port();
  }
  /// "10.1.0.2:5000" or "[fd00::2]:5000".
  std::string text() const {
    return fmt::format("{}:{}", is_v6() ? fmt::format("[{}]", ip().text()) : ip().text(), port());
  }

 private:
  template <typename Kind>
  Kind& as() noexcept {
    return reinterpret_cast<Kind&>(storage_);
  }
  template <typename Kind>
  const Kind& as() const noexcept {
    return reinterpret_cast<const Kind&>(storage_);
  }
  sockaddr_storage storage_{};
};

}  // namespace ulfm::hosts
