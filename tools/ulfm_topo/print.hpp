// The forms ulfm_topo prints in.
#pragma once

#include <optional>
#include <string>

#include "view.hpp"

namespace topo {

/// `show`: sizes, a picture, ranks.
std::string text_of(const View& view);
/// The picture alone: drawn with letters for a mesh, torus, chain or tree that is narrow enough, otherwise a
/// list of switches and what is on their ports.
std::string text_picture(const View& view);
std::string json_of(const View& view);

/// A graph for Graphviz.
std::string dot_of(const View& view);
/// A picture, complete in itself.
std::string svg_of(const View& view);

/// `routes`: all of them, or that between two nodes. Printed as they are found; a topology may have millions.
/// False: between these two there is none.
bool print_routes(const View& view, const Options& options);

}  // namespace topo
