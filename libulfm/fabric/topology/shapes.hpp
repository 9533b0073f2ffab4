// Short forms: "mesh:4x4" and the like.
#pragma once

#include "fabric/topology/topology.hpp"

namespace ulfm::fabric {

/// The topology of a short form. Errors say what the forms and their limits are.
Result<Topology> make_shape(std::string_view description);

/// "gh:NxKxP", of those three sizes.
Result<Topology> make_hypercube(std::string_view description, std::span<const std::uint32_t> sizes);

/// Why a short form names no topology.
tl::unexpected<Error> refuse_shape(std::string_view description, const std::string& why);

/// An empty topology of that many switches.
Topology bare_topology(std::string name, Shape shape, std::uint32_t ports, std::uint32_t switches);
/// Joins two free ports.
void join(Topology& topology, SwitchPort a, SwitchPort b);
/// Hangs the next node on a free port.
void attach_node(Topology& topology, SwitchPort at);

}  // namespace ulfm::fabric
