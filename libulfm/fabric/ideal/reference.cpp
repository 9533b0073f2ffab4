#include "fabric/ideal/reference.hpp"

#include <algorithm>

namespace ulfm::fabric::ideal {

bool Reference::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
  if (from >= nodes_.size() || to >= nodes_.size() || from == to || bytes > kMostBytes) return false;
  const std::uint64_t behind = bytes == 0 ? 0 : bytes - 1;
  nodes_[from].waiting.push_back({frame, to, bytes, 0, p_.overhead, behind * p_.byte, p_.latency, p_.overhead});
  ++inside_;
  ++taken_;
  return true;
}

/// One cycle of a message; true when it was the last.
bool Reference::passes(Moving& m) {
  for (std::uint64_t Moving::*const phase : {&Moving::work, &Moving::leaving, &Moving::flight, &Moving::taking})
    if (m.*phase != 0) {
      --(m.*phase);
      break;
    }
  return m.work + m.leaving + m.flight + m.taking == 0;
}

void Reference::step() {
  for (Node& node : nodes_) {
    if (node.processor == 0 && node.gap == 0 && !node.waiting.empty()) {
      Moving moving = node.waiting.front();
      node.waiting.pop_front();
      moving.begun = now_;
      node.processor = moving.work;
      node.gap = moving.leaving + p_.gap;
      node.busy += std::max(node.processor, node.gap);
      moving_.push_back(moving);
    }
    if (node.processor != 0) --node.processor;
    if (node.gap != 0) --node.gap;
  }
  const auto before = static_cast<std::ptrdiff_t>(endings_.size());
  std::erase_if(moving_, [&](Moving& m) {
    if (!passes(m)) return false;
    endings_.push_back({m.frame, m.to, now_, true, m.begun});
    ended_bytes_ += m.bytes;
    --inside_;
    return true;
  });
  std::sort(endings_.begin() + before, endings_.end(),
            [](const Ending& a, const Ending& b) { return a.frame < b.frame; });
  ++now_;
}

}  // namespace ulfm::fabric::ideal
