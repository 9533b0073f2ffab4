// The addresses of this host, and which address of another host to try first.
//
// Users of every message-passing library meet the wrong interface first: a container bridge has the same address on all
// hosts, a tunnel has one and leads nowhere. So nothing is believed: the order below says what is tried first, and a
// connection counts only when the process that was meant has answered (see greeting.hpp).
#pragma once

#include <string>
#include <vector>

#include "transport/hosts/card.hpp"

namespace ulfm::hosts {

struct Interface {
  std::string name;
  Address address;
  int prefix = 0;  ///< bits of the address that its network has
  bool loopback = false;
};

/// Where the kernel sends what goes to a network.
struct Route {
  Ip network;
  int prefix = 0;
  std::string interface;
  std::uint32_t metric = 0;
};

/// What this host has: addresses of interfaces that are up, likeliest first, with loopback last; and its routes.
/// Addresses that are good on one link only (fe80::) are left out.
struct Surroundings {
  std::vector<Interface> interfaces;
  std::vector<Route> routes;
};
Result<Surroundings> surroundings_of_this_host();

/// The lines of /proc/net/route and /proc/net/ipv6_route; what is no route in them is skipped.
std::vector<Route> read_routes(const std::string& v4_table, const std::string& v6_table);

/// Those that `wanted` names: an interface ("eth1"), an address ("10.1.0.2", "fd00::2") or a network ("10.1.0.0/16");
/// all but loopback when it is empty. Errc::invalid, with what there is, when none matches.
Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all, const std::string& wanted);

/// An address to try, with what speaks for it.
struct Candidate {
  Ip ip;
  std::string why;
  bool is_ours = false;  ///< this host has it, too, as all have that of a container bridge
};

/// Which addresses of `peer` to try from here, in this order: the loopback address for a process of this host; then
/// by the kind of link on either side (bridges, tunnels and veth last), the same network before others, and the metric
/// of the route; what no route leads to; and at last addresses that are also ours, which lead to the process only when
/// it is in another container of this host.
std::vector<Candidate> candidates(const Surroundings& own, const ProcessCard& peer, bool same_host);

}  // namespace ulfm::hosts
