// The table of a cube whose nodes are on several hosts: each node tells the host program where it is, and the host
// tells all nodes that do not share its table.
#include "engine.hpp"

namespace nx2 {

void NxEngine::send_entry(std::int32_t node, const EntryBody& image) {
  send_free(node, {0, Kind::entry, 0, 0, 0, 0}, &image, sizeof image);
}

void NxEngine::announce() { send_entry(channel_.cube().host(), channel_.cube().image(channel_.self())); }

void NxEngine::share_table() {
  Cube& cube = channel_.cube();
  some_come_ = false;
  for (int node = 0; node < cube.nodes(); ++node) {
    const CubeEntry& entry = cube.entry(node);
    EntryBody& last_sent = shared_[static_cast<std::size_t>(node)];
    const Presence presence = entry.presence.load(std::memory_order_acquire);
    some_come_ = some_come_ || presence == Presence::loading;
    // Whatever changes comes with one of these two.
    if (static_cast<std::uint32_t>(presence) == last_sent.presence && entry.use == last_sent.use) continue;
    const EntryBody image = last_sent = cube.image(node);
    for (int far = 0; far < cube.nodes(); ++far)
      if (far != node && cube.is_far(far) && reach(far) == Channel::Reach::there) send_entry(far, image);
  }
}

// Some process that this one is connected with does not answer any more, and the port does not tell which. Of those on
// other hosts the host program asks each node, and a node asks the host program.
void NxEngine::note_failure() {
  Cube& cube = channel_.cube();
  const auto ask = [this](int node) {
    if (!peers_[static_cast<std::size_t>(node)].left && reach(node) == Channel::Reach::there) control(node, Kind::ping);
  };
  if (cube.exists() && cube.is_copy()) ask(cube.host());
  for (int node = 0; shares_ && node < cube.nodes(); ++node)
    if (cube.is_far(node)) ask(node);
}

int NxEngine::silent_node() const {
  constexpr std::chrono::seconds kToBeTold{2};  // a process that ends is known by its launcher by then
  const auto now = std::chrono::steady_clock::now();
  for (int node = 0; shares_ && node < channel_.cube().nodes(); ++node) {
    const auto& lost_since = peers_[static_cast<std::size_t>(node)].lost_since;
    const CubeEntry& entry = channel_.cube().entry(node);
    if (channel_.cube().is_far(node) && lost_since && now - *lost_since > kToBeTold &&
        entry.presence.load(std::memory_order_acquire) == Presence::open &&
        entry.use == peers_[static_cast<std::size_t>(node)].use)
      return node;
  }
  return -1;
}

// A node has come: the host sends it the entries of all others. Those of an earlier process of that node are too late.
void NxEngine::take_entry(const Header& header, const EntryBody& image) {
  Cube& cube = channel_.cube();
  if (!cube.exists()) return;
  if (cube.is_copy()) {
    const bool is_news = image.node >= 0 && image.node < cube.nodes() && image.node != cube.self();
    if (header.source == cube.host() && is_news) cube.apply(image), ++moved_;
    return;
  }
  const bool comes = shares_ && image.node == header.source && image.node < cube.nodes() &&
                     image.use == cube.entry(image.node).use &&
                     cube.entry(image.node).presence.load(std::memory_order_acquire) == Presence::loading;
  if (!comes) return;
  const std::int32_t ptype = cube.entry(image.node).ptype;
  cube.apply(image);
  cube.entry(image.node).ptype = ptype;  // load() may have given it another since it began
  ++moved_;
  for (int node = 0; node < cube.nodes(); ++node)
    if (node != image.node) send_entry(image.node, cube.image(node));
}

}  // namespace nx2
