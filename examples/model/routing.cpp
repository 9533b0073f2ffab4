// A routing function for meshes of two dimensions: down or up the column first, and then along the row. ULFM's own ways
// go along the row first; uniform traffic does not care, transposed traffic does not either, and a hot spot does.
//
//   make
//   ulfm_sim load --routing ./routing.so -T mesh:4x4
//
// ulfm_sim walks all ways and refuses those that can deadlock. These cannot: no message turns from a row to a column.
#include <ulfm/model.hpp>

namespace {

using ulfm::model::End;
using ulfm::model::Net;

// The port of switch `at` that leads to switch `to`; `net.ports`: none does.
std::uint32_t port_to(const Net& net, std::uint32_t at, std::uint32_t to) {
  std::uint32_t port = 0;
  while (port < net.ports && (net.end(at, port).kind != End::switch_port || net.end(at, port).index != to)) ++port;
  return port;
}

// Switches of a mesh are numbered row by row, so the last of the first row is the one before the switch that hangs
// below the first.
std::uint32_t columns_of(const Net& net) {
  std::uint32_t columns = 1;
  while (columns < net.switches && port_to(net, columns - 1, columns) != net.ports) ++columns;
  return columns;
}

std::uint32_t way(const Net& net, std::uint32_t from, std::uint32_t to, std::uint8_t* ports, std::uint32_t room) {
  const std::uint32_t columns = columns_of(net), target = net.places[to].index;
  std::uint32_t at = net.places[from].index, length = 0;
  while (at != target && length + 1 < room) {
    std::uint32_t next = at;
    if (at / columns != target / columns) next += at / columns < target / columns ? columns : 0u - columns;
    else next += at < target ? 1u : 0u - 1u;
    const std::uint32_t port = port_to(net, at, next);
    if (port == net.ports) return 0;  // this is no mesh
    ports[length++] = static_cast<std::uint8_t>(port);
    at = next;
  }
  ports[length++] = static_cast<std::uint8_t>(net.places[to].port);
  return length;
}

}  // namespace

ULFM_ROUTING({.name = "column first", .way = way})
