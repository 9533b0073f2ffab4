// What a connection between hosts is told about how TCP shall send.
#pragma once

#include <chrono>
#include <string>

#include "base/error.hpp"

namespace ulfm::tcp {

/// Before connect(), or when accepted: sends at once, keeps little in the kernel that has not left yet, asks whether
/// the peer's host is alive. What the kernel refuses is left as it is: the connection works without.
void tune(int socket, std::chrono::milliseconds give_up) noexcept;

/// When the connection is up. `wanted` is ULFM_CONGESTION; empty: the system's choice, but within a network (a round
/// trip of less than a millisecond) Reno's, which neither paces nor takes the time that a busy core needs for a sign of
/// congestion (decision 0050).
void choose_congestion_control(int socket, const std::string& wanted) noexcept;

/// Errc::invalid, with what there is, when this process may not use that congestion control. Empty is always fine.
Result<void> check_congestion_control(const std::string& wanted);

}  // namespace ulfm::tcp
