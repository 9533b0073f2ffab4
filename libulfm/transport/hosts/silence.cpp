#include "transport/hosts/silence.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include <fmt/core.h>

#include "job/control/socket.hpp"

namespace ulfm::hosts {
namespace {

constexpr int kMostRetransmission = 44;  // TCP_RTO_MAX_MS, which older headers do not have
constexpr unsigned kUnanswered = 2;      // one may have just been sent

int seconds_between_probes(std::chrono::milliseconds give_up) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>(give_up.count() / 4000, 1, 32767));  // tcp(7) takes no more
}

}  // namespace

void ask_for_life(int socket, std::chrono::milliseconds give_up, int probes) noexcept {
  const int every = seconds_between_probes(give_up);
  control::set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  control::set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, every);
  control::set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, every);
  control::set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, probes);
  // Linux 6.15: what is not acknowledged is asked for at least so often, so is_silent() learns in time.
  control::set_option(socket, IPPROTO_TCP, kMostRetransmission,
                      static_cast<int>(std::clamp<std::int64_t>(give_up.count() / 4, 1000, 120'000)));
}

int more_probes(std::chrono::milliseconds give_up) noexcept {
  return static_cast<int>(std::min<std::int64_t>(give_up.count() / 1000 / seconds_between_probes(give_up) + 4, 127));
}

bool is_silent(int socket, std::chrono::milliseconds give_up) noexcept {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  // While the peer does not read, its kernel answers probes, whose intervals grow: who answers none is gone.
  const bool unanswered = info.tcpi_retransmits >= kUnanswered || info.tcpi_probes >= kUnanswered;
  const auto heard = std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv);
  return unanswered && std::chrono::milliseconds(heard) >= give_up;
}

Error silence_of(const ProcessId& peer, std::chrono::milliseconds give_up) {
  return {Errc::peer_failed,
          fmt::format("{} has not answered for {} s: its host has failed, or the network to it is cut (ULFM_GIVE_UP "
                      "sets the time)",
                      peer.text(), std::chrono::duration<double>(give_up).count())};
}

}  // namespace ulfm::hosts
