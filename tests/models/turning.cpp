// Two routing functions that must be refused: ways round a ring, which can deadlock; and one that ends nowhere.
#include <ulfm/model.hpp>

namespace {

using ulfm::model::End;
using ulfm::model::Net;

std::uint32_t way(const Net& net, std::uint32_t from, std::uint32_t to, std::uint8_t* ports, std::uint32_t room) {
  std::uint32_t at = net.places[from].index, length = 0;
  while (at != net.places[to].index && length + 1 < room) {
    std::uint32_t port = 0;
    while (net.end(at, port).kind != End::switch_port || net.end(at, port).index != (at + 1) % net.switches)
      if (++port == net.ports) return 0;
    ports[length++] = static_cast<std::uint8_t>(port);
    at = (at + 1) % net.switches;
  }
  ports[length++] = static_cast<std::uint8_t>(net.places[to].port);
  return length;
}

}  // namespace

ULFM_ROUTING({.name = "round and round", .way = way})
