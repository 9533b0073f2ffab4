// What users set about the network between hosts, for every transport that has one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "base/error.hpp"

namespace ulfm::hosts {

/// Data of a frame where ULFM_FRAME says nothing. Each frame is a system call at either end, and of libfabric a copy
/// into and out of its buffers.
inline constexpr std::size_t kLongestFrame = 128 * 1024;

/// The range of TCP ports that ULFM_PORTS names.
struct PortRange {
  std::uint16_t first = 0, last = 0;  ///< 0: the system chooses
};

/// "5000-5100", or nothing. Errc::invalid, with what is needed, for anything else.
Result<PortRange> parse_ports(const std::string& text);

struct NetworkSettings {
  std::string provider;                         ///< of libfabric; empty: none is asked for
  std::string interface;                        ///< see choose_interfaces()
  std::uint16_t first_port = 0, last_port = 0;  ///< where to listen; 0: the system chooses
  std::string job_secret;
  std::string congestion;  ///< control of TCP; empty: none is asked for
  std::size_t max_frame = kLongestFrame;
  std::size_t max_whole = 0;                 ///< data of frames that must not come in parts; a network may have more
  bool in_one_piece = false;                 ///< the data of such a frame lie directly behind its header
  std::chrono::milliseconds give_up{10000};  ///< without an answer of the other host
  std::uint32_t peers = 4096;                ///< connections to a port at one time
};

/// What the rows of ulfm-ofi(7) say; Errc::invalid, with what is needed, for what they cannot say.
Result<NetworkSettings> settings_from(const Config& config);

}  // namespace ulfm::hosts
