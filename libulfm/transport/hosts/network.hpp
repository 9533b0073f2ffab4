// What every network between hosts does first: find out where it is, and listen there.
#pragma once

#include <functional>

#include "transport/hosts/interfaces.hpp"
#include "transport/hosts/settings.hpp"
#include "transport/hosts/socket_address.hpp"

namespace ulfm::hosts {

/// This process and what is around it.
struct Self {
  Surroundings surroundings;
  ProcessCard card;  ///< without the port, until listen() has it
};
/// Errc::invalid, with what there is, when ULFM_INTERFACE names nothing that this host has.
Result<Self> self_of(const NetworkSettings& settings);

/// Makes a listener at an address, port 0 being any, and returns the port it has got. Errc::busy: another port may do.
using ListenAt = std::function<Result<std::uint16_t>(const SocketAddress&)>;

/// The error of a listener that could not be made there, from its `errno`.
Error listen_error(const SocketAddress& where, int error);

/// Listens where `settings` and the addresses of `card` say, and puts the port into `card`: with one listener, or one
/// for IPv6 and one for IPv4. Errc::unavailable when all ports of ULFM_PORTS are taken.
Result<void> listen(const NetworkSettings& settings, ProcessCard& card, const ListenAt& listen_at);

}  // namespace ulfm::hosts
