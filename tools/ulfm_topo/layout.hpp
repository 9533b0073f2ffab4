// Where things stand in a picture.
#pragma once

#include <vector>

#include "view.hpp"

namespace topo {

struct Point {
  double x = 0, y = 0;
};

/// How a link runs from port to port.
enum class Bend : std::uint8_t { none, straight, falling, hanging, over_row, beside_column };

struct Layout {
  double width = 0, height = 0;
  double switch_width = 0, switch_height = 0;
  bool round = false;           ///< switches are circles
  std::vector<Point> switches;  ///< centres
  std::vector<Point> nodes;     ///< centres, by node
  std::vector<Point> ports;     ///< centres, by switch * ports + port, on the edge of the switch
  std::vector<Bend> bends;      ///< by switch and port, at the end a link is drawn from; none at the other
};

inline constexpr double kNodeWidth = 48, kNodeHeight = 30, kPortRadius = 7.5;

/// Rows and columns for a mesh or torus, levels for a tree, a row for a chain that is not too long, cubes in cubes for
/// a hypercube; everything else is spread so that distances in the picture are like distances in the network.
Layout lay_out(const Topology& topology);

/// The layout for everything that has no shape of its own (spread.cpp).
Layout spread_out(const Topology& topology);

/// Circles at these places, with nodes where they cover nothing (spread.cpp).
Layout place_round(const Topology& topology, std::vector<Point> switches);

/// Makes the picture larger until no two switches touch and links keep away from the switches that they pass.
void keep_apart(const Topology& topology, std::vector<Point>& switches);

/// Marks the end that each link is drawn from.
void choose_bends(const Topology& topology, Layout& layout, Bend between_switches, Bend to_nodes);

}  // namespace topo
