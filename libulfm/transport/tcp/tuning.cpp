#include "transport/tcp/tuning.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "job/control/socket.hpp"
#include "transport/hosts/silence.hpp"

namespace ulfm::tcp {
namespace {

using control::set_option;

constexpr int kProbes = 3;  // without an answer end an idle link
// Data that have not left lie in the program's buffer as well as in the kernel's, where they only displace what the
// caches hold.
constexpr int kMostUnsent = 128 * 1024;
constexpr std::uint32_t kNearMicroseconds = 1000;
// The kernel makes a window anew when segments of so many bytes or more (TCP_MSS_DEFAULT) come in other lengths than
// before, so it is looked at again and again. No shorter reads count.
constexpr std::size_t kLeastRead = 536;
constexpr std::uint64_t kReadsPerAnswer = 4;  // a message of 64 KB takes two or three
constexpr std::uint64_t kMostPerAnswer = 160 * 1024;
constexpr const char* kOfANetwork = "reno";  // which every process may use

bool use(int socket, std::string_view name) noexcept {
  return setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

std::string name_of(int socket) {
  char name[16] = {};  // TCP_CA_NAME_MAX of the kernel
  socklen_t length = sizeof name;
  return getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0 ? name : kOfANetwork;
}

bool is_near(int socket) noexcept {
  tcp_info info{};
  socklen_t length = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_rtt != 0 &&
         info.tcpi_rtt < kNearMicroseconds;
}

int window_of(int socket) noexcept {
  int value = 0;
  socklen_t length = sizeof value;
  return getsockopt(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, &value, &length) == 0 ? value : 0;
}

}  // namespace

void tune(int socket, std::chrono::milliseconds give_up) noexcept {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kMostUnsent);
  hosts::ask_for_life(socket, give_up, kProbes);
}

// Kernels of 5.15 to 6.6 may never widen a window again that is set while it is 0, so it is set only behind a read that
// took all.
void ReceiveWindow::note_read(int socket, std::size_t bytes, bool took_all) noexcept {
  if (bytes < kLeastRead) return;
  has_heard_ = true;
  bytes_ += bytes;
  if (++reads_ >= kReadsPerLook && took_all) look(socket);
}

void ReceiveWindow::look(int socket) noexcept {
  const std::uint64_t reads = std::exchange(reads_, 0), answers = std::exchange(answers_, 0);
  const std::uint64_t bytes = std::exchange(bytes_, 0);
  if (!is_near_) is_near_ = is_near(socket);
  if (!is_near_) return;
  const bool is_answered = answers * kReadsPerAnswer >= reads && bytes <= answers * kMostPerAnswer;
  const bool was_steady = std::exchange(is_steady_, is_answered);
  if (is_answered && !was_steady) {
    // SO_RCVBUF ends at the system's `rmem_max`. For SO_RCVLOWAT the kernel widens its room, too, and leaves it so; 1
    // again wakes who waits for what came in between.
    set_option(socket, SOL_SOCKET, SO_RCVLOWAT, 2 * kSteady);
    set_option(socket, SOL_SOCKET, SO_RCVLOWAT, 1);
  }
  if (is_answered && window_of(socket) != kSteady) set_option(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, kSteady);
  if (!is_answered && was_steady) set_option(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, std::numeric_limits<int>::max());
}

Result<CongestionControl> CongestionControl::create(const std::string& wanted) {
  const control::Fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) return fail_errno("opening a socket");
  if (wanted.empty()) return CongestionControl(kOfANetwork, name_of(probe.get()));
  if (use(probe.get(), wanted)) return CongestionControl(wanted, wanted);
  const char* why = std::strerror(errno);
  std::string there;
  std::ifstream file("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  std::getline(file, there);
  return fail(Errc::invalid, fmt::format("ULFM_CONGESTION=\"{}\": {}; any process may use: {}", wanted, why, there));
}

void CongestionControl::begin(int socket) const noexcept { (void)use(socket, near_); }

void CongestionControl::settle(int socket) const noexcept {
  if (near_ != far_ && !is_near(socket)) (void)use(socket, far_);
}

}  // namespace ulfm::tcp
