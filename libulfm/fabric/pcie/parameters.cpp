#include "fabric/pcie/parameters.hpp"

#include <fmt/format.h>

#include "fabric/topology/topology.hpp"

namespace ulfm::fabric::pcie {

Result<void> check(const Parameters& p) {
  if (p.boards < 1 || p.boards > kMaxBoards || p.processes < 1 || p.processes > 65535 || p.frames < 1 ||
      p.frames > (1u << 24))
    return fail(Errc::invalid,
                fmt::format("a host has 1 to {} boards with 1 to 65535 processes and 1 to 2^24 messages; "
                            "found {} boards, {} processes, {} messages",
                            kMaxBoards, p.boards, p.processes, p.frames));
  if (p.message < 1 || p.message > kMostMessage)
    return fail(Errc::invalid, fmt::format("a message has 1 to {} bytes, not {}", kMostMessage, p.message));
  if (p.fragment < 1 || fragments_of(p.message, p.fragment) > kMostFragments)
    return fail(Errc::invalid,
                fmt::format("fragment={} divides a message of {} bytes into more than {}: make it larger", p.fragment,
                            p.message, kMostFragments));
  if (p.pool < p.message)
    return fail(Errc::invalid,
                fmt::format("pool={} has no room for a message of {} bytes (frame={})", p.pool, p.message, p.message));
  if (p.memory < p.message)
    return fail(Errc::invalid, fmt::format("memory={} has no room for a message of {} bytes (frame={})", p.memory,
                                           p.message, p.message));
  return {};
}

}  // namespace ulfm::fabric::pcie
