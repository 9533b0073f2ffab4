// The slots of a process: room for what it sends, shared by its senders, and the queue they go out by.
#pragma once

#include <cstdint>
#include <vector>

#include "base/solo_mutex.hpp"
#include "fabric/engine/arena.hpp"

namespace ulfm::fabric {

/// Any thread of the process that owns the slots.
class SendSlots {
 public:
  explicit SendSlots(FabricArena& arena) : arena_(arena) {}

  /// Of that endpoint; before the first sender.
  void begin(std::uint32_t endpoint);
  /// Room for somebody who sends: a number for take().
  std::uint32_t add_sender();
  void remove_sender(std::uint32_t sender);
  /// A free slot, to be filled and queued; -1 when there is none for that sender now. One sender may have half of them,
  /// so that a destination that does not read holds up nobody else.
  std::int64_t take(std::uint32_t sender);
  /// A slot has been filled: it is the next in the sending queue.
  void queue(std::uint32_t slot);
  /// Somebody found no slot since this was asked last.
  bool were_full();
  /// The frame in a slot of this process has left the sending queue, of which `taken` is the engine's position.
  bool has_left(std::uint32_t slot, std::uint32_t taken);

 private:
  FabricArena& arena_;
  std::uint32_t self_ = 0;
  std::uint32_t sent_ = 0;  // position in the sending queue
  SoloMutex lock_;
  bool full_ = false;
  std::vector<std::uint32_t> owners_;        // by slot: the sender that took it last
  std::vector<std::int64_t> queued_at_;      // by slot: its position in the queue; -1: it is being filled
  std::vector<std::uint32_t> on_their_way_;  // by sender: slots it has
  std::uint32_t next_ = 0;
};

}  // namespace ulfm::fabric
