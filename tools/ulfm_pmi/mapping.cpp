#include <vector>

#include <fmt/core.h>

#include "launcher.hpp"

namespace pmi {

// A block is a number of nodes in a row that have the same number of ranks each; ranks go through the blocks in order.
std::string mapping_text(const std::vector<int>& node_of) {
  struct Block {
    int first, nodes, ranks;
  };
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < node_of.size();) {
    std::size_t end = at;
    while (end < node_of.size() && node_of[end] == node_of[at]) ++end;
    const int ranks = static_cast<int>(end - at);
    if (!blocks.empty() && blocks.back().ranks == ranks && blocks.back().first + blocks.back().nodes == node_of[at])
      ++blocks.back().nodes;
    else blocks.push_back({node_of[at], 1, ranks});
    at = end;
  }
  std::string text = "(vector";
  for (const Block& b : blocks) text += fmt::format(",({},{},{})", b.first, b.nodes, b.ranks);
  return fmt::format("{})", text);
}

}  // namespace pmi
