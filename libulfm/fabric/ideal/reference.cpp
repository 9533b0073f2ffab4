#include "fabric/ideal/reference.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ulfm::fabric::ideal {

bool Reference::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
  if (from >= nodes_.size() || to >= nodes_.size() || from == to || bytes > kMostBytes) return false;
  const std::uint64_t behind = bytes == 0 ? 0 : bytes - 1;
  nodes_[from].waiting.push_back({frame, from, to, bytes, 0, p_.overhead, behind * p_.byte, p_.latency, p_.overhead});
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
  std::vector<std::pair<std::uint32_t, Ending>> ended;  // with the nodes that sent them
  std::erase_if(moving_, [&](Moving& m) {
    if (!passes(m)) return false;
    ended.push_back({m.from, {m.frame, m.to, now_, true, m.begun}});
    ended_bytes_ += m.bytes;
    --inside_;
    return true;
  });
  std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.begun) < std::tie(b.first, b.second.begun);
  });
  for (const auto& [from, ending] : ended) endings_.push_back(ending);
  ++now_;
}

}  // namespace ulfm::fabric::ideal
