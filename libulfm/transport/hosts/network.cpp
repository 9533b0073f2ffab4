#include "transport/hosts/network.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/counted.hpp"
#include "job/liveness.hpp"

namespace ulfm::hosts {
namespace {

Result<void> listen_on(const NetworkSettings& settings, ProcessCard& card, std::uint16_t port,
                       const ListenAt& listen_at) {
  const auto& own = card.addresses;
  const auto take = [&](const SocketAddress& where) -> Result<void> {
    auto got = listen_at(where);
    if (!got) return fail(got.error());
    card.port = *got;
    return {};
  };
  // One interface was asked for: nothing is open at the others.
  if (!settings.interface.empty() && own.size() == 1) return take({own.front().ip, port});
  if (std::all_of(own.begin(), own.end(), [](const Address& one) { return one.ip.is_v4(); }))
    return take(SocketAddress::any(false, port));
  if (auto ok = take(SocketAddress::any(true, port)); !ok) return ok;
  // A listener for IPv6 takes IPv4, too, and so has its port, unless the system says otherwise (ipv6(7), bindv6only).
  (void)listen_at(SocketAddress::any(false, card.port));
  return {};
}

}  // namespace

Result<Self> self_of(const NetworkSettings& settings) {
  auto found = surroundings_of_this_host();
  if (!found) return fail(found.error());
  auto chosen = choose_interfaces(found->interfaces, settings.interface);
  if (!chosen) return fail(chosen.error());
  std::vector<Address> addresses;
  for (const Interface& one : *chosen) addresses.push_back(one.address);
  return Self{std::move(*found), {host_identity(), random_token(), getpid(), 0, those_that_fit(addresses)}};
}

Error listen_error(const SocketAddress& where, int error) {
  const bool is_about_port = error == EADDRINUSE || error == EACCES;
  return {is_about_port ? Errc::busy : Errc::system,
          fmt::format("listening at port {}: {}", where.port(), std::strerror(error))};
}

Result<void> listen(const NetworkSettings& settings, ProcessCard& card, const ListenAt& listen_at) {
  Result<void> ok;
  // From a place of its own on, or all processes of a host would try the same ones.
  const std::uint32_t count = std::uint32_t{settings.last_port} - settings.first_port + 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t offset = (static_cast<std::uint32_t>(getpid()) + i) % count;
    ok = listen_on(settings, card, static_cast<std::uint16_t>(settings.first_port + offset), listen_at);
    if (ok || ok.error().code != Errc::busy) return ok;
  }
  if (settings.first_port == 0) return ok;
  return fail(Errc::unavailable,
              fmt::format("ULFM_PORTS={}-{} has {}, and none is free here ({}); each process of a host needs "
                          "one: widen the range",
                          settings.first_port, settings.last_port, counted(count, "port"), ok.error().what));
}

}  // namespace ulfm::hosts
