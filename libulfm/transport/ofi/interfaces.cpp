#include "transport/ofi/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ulfm::ofi {
namespace {

std::uint32_t ip_of(const sockaddr* address) {
  if (address == nullptr || address->sa_family != AF_INET) return 0;
  sockaddr_in in{};
  std::memcpy(&in, address, sizeof in);
  return ntohl(in.sin_addr.s_addr);
}

// Asked of the driver and not of /sys, which may be another network namespace's.
Link link_of(int socket, const char* name, unsigned flags) {
  if ((flags & IFF_POINTOPOINT) != 0) return Link::virtual_link;
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (ioctl(socket, SIOCETHTOOL, &request) != 0) return Link::physical;
  const std::string_view driver(info.driver, strnlen(info.driver, sizeof info.driver));
  if (driver == "veth") return Link::veth;
  for (const std::string_view other : {"bridge", "tun", "dummy", "wireguard", "vxlan", "openvswitch"})
    if (driver == other) return Link::virtual_link;
  return Link::physical;
}

bool is_wanted(const Interface& one, const std::string& wanted) {
  if (one.name == wanted || text_of(one.address.ip) == wanted) return true;
  const std::size_t slash = wanted.find('/');
  in_addr network{};
  unsigned bits = 0;
  if (slash == wanted.npos || inet_pton(AF_INET, wanted.substr(0, slash).c_str(), &network) != 1) return false;
  const char* end = wanted.data() + wanted.size();
  if (std::from_chars(wanted.data() + slash + 1, end, bits).ptr != end || bits > 32) return false;
  const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
  return ((one.address.ip ^ ntohl(network.s_addr)) & mask) == 0;
}

}  // namespace

Result<std::vector<Interface>> interfaces_of_this_host() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail_errno("asking for the addresses of this host");
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::vector<Interface> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const std::uint32_t ip = ip_of(one->ifa_addr);
    if (ip == 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    const bool loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    found.push_back(
        {one->ifa_name, {ip, link_of(probe, one->ifa_name, one->ifa_flags)}, ip_of(one->ifa_netmask), loopback});
  }
  freeifaddrs(list);
  if (probe >= 0) close(probe);
  std::stable_sort(found.begin(), found.end(), [](const Interface& a, const Interface& b) {
    return std::pair(a.loopback, a.address.link) < std::pair(b.loopback, b.address.link);
  });
  return found;
}

Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all, const std::string& wanted) {
  std::vector<Interface> chosen;
  std::string list;
  for (const Interface& one : all) {
    list += (list.empty() ? "" : ", ") + one.name + " " + text_of(one.address.ip);
    if (wanted.empty() ? !one.loopback : is_wanted(one, wanted)) chosen.push_back(one);
  }
  if (chosen.empty() && wanted.empty()) chosen = all;  // a host without a network still has its loopback
  if (chosen.empty())
    return fail(Errc::invalid, "ULFM_INTERFACE=\"" + wanted +
                                   "\" names no interface, address or network of this host that is up; there is: " +
                                   (list.empty() ? "nothing" : list));
  if (chosen.size() > kMostAddresses) chosen.resize(kMostAddresses);
  return chosen;
}

std::vector<Candidate> candidates(const std::vector<Interface>& own, const Card& peer, bool same_host,
                                  std::vector<Candidate>& left_out) {
  std::vector<std::pair<int, Candidate>> ranked;
  for (const Address& address : peer.addresses) {
    int rank = 4;
    std::string why = "by route";
    bool is_own = false;
    for (const Interface& one : own) {
      is_own = is_own || (one.address.ip == address.ip && !one.loopback);
      if (one.loopback || ((one.address.ip ^ address.ip) & one.mask) != 0) continue;
      const int link = static_cast<int>(std::max(one.address.link, address.link));
      if (2 * link >= rank) continue;
      rank = 2 * link;
      why = "same network as " + one.name;
    }
    if (rank == 4) rank = 2 * static_cast<int>(address.link) + 1;
    if (is_own && !same_host) left_out.push_back({address.ip, "this host has the same address"});
    else ranked.emplace_back(rank, Candidate{address.ip, why});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Candidate> out;
  if (same_host) out.push_back({INADDR_LOOPBACK, "same host"});
  for (auto& [rank, candidate] : ranked) out.push_back(std::move(candidate));
  return out;
}

}  // namespace ulfm::ofi
