// Queues of the relay's records. A record is in the journal before the number behind it changes.
#pragma once

#include "fabric/pcie/arena.hpp"

namespace ulfm::fabric::pcie {

/// Puts a record, which is being edited, at the end. `find` finds the one that was last.
template <typename Record, typename Find>
void push(const BoardArena& arena, Queue& queue, std::uint32_t id, Record& record, std::uint32_t Record::*next,
          Find find) {
  record.*next = kNone;
  if (queue.first == kNone) queue.first = id;
  else arena.edit(find(queue.last)).*next = id;
  queue.last = id;
}

/// Takes the first one off, behind which is `next`.
inline void pop(Queue& queue, std::uint32_t next) {
  queue.first = next;
  if (next == kNone) queue.last = kNone;
}

/// Takes a record out, wherever it is; false when it is not there. `most`: no queue is longer.
template <typename Record, typename Find>
bool remove(const BoardArena& arena, Queue& queue, std::uint32_t id, std::uint32_t Record::*next, Find find,
            std::uint32_t most) {
  std::uint32_t before = kNone, at = queue.first;
  for (; at != kNone && at != id; --most) {
    if (most == 0) return false;
    before = at;
    at = find(at).*next;
  }
  if (at == kNone) return false;
  const std::uint32_t after = find(at).*next;
  if (before == kNone) queue.first = after;
  else arena.edit(find(before)).*next = after;
  if (queue.last == id) queue.last = before;
  return true;
}

}  // namespace ulfm::fabric::pcie
