#include "transport/hosts/interfaces.hpp"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <tuple>

#include <fmt/core.h>

#include "transport/hosts/socket_address.hpp"

namespace ulfm::hosts {
namespace {

constexpr unsigned kRouteUp = 1, kRouteReject = 0x200;  // RTF_UP, RTF_REJECT of linux/route.h

SocketAddress address_in(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) return {address, sizeof(sockaddr_in)};
  if (address->sa_family == AF_INET6) return {address, sizeof(sockaddr_in6)};
  return {};
}

// The ones of a mask; it has the family of its address.
int bits_of(const Ip& mask, bool v6) {
  int bits = 0;
  for (std::size_t i = v6 ? 0 : 12; i < mask.bytes.size(); ++i) bits += __builtin_popcount(mask.bytes[i]);
  return bits;
}

// Asked of the driver and not of /sys, which may be another network namespace's.
LinkKind link_of(int socket, const char* name, unsigned flags) {
  if ((flags & IFF_POINTOPOINT) != 0) return LinkKind::virtual_link;
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (ioctl(socket, SIOCETHTOOL, &request) != 0) return LinkKind::physical;
  const std::string_view driver(info.driver, strnlen(info.driver, sizeof info.driver));
  if (driver == "veth") return LinkKind::veth;
  // A TAP device is an Ethernet cable to whoever holds its other end, a virtual machine for example.
  if (driver == "tun") return (flags & IFF_NOARP) != 0 ? LinkKind::virtual_link : LinkKind::veth;
  for (const std::string_view other : {"bridge", "dummy", "wireguard", "vxlan", "openvswitch"})
    if (driver == other) return LinkKind::virtual_link;
  return LinkKind::physical;
}

bool is_wanted(const Interface& one, const std::string& wanted) {
  if (one.name == wanted || Ip::parse(wanted) == one.address.ip) return true;
  const std::size_t slash = wanted.find('/');
  const auto network = Ip::parse(wanted.substr(0, slash));
  if (slash == wanted.npos || !network) return false;
  int bits = 0;
  const char* end = wanted.data() + wanted.size();
  const auto read = std::from_chars(wanted.data() + slash + 1, end, bits);
  return read.ec == std::errc{} && read.ptr == end && bits >= 0 && bits <= (network->is_v4() ? 32 : 128) &&
         one.address.ip.shares(*network, bits);
}

std::string contents_of(const char* path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// 32 hexadecimal digits.
bool read_hex(const std::string& text, Ip& ip) {
  for (std::size_t i = 0; i < ip.bytes.size(); ++i)
    if (std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, ip.bytes[i], 16).ec != std::errc{}) return false;
  return true;
}

// The kernel's choice: the longest prefix, then the lowest metric. nullptr when there is none.
const Route* route_to(const Ip& ip, const std::vector<Route>& routes) {
  const Route* best = nullptr;
  for (const Route& one : routes) {
    if (!ip.shares(one.network, one.prefix)) continue;
    if (best == nullptr || std::tuple(-one.prefix, one.metric) < std::tuple(-best->prefix, best->metric)) best = &one;
  }
  return best;
}

struct Ranked {
  int rank = 0;
  std::uint32_t metric = 0;
  Candidate candidate;
};

constexpr int kNoRoute = 100, kOurs = 101;

// Twice the kind of the worse link of the two, and one more behind a router.
Ranked rank(const Surroundings& own, const Address& address) {
  const auto rank_over = [&](const Interface& one) {
    return 2 * static_cast<int>(std::max(one.address.link, address.link));
  };
  Ranked best{2 * static_cast<int>(address.link) + 1, 0, {address.ip, "by route"}};
  const Route* route = route_to(address.ip, own.routes);
  if (route != nullptr) best.metric = route->metric;
  if (route == nullptr && !own.routes.empty()) best = {kNoRoute, 0, {address.ip, "no route from here"}};
  const Interface* near = nullptr;
  for (const Interface& one : own.interfaces) {
    if (one.loopback) continue;
    if (address.ip.shares(one.address.ip, one.prefix) && (near == nullptr || rank_over(one) < rank_over(*near)))
      near = &one;
    if (route != nullptr && route->interface == one.name)
      best = {rank_over(one) + 1, route->metric, {address.ip, fmt::format("by route over {}", one.name)}};
  }
  if (near != nullptr)
    best = {rank_over(*near), best.metric, {address.ip, fmt::format("same network as {}", near->name)}};
  return best;
}

}  // namespace

std::vector<Route> read_routes(const std::string& v4_table, const std::string& v6_table) {
  std::vector<Route> routes;
  std::istringstream four(v4_table), six(v6_table);
  for (std::string line; std::getline(four, line);) {
    char name[IF_NAMESIZE] = {};
    unsigned network = 0, gateway = 0, flags = 0, metric = 0, mask = 0;
    if (std::sscanf(line.c_str(), "%15s %8x %8x %x %*d %*d %u %8x", name, &network, &gateway, &flags, &metric, &mask) !=
            6 ||
        (flags & (kRouteUp | kRouteReject)) != kRouteUp)
      continue;
    routes.push_back({Ip::v4(ntohl(network)), __builtin_popcount(mask), name, metric});
  }
  for (std::string line; std::getline(six, line);) {
    char network[33] = {}, name[IF_NAMESIZE] = {};
    unsigned prefix = 0, metric = 0, flags = 0;
    Route route;
    if (std::sscanf(line.c_str(), "%32s %2x %*32s %*2x %*32s %8x %*8x %*8x %8x %15s", network, &prefix, &metric, &flags,
                    name) != 5 ||
        (flags & (kRouteUp | kRouteReject)) != kRouteUp || prefix > 128 || std::strlen(network) != 32 ||
        !read_hex(network, route.network) || std::string_view(name) == "lo")
      continue;
    route.prefix = static_cast<int>(prefix);
    route.interface = name;
    route.metric = metric;
    routes.push_back(std::move(route));
  }
  return routes;
}

Result<Surroundings> surroundings_of_this_host() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail_errno("asking for the addresses of this host");
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  Surroundings found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const SocketAddress address = address_in(one->ifa_addr);
    const Ip ip = address.ip();
    if (!ip || ip.is_link_local() || (one->ifa_flags & IFF_UP) == 0) continue;
    const bool loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    found.interfaces.push_back({one->ifa_name,
                                {ip, link_of(probe, one->ifa_name, one->ifa_flags)},
                                bits_of(address_in(one->ifa_netmask).ip(), address.is_v6()),
                                loopback});
  }
  freeifaddrs(list);
  if (probe >= 0) close(probe);
  std::stable_sort(found.interfaces.begin(), found.interfaces.end(), [](const Interface& a, const Interface& b) {
    const auto order = [](const Interface& i) { return std::tuple(i.loopback, i.address.link, !i.address.ip.is_v4()); };
    return order(a) < order(b);
  });
  found.routes =
      read_routes(contents_of("/proc/thread-self/net/route"), contents_of("/proc/thread-self/net/ipv6_route"));
  return found;
}

Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all, const std::string& wanted) {
  if (all.empty())
    return fail(
        Errc::unavailable,
        "this host has no network interface that is up, not even loopback (ip link set lo up; ip addr lists them)");
  std::vector<Interface> chosen;
  std::string list;
  for (const Interface& one : all) {
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", one.name, one.address.ip.text());
    if (wanted.empty() ? !one.loopback : is_wanted(one, wanted)) chosen.push_back(one);
  }
  if (chosen.empty() && wanted.empty()) chosen = all;  // a host without a network still has its loopback
  if (chosen.empty())
    return fail(
        Errc::invalid,
        fmt::format(
            "ULFM_INTERFACE=\"{}\" names no interface, address or network of this host that is up; there is: {}",
            wanted, list));
  return chosen;
}

std::vector<Candidate> candidates(const Surroundings& own, const ProcessCard& peer, bool same_host) {
  std::vector<Ranked> ranked;
  for (const Address& address : peer.addresses) {
    const bool is_ours = std::any_of(own.interfaces.begin(), own.interfaces.end(),
                                     [&](const Interface& one) { return one.address.ip == address.ip; });
    if (is_ours && !same_host) ranked.push_back({kOurs, 0, {address.ip, "this host has the same address", true}});
    else ranked.push_back(rank(own, address));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tuple(a.rank, a.metric) < std::tuple(b.rank, b.metric);
  });
  std::vector<Candidate> out;
  if (same_host) out.push_back({Ip::v4(INADDR_LOOPBACK), "same host"});
  for (Ranked& one : ranked) out.push_back(std::move(one.candidate));
  return out;
}

}  // namespace ulfm::hosts
