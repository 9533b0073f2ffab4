// Ways through a topology, found when a message needs one.
#pragma once

#include <memory>
#include <string_view>

#include "network.hpp"
#include "random.hpp"

namespace sim {

/// Finds ways. One thread; clone() from any.
class Routing {
 public:
  virtual ~Routing() = default;
  /// Another one over the same tables.
  virtual std::unique_ptr<Routing> clone() const = 0;
  /// The way of the next message from one node to another; `random` decides where the routing is free to choose.
  virtual void way(std::uint32_t from, std::uint32_t to, Random& random, Route& out) = 0;
  /// Most switches on a way.
  virtual std::uint32_t longest() const = 0;
  /// A pair of nodes has one way only.
  virtual bool is_fixed() const = 0;
};

/// "default": the routes that live traffic takes. "updown": one of the shortest ways that up*/down* allows, anew for
/// each message. "nonminimal:N": any way that up*/down* allows with at most N links more than the shortest. Neither can
/// deadlock: whatever is chosen, no way turns from down to up. "./mine.so": the routing function in a shared object
/// (ulfm-model(7)); errors say which way is wrong, or by which channels it can deadlock.
Result<std::unique_ptr<Routing>> make_routing(std::string_view text, const Topology& topology);

}  // namespace sim
