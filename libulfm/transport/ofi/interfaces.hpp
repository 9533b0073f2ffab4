// The addresses of this host, and which address of another host to try first.
//
// Users of every message-passing library meet the wrong interface first: a container bridge has the same address on all
// hosts, a tunnel has one and leads nowhere. So nothing is believed: the order below says what is tried first, and a
// connection counts only when the process that was meant has answered (see greeting.hpp).
#pragma once

#include <string>
#include <vector>

#include "transport/ofi/card.hpp"

namespace ulfm::ofi {

struct Interface {
  std::string name;
  Address address;
  std::uint32_t mask = 0;
  bool loopback = false;
};

/// IPv4 addresses of interfaces that are up, likeliest first; loopback is there and comes last.
Result<std::vector<Interface>> interfaces_of_this_host();

/// Those that `wanted` names: an interface ("eth1"), an address ("10.1.0.2") or a network ("10.1.0.0/16"); all but
/// loopback when it is empty. Errc::invalid, with what there is, when none matches.
Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all, const std::string& wanted);

/// An address to try, with what speaks for it.
struct Candidate {
  std::uint32_t ip = 0;
  std::string why;
};

/// Which addresses of `peer` to try from here, in this order: the loopback address for a process of this host; then
/// by the kind of link (bridges and tunnels last), and the same network before others. An address that is also one of
/// ours is left out and goes to `left_out`: whoever answers there is on this host.
std::vector<Candidate> candidates(const std::vector<Interface>& own, const Card& peer, bool same_host,
                                  std::vector<Candidate>& left_out);

}  // namespace ulfm::ofi
