// Blocks for neighbours: each rank writes them into its own slot and goes on when its own neighbours have come.
//
// A slot of call k - 2 is written again in call k, so whoever was to read it must have ended call k - 2. A neighbour
// both ways is known to have: this rank has seen it in call k - 1. The others say how many calls they have ended.
#include <algorithm>
#include <iterator>

#include "base/align.hpp"
#include "base/doorbell.hpp"
#include "coll/collective.hpp"

namespace ulfm::coll {

/// What the others have to know of a rank's neighbours, and how far it is.
struct alignas(kLine) NearCard {
  std::atomic<std::uint64_t> ready;
  std::atomic<std::uint64_t> ended;  // calls
  std::int32_t n;                    // whom it gives blocks to; -1: by messages
  std::int32_t to[kMostNear];
};

/// Blocks of one call. In front of each are its bytes.
struct alignas(kLine) NearSlot {
  std::atomic<std::uint64_t> posted;  // one more than the call
  std::uint64_t step;                 // from block to block; 0: one for all
  std::byte blocks[kPage - 2 * sizeof(std::uint64_t)];
};

std::size_t near_cards(int size) noexcept { return up_to(static_cast<std::size_t>(size) * sizeof(NearCard), kPage); }
std::size_t near_bytes(int size) noexcept {
  return near_cards(size) + 2 * static_cast<std::size_t>(size) * sizeof(NearSlot);
}

NearCard& Collective::near_card(int rank) const noexcept { return segment_.at<NearCard>(near_at_)[rank]; }

std::size_t Collective::near_slot_at(int rank, std::uint64_t call) const noexcept {
  static_assert(sizeof(NearSlot) == kPage);
  const std::size_t index = (call & 1) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(rank);
  return near_at_ + near_cards(size_) + index * sizeof(NearSlot);
}

NearSlot& Collective::near_slot(int rank, std::uint64_t call) const noexcept {
  return *segment_.at<NearSlot>(near_slot_at(rank, call));
}

void Collective::ring_near(const std::vector<int>& ranks) noexcept {
  if (counting_) std::atomic_thread_fence(std::memory_order_seq_cst);  // as in wake()
  for (const int rank : ranks) {
    Doorbell& bell = bell_of(rank);
    if (!counting_) bell.ring();
    else if (bell.is_awaited()) bell.wake();
  }
}

// The place of the block that is this rank's `nth` from `of`, among the blocks that one gives; -1: by a message.
int Collective::near_place(int of, int nth) const noexcept {
  const NearCard& card = near_card(of);
  for (int i = 0; i < card.n; ++i)
    if (card.to[i] == rank_ && nth-- == 0) return i;
  return -1;
}

int Collective::near_open(std::span<const int> from, std::span<const int> to) {
  const auto contains = [](auto&& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  for (std::uint64_t parity = 0; parity < 2; ++parity)
    if (!segment_.commit(near_slot_at(rank_, parity), sizeof(NearSlot))) return abandon(kNoMemory);
  NearCard& own = near_card(rank_);
  own.n = to.size() > std::size(own.to) ? -1 : static_cast<std::int32_t>(to.size());
  for (std::size_t i = 0; own.n > 0 && i < to.size(); ++i) own.to[i] = to[i];
  own.ready.store(1, std::memory_order_release);
  near_ = std::make_unique<Near>();
  for (const int rank : to)
    if (rank >= 0 && rank != rank_ && !contains(near_->to, rank)) near_->to.push_back(rank);
  for (const int rank : from)
    if (rank >= 0 && rank != rank_ && !contains(near_->from, rank)) near_->from.push_back(rank);
  wake();
  for (const auto* ranks : {&near_->to, &near_->from})
    for (const int rank : *ranks)
      if (const int why = await_count(rank, near_card(rank).ready, 1); why != 0) return why;
  for (const int rank : near_->to)
    if (!contains(near_->from, rank) || near_card(rank).n < 0) near_->tells_end.push_back(rank);
  for (const int rank : near_->from)
    if (!contains(near_->to, rank) || own.n < 0) near_->told_end.push_back(rank);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto before = std::count(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(i), from[i]);
    near_->places.push_back(from[i] < 0 ? -1 : near_place(from[i], static_cast<int>(before)));
  }
  return 0;
}

int Collective::near_begin(std::byte*& blocks, std::size_t& room) {
  if (const int why = why_broken(); why != 0) return why;
  const std::uint64_t call = near_->call;
  for (const int rank : near_->tells_end)
    if (const auto& ended = near_card(rank).ended; call >= 2 && ended.load(std::memory_order_acquire) < call - 1)
      if (const int why = await_count(rank, ended, call - 1); why != 0) return why;
  blocks = near_slot(rank_, call).blocks;
  room = near_card(rank_).n < 0 ? 0 : sizeof(NearSlot::blocks);
  return 0;
}

void Collective::near_post(std::size_t step) noexcept {
  NearSlot& slot = near_slot(rank_, near_->call);
  slot.step = step;
  slot.posted.store(near_->call + 1, std::memory_order_release);
  ring_near(near_->to);
}

int Collective::near_take(int index, int from, const std::byte*& block) {
  block = nullptr;
  const int place = near_->places[static_cast<std::size_t>(index)];
  if (place < 0) return 0;
  const NearSlot& slot = near_slot(from, near_->call);
  if (slot.posted.load(std::memory_order_acquire) <= near_->call)
    if (const int why = await_count(from, slot.posted, near_->call + 1); why != 0) return why;
  block = slot.blocks + static_cast<std::size_t>(place) * slot.step;
  return 0;
}

void Collective::near_end() noexcept {
  ++near_->call;
  near_card(rank_).ended.store(near_->call, std::memory_order_release);
  if (!near_->told_end.empty()) ring_near(near_->told_end);
}

}  // namespace ulfm::coll
