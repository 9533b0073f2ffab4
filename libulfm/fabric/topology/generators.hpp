// Larger regular shapes: grids of more dimensions, hyperX, fat trees and dragonflies.
#pragma once

#include "fabric/topology/topology.hpp"

namespace ulfm::fabric {

inline constexpr std::uint32_t kMaxGenerated = 16384;     ///< switches of a shape made here
inline constexpr std::uint32_t kMaxGeneratedPorts = 254;  ///< of its switches: a way has a byte for each

/// Mesh or torus of any number of dimensions, switch x0 + S0 (x1 + S1 (x2 ...)); port 2d leads to the next in dimension
/// d, 2d + 1 back, the node is behind them. A torus ring of fewer than 3 switches is not closed.
Result<Topology> make_grid(std::string_view description, std::span<const std::uint32_t> sizes, bool closed);
/// HyperX (Ahn et al. 2009): every switch is linked to all others that differ in one coordinate. The last of `sizes` is
/// the nodes of a switch. With one dimension a full mesh.
Result<Topology> make_hyperx(std::string_view description, std::span<const std::uint32_t> sizes);
/// M-ary n-tree (Petrini and Vanneschi 1997): M^n nodes, n levels of M^(n-1) switches, the root level first.
Result<Topology> make_fat_tree(std::string_view description, std::span<const std::uint32_t> sizes);
/// Dragonfly (Kim et al. 2008) of P nodes a switch, A switches a group, H links of a switch to other groups, and as
/// many groups as these links reach: A H + 1.
Result<Topology> make_dragonfly(std::string_view description, std::span<const std::uint32_t> sizes);

/// The way between two nodes of a grid or hyperX in dimension order, the first dimension first: no turn leads back to a
/// dimension before, and no ring is passed where it is opened, so that no circle of channels can wait.
void dimension_way(const Topology& topology, std::uint32_t from, std::uint32_t to, Route& out);

}  // namespace ulfm::fabric
