#include "transport/tcp/tuning.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/core.h>

#include "job/control/socket.hpp"
#include "transport/hosts/silence.hpp"

namespace ulfm::tcp {
namespace {

constexpr int kProbes = 3;  // without an answer end an idle link
// Data that have not left lie in the program's buffer as well as in the kernel's, where they only displace what the
// caches hold.
constexpr int kMostUnsent = 128 * 1024;
constexpr std::uint32_t kNearMicroseconds = 1000;
constexpr const char* kOfANetwork = "reno";  // which every process may use

void set(int socket, int option, int value) noexcept {
  (void)setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value);
}

bool use(int socket, std::string_view name) noexcept {
  return setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

bool is_near(int socket) noexcept {
  tcp_info info{};
  socklen_t length = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_rtt < kNearMicroseconds;
}

}  // namespace

void tune(int socket, std::chrono::milliseconds give_up) noexcept {
  set(socket, TCP_NODELAY, 1);
  set(socket, TCP_NOTSENT_LOWAT, kMostUnsent);
  hosts::ask_for_life(socket, give_up, kProbes);
}

void choose_congestion_control(int socket, const std::string& wanted) noexcept {
  if (!wanted.empty()) {
    (void)use(socket, wanted);  // checked before
    return;
  }
  if (is_near(socket)) (void)use(socket, kOfANetwork);
}

Result<void> check_congestion_control(const std::string& wanted) {
  if (wanted.empty()) return {};
  const control::Fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) return fail_errno("opening a socket");
  if (use(probe.get(), wanted)) return {};
  const char* why = std::strerror(errno);
  std::string there;
  std::ifstream file("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  std::getline(file, there);
  return fail(Errc::invalid, fmt::format("ULFM_CONGESTION=\"{}\": {}; any process may use: {}", wanted, why, there));
}

}  // namespace ulfm::tcp
