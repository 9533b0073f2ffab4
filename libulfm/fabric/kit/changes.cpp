#include "fabric/kit/changes.hpp"

namespace ulfm::fabric {

Changes::Size Changes::Size::of(const std::vector<TopologyChange>& changes) noexcept {
  Size size{static_cast<std::uint32_t>(changes.size()), 0};
  for (const TopologyChange& change : changes) size.links += static_cast<std::uint32_t>(change.links.size());
  return size;
}

void Changes::write(std::byte* memory, const std::vector<TopologyChange>& changes) {
  std::vector<Step> steps;
  auto* link = reinterpret_cast<SwitchPort*>(memory + Schedule<Step>::bytes(changes.size()));
  std::uint32_t first = 0;
  for (const TopologyChange& change : changes) {
    const auto links = static_cast<std::uint32_t>(change.links.size());
    steps.push_back({change.at, change.dead_switch, first, links, change.up});
    link = std::copy(change.links.begin(), change.links.end(), link);
    first += links;
  }
  Schedule<Step>::write(memory, steps);
}

}  // namespace ulfm::fabric
