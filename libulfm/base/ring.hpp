// The two rings of cells that live in shared memory, each half as a small class of its own.
//
//   lane       one producer, one consumer, wait-free; small messages inside the cell, larger ones in a byte ring
//   open ring  any number of producers, one consumer, lock-free; fixed slots of a cell and its body
//
// Everything a consumer reads from a cell was written by another process and is checked before use.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/cell.hpp"
#include "base/common_cell.hpp"
#include "base/doorbell.hpp"
#include "base/gather.hpp"

namespace ulfm {

/// elsewhere: a frame, taken, whose data lie in no ring.
enum class Peek { nothing, frame, elsewhere, broken };

/// A position in a ring together with its lap, so that no division is on the message path.
class RingCursor {
 public:
  explicit RingCursor(std::uint32_t cells = 1) noexcept : mask_(cells - 1) {}
  std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(position_) & mask_; }
  std::uint64_t position() const noexcept { return position_; }
  std::uint16_t lap() const noexcept { return lap_; }
  void advance() noexcept {
    if ((++position_ & mask_) == 0 && ++lap_ == 0) lap_ = 1;
  }

 private:
  std::uint64_t position_ = 0;
  std::uint32_t mask_;
  std::uint16_t lap_ = 1;
};

/// Where the parts of a lane lie. `cells` and `capacity` are powers of two.
struct LaneMemory {
  Cell* cells = nullptr;
  std::byte* bytes = nullptr;
  std::atomic<std::uint64_t>* consumed = nullptr;  ///< cells released by the consumer; its own line
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
  RoomBell* room = nullptr;  ///< rung when cells are released; may be missing
};

/// Sending half of a lane. One thread at a time.
class LaneProducer {
 public:
  LaneProducer() = default;
  /// `usable` bytes of the byte ring have memory so far; the rest is asked for when traffic needs it: see wanted().
  LaneProducer(const LaneMemory& memory, std::size_t usable)
      : memory_(memory), head_(memory.count), first_window_(usable), usable_(usable), ends_(memory.count, 0) {}
  explicit LaneProducer(const LaneMemory& memory) : LaneProducer(memory, memory.capacity) {}

  /// push() for what lies in one piece and fits a cell that is known to be free: the usual message, without a call.
  /// False, with nothing taken, for everything else, which may still find room.
  [[gnu::always_inline]] bool push_small(Kind kind, std::uint32_t origin, const std::byte* header,
                                         std::size_t header_length, Gather& data, std::size_t length) noexcept {
    if (head_.position() - consumed_ >= memory_.count || !fits_inline(header_length, length) ||
        !data.in_one_piece(length))
      return false;
    Cell* const common = common_cell(kind);
    Cell& cell = next_cell(common);
    copy_bytes(cell.bytes, header, header_length);
    data.copy_piece(cell.bytes + header_length, length);
    cell.offset = 0;
    last_need_ = 0;
    publish(common, kind, origin, header_length, length);
    return true;
  }

  /// Puts one frame of `length` bytes from `data` behind `header`; false, with nothing taken, when there is no room.
  bool push(Kind kind, std::uint32_t origin, const std::byte* header, std::size_t header_length, Gather& data,
            std::size_t length) noexcept {
    if (!has_cell()) return false;
    Cell* const common = header_length <= kInline ? common_cell(kind) : nullptr;
    Cell& cell = next_cell(common);
    if (fits_inline(header_length, length)) {
      copy_bytes(cell.bytes, header, header_length);
      data.copy(cell.bytes + header_length, length);
      cell.offset = 0;
      last_need_ = 0;
    } else if (common != nullptr && length <= kBeside) {
      copy_bytes(cell.bytes, header, header_length);
      data.copy(beside(common), length);
      cell.offset = kBesideCell;
      last_need_ = 0;
    } else if (!place_body(cell, header, header_length, data, length)) {
      return false;
    }
    publish(common, kind, origin, header_length, length);
    return true;
  }

  /// A cell is free.
  bool has_cell() noexcept {
    return head_.position() - consumed_ < memory_.count || refresh(head_.position() - memory_.count + 1);
  }
  /// push() of a frame whose data lie in place number `place`, which both sides understand. There is a free cell, and
  /// the header fits it.
  void push_elsewhere(Kind kind, std::uint32_t origin, const std::byte* header, std::size_t header_length,
                      std::uint32_t place, std::size_t length) noexcept {
    Cell* const common = common_cell(kind);
    Cell& cell = next_cell(common);
    copy_bytes(cell.bytes, header, header_length);
    cell.offset = kElsewhere | place;
    last_need_ = 0;
    publish(common, kind, origin, header_length, length);
  }

  /// Frames of messages go there when it is this side's turn. Before the first push.
  void use_common(CommonCell& cell) noexcept { common_ = &cell; }

  /// The consumer has released something since the last look: another push may find room. Relaxed: that push looks
  /// anew.
  bool has_news() const noexcept { return memory_.consumed->load(std::memory_order_relaxed) != consumed_; }
  /// After a push that found no room: bytes of the byte ring that would help if they had memory; 0 when none would.
  std::size_t wanted() const noexcept { return wanted_; }
  /// So many bytes have memory now.
  void grant(std::size_t usable) noexcept {
    usable_ = usable;
    wanted_ = 0;
  }

  /// More frames like the last one will follow at once. The lines of several are taken over from the consumer's core
  /// by stores side by side: these wait together, and stores of one frame at a time wait each for itself (decision
  /// 0039). Writes only where nothing is published.
  void own_ahead() noexcept {
    if (head_.position() % kAhead == 0) own_cells();
    if (last_need_ != 0 && last_need_ <= kLongestOwned && byte_head_ - owned_from_ >= owned_) own_bodies();
  }

  /// Frames pushed so far.
  std::uint64_t position() const noexcept { return head_.position(); }
  /// There is room for a frame of any size again.
  bool relieved() noexcept {
    refresh(0);
    return head_.position() - consumed_ < memory_.count / 2 && byte_head_ - byte_tail_ <= memory_.capacity / 2;
  }

 private:
  Cell* common_cell(Kind kind) const noexcept {
    return common_ != nullptr && (kind == Kind::first || kind == Kind::more) ? common_->to_write() : nullptr;
  }

  // Where the next frame's cell lies: the common one, or without it the ring's.
  Cell& next_cell(Cell* common) const noexcept { return common != nullptr ? *common : memory_.cells[head_.index()]; }

  void publish(Cell* common, Kind kind, std::uint32_t origin, std::size_t header_length, std::size_t length) noexcept {
    ends_[head_.index()] = byte_head_;
    Cell& cell = next_cell(common);
    cell.origin = common != nullptr ? static_cast<std::uint32_t>(head_.position()) : origin;
    const std::uint16_t lap = common != nullptr ? leave_out() : head_.lap();
    const Word word{lap, kind, static_cast<std::uint8_t>(header_length), static_cast<std::uint32_t>(length)};
    cell.word.store(word.pack(), std::memory_order_release);  // pairs with LaneConsumer::next: cell, body
    head_.advance();
  }

  // A frame goes into the common cell in place of the ring's. That one keeps the word of an earlier lap, which must not
  // be there any more when laps have been counted once round.
  std::uint16_t leave_out() noexcept {
    if (head_.lap() % kLapsKept == 0) [[unlikely]]
      memory_.cells[head_.index()].word.store(0, std::memory_order_relaxed);
    return common_->begin_turn();
  }

  // Looks how far the consumer is; true when it has released at least `wanted` cells.
  [[gnu::noinline]] bool refresh(std::uint64_t wanted) noexcept {
    const std::uint64_t seen = memory_.consumed->load(std::memory_order_acquire);  // pairs with LaneConsumer::publish
    if (seen > head_.position() || seen < consumed_) return false;  // nonsense from outside: treat as full
    if (seen != consumed_) {
      consumed_ = seen;
      // Never back: an empty ring may have been left for its beginning since that cell was written.
      byte_tail_ = std::max(byte_tail_, ends_[static_cast<std::uint32_t>(seen - 1) & (memory_.count - 1)]);
    }
    return consumed_ >= wanted;
  }

  [[gnu::noinline]] bool place_body(Cell& cell, const std::byte* header, std::size_t header_length, Gather& data,
                                    std::size_t length) noexcept {
    const std::size_t need = (body_bytes(header_length, length) + kLine - 1) & ~(kLine - 1);
    std::uint64_t at = byte_head_;
    if (!choose_place(at, need)) return false;
    std::byte* body = memory_.bytes + (at & (memory_.capacity - 1));
    cell.offset = static_cast<std::uint32_t>(at & (memory_.capacity - 1));
    if (header_length > kInline) {
      std::memcpy(body, header, header_length);
      body += (header_length + 7) & ~std::size_t{7};
    } else {
      copy_bytes(cell.bytes, header, header_length);
    }
    data.copy(body, length);
    byte_head_ = at + need;
    last_need_ = need;
    return true;
  }

  // Where the next body goes. The first window is used again and again while the consumer keeps up, which keeps its
  // lines in the caches; a stream that runs ahead goes on into the rest of the ring.
  bool choose_place(std::uint64_t& at, std::size_t need) noexcept {
    std::uint64_t offset = at & (memory_.capacity - 1);
    if (offset + need > first_window_) {
      refresh(0);
      const bool empty = byte_tail_ == at;
      const bool beyond = offset + need > memory_.capacity;  // bodies are contiguous
      if (offset != 0 && (empty || beyond)) {
        at += memory_.capacity - offset;
        offset = 0;
        if (empty) byte_tail_ = byte_head_ = at;
      }
      if (offset + need > usable_) {
        // With all of the ring usable it is a frame that fits no lane of this size.
        wanted_ = usable_ < memory_.capacity
                      ? std::min<std::size_t>(memory_.capacity, std::max(2 * usable_, offset + need))
                      : 0;
        return false;
      }
    }
    if (at + need - byte_tail_ <= memory_.capacity) return true;
    refresh(0);
    return at + need - byte_tail_ <= memory_.capacity;
  }

  void own_cells() noexcept {
    const std::uint64_t until = std::min(head_.position() + kAhead, consumed_ + memory_.count);
    for (std::uint64_t at = head_.position(); at < until; ++at)
      memory_.cells[static_cast<std::uint32_t>(at) & (memory_.count - 1)].offset = 0;
  }

  // The place of the next bodies, up to where the window or what is free ends.
  [[gnu::noinline]] void own_bodies() noexcept {
    const std::uint64_t offset = byte_head_ & (memory_.capacity - 1);
    const std::uint64_t free = byte_tail_ + memory_.capacity - byte_head_;
    const std::uint64_t window = first_window_ > offset ? first_window_ - offset : 0;
    owned_from_ = byte_head_;
    owned_ = std::min({std::uint64_t{last_need_ <= 4 * kLine ? 8 * kLine : 32 * kLine}, free, window});
    constexpr std::uint64_t kNothing = 0;
    for (std::uint64_t at = 0; at < owned_; at += kLine)
      std::memcpy(memory_.bytes + offset + at, &kNothing, sizeof kNothing);
  }

  static constexpr std::uint32_t kAhead = 8;  // frames whose lines are taken over at once
  static constexpr std::uint16_t kLapsKept = 1 << 14;
  static constexpr std::size_t kLongestOwned = 16 * kLine;

  LaneMemory memory_;
  CommonCell* common_ = nullptr;
  RingCursor head_;
  std::size_t first_window_ = 0, usable_ = 0, wanted_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t byte_head_ = 0, byte_tail_ = 0;
  std::size_t last_need_ = 0;                 // of the byte ring, by the last frame
  std::uint64_t owned_from_ = 0, owned_ = 0;  // bytes that own_bodies() took over last
  std::vector<std::uint64_t> ends_;           // per cell: byte_head_ after it, so that `consumed` alone frees the bytes
};

/// Receiving half of a lane. One thread at a time. Frames may be released in any order.
class LaneConsumer {
 public:
  LaneConsumer() = default;
  explicit LaneConsumer(const LaneMemory& memory)
      : memory_(memory), read_(memory.count), released_flags_(memory.count, 0) {}

  /// Pairs with LaneProducer::push, as next() does, which looks again before it reads the cell.
  bool ready() const noexcept {
    std::uint64_t w = memory_.cells[read_.index()].word.load(std::memory_order_acquire);
    if (static_cast<std::uint16_t>(w) == read_.lap()) return true;
    return common_ != nullptr && common_->arrived(read_.position(), w) != nullptr;
  }

  /// Frames of that origin may come there, too. Before the first look.
  void use_common(CommonCell& cell, std::uint32_t origin) noexcept {
    common_ = &cell;
    origin_ = origin;
  }

  /// next() for a frame of a message that lies in its cell and is of that origin: the usual one, without a call. False,
  /// with nothing taken, for everything else, which may still be a frame.
  [[gnu::always_inline]] bool next_small(Frame& frame, std::uint32_t origin) noexcept {
    const Cell& cell = memory_.cells[read_.index()];
    const std::uint64_t packed = cell.word.load(std::memory_order_acquire);  // pairs with LaneProducer's publish()
    const Word word = Word::unpack(packed);
    if (word.lap != read_.lap() || !is_message(word.kind) || !fits_inline(word.header, word.length) ||
        cell.origin != origin)
      return false;
    take(cell.bytes, word, origin, cell.bytes + word.header, frame);
    return true;
  }

  /// Takes the next frame, if there is one.
  Peek next(Frame& frame) noexcept {
    const Cell& cell = memory_.cells[read_.index()];
    const std::uint64_t packed = cell.word.load(std::memory_order_acquire);  // pairs with LaneProducer::push
    if (static_cast<std::uint16_t>(packed) == read_.lap())
      return read(cell.bytes, cell.offset, cell.origin, Word::unpack(packed), frame);
    return common_ != nullptr ? next_common(frame) : Peek::nothing;
  }

  /// After next() found a frame elsewhere: the number of its place, as its sender says.
  std::uint32_t place() const noexcept { return place_; }

  void release(const Frame& frame) noexcept {
    if (common_ != nullptr) release_common(frame);
    pending_bytes_ += frame.length;
    if (frame.position == released_ && out_of_order_ == 0) [[likely]]
      ++released_;
    else release_out_of_order(frame.position);
    if (released_ - published_ >= memory_.count / 4 || pending_bytes_ >= memory_.capacity / 4) publish();
  }

  /// Position up to which everything has been taken while something before it is still held; 0 when nothing is held.
  std::uint64_t pinned() const noexcept { return released_ != read_.position() ? read_.position() : 0; }

  /// Tells the producer what has been released; called at the latest when nothing more is there. False: nothing has.
  bool publish() noexcept {
    if (released_ == published_) return false;
    published_ = released_;
    pending_bytes_ = 0;
    memory_.consumed->store(released_, std::memory_order_release);  // pairs with LaneProducer::refresh: all read
    if (memory_.room != nullptr) memory_.room->ring();
    return true;
  }

 private:
  // Makes sense of a cell. What was checked is handed on: it could be another thing when it is read again.
  Peek read(const std::byte* bytes, std::uint32_t offset, std::uint32_t origin, const Word& word,
            Frame& frame) noexcept {
    if (!is_carried(word.kind)) return Peek::broken;
    if (fits_inline(word.header, word.length)) {
      take(bytes, word, origin, bytes + word.header, frame);
      return Peek::frame;
    }
    if ((offset & kElsewhere) != 0) {
      if (word.header > kInline || !is_message(word.kind)) return Peek::broken;
      take(bytes, word, origin, nullptr, frame);
      place_ = offset & ~kElsewhere;
      return Peek::elsewhere;
    }
    const std::byte* body = locate_body(offset, word);
    if (body == nullptr) return Peek::broken;
    take(bytes, word, origin, body + (body_bytes(word.header, word.length) - word.length), frame);
    if (word.header > kInline) frame.header = body;
    return Peek::frame;
  }

  // The frame in the common cell. It is copied, so that an answer can be written there while it is held; with all
  // copies held it stays where it is.
  Peek next_common(Frame& frame) noexcept {
    std::uint64_t packed = 0;
    const Cell* const cell = common_->arrived(read_.position(), packed);
    if (cell == nullptr) return Peek::nothing;
    const Word word = Word::unpack(packed);
    if (!is_message(word.kind) || word.header > kInline) return Peek::broken;
    const std::uint32_t offset = cell->offset;
    const bool is_beside = offset == kBesideCell && word.length <= kBeside && !fits_inline(word.header, word.length);
    common_->expect(is_beside ? word.length : 0);
    if (is_beside) {
      take(cell->bytes, word, origin_, beside(cell), frame);
      frame.shared_room = true;
      return Peek::frame;
    }
    const int place = std::countr_one(copies_held_);
    if (place >= kCopies) {
      const Peek peek = read(cell->bytes, offset, origin_, word, frame);
      frame.shared_room = true;
      return peek;
    }
    Copy& copy = copies_[place];
    std::memcpy(copy.bytes, cell->bytes, kInline);
    copies_held_ |= static_cast<std::uint8_t>(1u << place);
    common_->taken();
    return read(copy.bytes, offset, origin_, word, frame);
  }

  void release_common(const Frame& frame) noexcept {
    const std::size_t at = reinterpret_cast<std::uintptr_t>(frame.header) - reinterpret_cast<std::uintptr_t>(copies_);
    if (at < sizeof copies_) copies_held_ &= static_cast<std::uint8_t>(~(1u << at / sizeof(Copy)));
    else if (common_->holds(frame.header)) common_->taken();
  }

  // A frame, whose cell has been made sense of.
  void take(const std::byte* header, const Word& word, std::uint32_t origin, const std::byte* data,
            Frame& frame) noexcept {
    frame.header = header;
    frame.data = data;
    frame.header_length = word.header;
    frame.length = word.length;
    frame.kind = word.kind;
    frame.origin = origin;
    frame.position = read_.position();
    frame.shared_room = false;
    read_.advance();
  }

  static constexpr bool is_message(Kind kind) noexcept { return kind == Kind::first || kind == Kind::more; }
  static constexpr bool is_carried(Kind kind) noexcept {
    return is_message(kind) || kind == Kind::bye || kind == kCellLane || kind == kCellShared || kind == kCellPool ||
           kind == kCellExchange;
  }

  [[gnu::noinline]] void release_out_of_order(std::uint64_t position) noexcept {
    flag(position) = 1;
    ++out_of_order_;
    while (out_of_order_ != 0 && flag(released_)) {
      flag(released_) = 0;
      --out_of_order_;
      ++released_;
    }
  }

  // Where the body of a cell lies; nullptr when that is outside.
  const std::byte* locate_body(std::uint32_t offset, const Word& word) const noexcept {
    const std::size_t body = body_bytes(word.header, word.length);
    if (offset > memory_.capacity || body > memory_.capacity - offset) return nullptr;
    const std::byte* at = memory_.bytes + offset;
    prefetch_body(at, body);
    return at;
  }
  std::uint8_t& flag(std::uint64_t position) noexcept {
    return released_flags_[static_cast<std::uint32_t>(position) & (memory_.count - 1)];
  }

  static constexpr int kCopies = 4;
  struct Copy {
    alignas(16) std::byte bytes[kInline];
  };

  LaneMemory memory_;
  CommonCell* common_ = nullptr;
  RingCursor read_;
  std::uint32_t origin_ = 0;      // of what comes in the common cell
  std::uint8_t copies_held_ = 0;  // bits
  Copy copies_[kCopies];
  std::uint64_t released_ = 0, published_ = 0;
  std::size_t pending_bytes_ = 0;
  std::uint32_t out_of_order_ = 0;
  std::uint32_t place_ = 0;
  std::vector<std::uint8_t> released_flags_;
};

/// Where the parts of an open ring lie: `count` slots (a power of two) of `stride` bytes, cell first.
struct OpenMemory {
  std::byte* slots = nullptr;
  /// Where to look for a free slot. The slot's own word decides, so an old value costs a look and no more. Who sees it
  /// move sees the claims before: release and acquire, all in OpenProducer::claim.
  std::atomic<std::uint64_t>* tail = nullptr;
  std::uint32_t count = 0;
  std::uint32_t stride = 0;

  Cell& cell(std::uint64_t position) const noexcept {
    return *reinterpret_cast<Cell*>(slots + std::size_t{stride} * (position & (count - 1)));
  }
  std::byte* body(std::uint64_t position) const noexcept {
    return reinterpret_cast<std::byte*>(&cell(position)) + sizeof(Cell);
  }
  /// Most bytes of data behind a header of that length.
  std::size_t room(std::size_t header) const noexcept { return stride - sizeof(Cell) - body_bytes(header, 0); }
};

/// Sending to an open ring. Stateless; any thread of any process.
class OpenProducer {
 public:
  OpenProducer() = default;
  explicit OpenProducer(const OpenMemory& memory) : memory_(memory) {}

  bool push(Kind kind, std::uint32_t origin, const std::byte* header, std::size_t header_length, Gather& data,
            std::size_t length) const noexcept {
    std::uint64_t position = 0;
    if (!claim(origin, position)) return false;
    fill(position, kind, origin, header, header_length, data, length);
    return true;
  }

  /// Takes the next slot for `origin`: one compare-and-swap on the slot's own cell, so that a claim always names its
  /// claimer and can be skipped if that process dies before it publishes.
  bool claim(std::uint32_t origin, std::uint64_t& position) const noexcept {
    std::uint64_t t = memory_.tail->load(std::memory_order_acquire);
    for (;;) {
      Cell& cell = memory_.cell(t);
      const std::uint16_t lap = lap_of(t, memory_.count);
      std::uint64_t expected = Word{lap, kCellFree, 0, 0}.pack();
      // Acquire pairs with OpenConsumer::release: the slot's old content has been read. Release pairs with stuck_on():
      // a process that finds the claim finds its claimer's record.
      if (cell.word.compare_exchange_strong(expected, Word{lap, kCellClaimed, 0, origin}.pack(),
                                            std::memory_order_acq_rel)) {
        std::uint64_t seen = t;
        memory_.tail->compare_exchange_strong(seen, t + 1, std::memory_order_release);
        position = t;
        return true;
      }
      std::uint64_t seen = t;
      if (Word::unpack(expected).lap == lap) {
        // Taken in this lap: help its claimer move the tail, and look at the next slot.
        memory_.tail->compare_exchange_strong(seen, t + 1, std::memory_order_release);
        t = memory_.tail->load(std::memory_order_acquire);
        continue;
      }
      seen = memory_.tail->load(std::memory_order_acquire);
      if (seen == t && Word::unpack(expected).lap == lap_of(t + memory_.count, memory_.count)) {
        // Taken, read and released already: the claimer died before it moved the tail. Do it for it.
        memory_.tail->compare_exchange_strong(seen, t + 1, std::memory_order_release);
        seen = memory_.tail->load(std::memory_order_acquire);
      }
      if (seen == t) return false;  // the consumer has not released the slot: full
      t = seen;
    }
  }

  /// The next slot is free. Relaxed: the push that follows looks anew.
  bool has_room() const noexcept {
    const std::uint64_t t = memory_.tail->load(std::memory_order_relaxed);
    const Word word = Word::unpack(memory_.cell(t).word.load(std::memory_order_relaxed));
    return word.kind == kCellFree && word.lap == lap_of(t, memory_.count);
  }

  void fill(std::uint64_t position, Kind kind, std::uint32_t origin, const std::byte* header, std::size_t header_length,
            Gather& data, std::size_t length) const noexcept {
    Cell& cell = memory_.cell(position);
    std::byte* body = memory_.body(position);
    copy_bytes(header_length > kInline ? body : cell.bytes, header, header_length);
    std::byte* to =
        fits_inline(header_length, length) ? cell.bytes + header_length : body + body_bytes(header_length, 0);
    if (length != 0) data.copy(to, length);
    cell.offset = 0;
    cell.origin = origin;
    const Word word{lap_of(position, memory_.count), kind, static_cast<std::uint8_t>(header_length),
                    static_cast<std::uint32_t>(length)};
    cell.word.store(word.pack(), std::memory_order_release);  // pairs with OpenConsumer::next
  }

 private:
  OpenMemory memory_;
};

/// Receiving from an open ring. One thread at a time; frames may be released in any order.
class OpenConsumer {
 public:
  OpenConsumer() = default;
  explicit OpenConsumer(const OpenMemory& memory) : memory_(memory), read_(memory.count) {}

  /// Makes every slot free for lap 1; the owner does it once, and what opens the port publishes it.
  static void initialise(const OpenMemory& memory) noexcept {
    for (std::uint32_t i = 0; i < memory.count; ++i)
      memory.cell(i).word.store(Word{1, kCellFree, 0, 0}.pack(), std::memory_order_relaxed);
  }

  /// Pairs with OpenProducer::fill, as next() does, which looks again before it reads the cell.
  bool ready() const noexcept {
    const Word word = Word::unpack(memory_.cell(read_.position()).word.load(std::memory_order_acquire));
    return word.lap == read_.lap() && word.kind != kCellFree && word.kind != kCellClaimed;
  }

  Peek next(Frame& frame) noexcept {
    const Cell& cell = memory_.cell(read_.position());
    const Word word = Word::unpack(cell.word.load(std::memory_order_acquire));  // pairs with OpenProducer::fill
    if (word.lap != read_.lap() || word.kind == kCellFree || word.kind == kCellClaimed) return Peek::nothing;
    frame.kind = word.kind;
    frame.origin = cell.origin;
    frame.position = read_.position();
    frame.header_length = word.header;
    frame.length = word.length;
    read_.advance();
    if (word.kind > kCellSkip) return Peek::broken;
    const bool inline_data = fits_inline(word.header, word.length);
    if (!inline_data &&
        (body_bytes(word.header, 0) > memory_.stride - sizeof(Cell) || word.length > memory_.room(word.header)))
      return Peek::broken;
    const std::byte* body = memory_.body(frame.position);
    frame.header = word.header > kInline ? body : cell.bytes;
    frame.data = inline_data ? cell.bytes + word.header : body + body_bytes(word.header, 0);
    return Peek::frame;
  }

  void release(const Frame& frame) noexcept {
    const std::uint16_t lap = lap_of(frame.position + memory_.count, memory_.count);
    memory_.cell(frame.position)
        .word.store(Word{lap, kCellFree, 0, 0}.pack(),
                    std::memory_order_release);  // pairs with OpenProducer::claim
  }

  /// A frame of that origin, or a claim, is in the ring and has not been taken: also behind a claim that hides it. What
  /// a process wrote before it was seen to have ended is found.
  bool has_frames_of(std::uint32_t origin) const noexcept {
    RingCursor at = read_;
    for (std::uint32_t i = 0; i < memory_.count; ++i, at.advance()) {
      const Cell& cell = memory_.cell(at.position());
      const Word word = Word::unpack(cell.word.load(std::memory_order_acquire));  // pairs with OpenProducer::fill
      if (word.lap != at.lap() || word.kind == kCellFree) return false;           // slots are claimed in order
      if (word.kind == kCellClaimed ? word.length == origin : word.kind != kCellSkip && cell.origin == origin)
        return true;
    }
    return false;
  }

  /// A slot is claimed but not published: whose claim it is. For finding claims of dead processes.
  bool stuck_on(std::uint32_t& origin) const noexcept {
    // Pairs with nothing: a claim publishes no more than the word itself, which says whose it is.
    const Word word = Word::unpack(memory_.cell(read_.position()).word.load(std::memory_order_acquire));
    if (word.lap != read_.lap() || word.kind != kCellClaimed) return false;
    origin = word.length;
    return true;
  }
  /// Turns the claim of a process known to be dead into a frame that carries nothing.
  void skip_claim(std::uint32_t origin) noexcept {
    // Pairs with nothing: only its claimer could change the word, and next() reads it in this thread.
    std::uint64_t expected = Word{read_.lap(), kCellClaimed, 0, origin}.pack();
    memory_.cell(read_.position())
        .word.compare_exchange_strong(expected, Word{read_.lap(), kCellSkip, 0, 0}.pack(), std::memory_order_acq_rel);
  }

 private:
  OpenMemory memory_;
  RingCursor read_;
};

}  // namespace ulfm
