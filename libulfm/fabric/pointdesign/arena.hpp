// The arena of a point design:
//
//   Header | cards | processors | ports | lines | mini queues | messages | copies | heap of events | sets of lines
//
// Any process that maps it may have written anything into it: every index read from it is checked before it is used.
#pragma once

#include <bit>
#include <cstddef>

#include "fabric/kit/chain.hpp"
#include "fabric/pointdesign/formats.hpp"
#include "fabric/pointdesign/parameters.hpp"

namespace ulfm::fabric::pointdesign {

struct PointHeader {
  std::uint64_t magic;
  Parameters parameters;

  alignas(64) std::uint64_t now;
  std::uint64_t events;  ///< messages that began on a line, and deliveries: for the budget
  std::uint64_t sequence;
  std::uint64_t version;      ///< of what is dead
  std::uint32_t dead;         ///< lines, cards and processors
  std::uint32_t inside;       ///< messages that have not been handed out
  std::uint32_t reserved;     ///< copies that the messages inside may need
  std::uint32_t free_copy;    ///< a list
  std::uint32_t copies_used;  ///< of the pool, ever
  std::uint32_t heap_size;
  Chain ended;                            ///< messages to hand out
  std::uint32_t there_first, there_last;  ///< copies whose arrival is to be reported, a list
  std::uint32_t there;                    ///< processors that they are at
  std::uint32_t on_lines;                 ///< messages on a line
  std::uint32_t waiting;                  ///< in queues
  Totals totals;
};

struct PointCard {
  std::uint32_t dead;
  CardCounters counters;
};

struct Processor {
  std::uint64_t coprocessor_free;  ///< first cycle in which its coprocessor has dealt with all commands
  std::uint64_t memory_free;       ///< first cycle in which its memory can be fetched from
  std::uint64_t commands;
  std::uint32_t waiting;  ///< messages in its queues
  std::uint32_t dead;
};

struct PointPort {
  std::uint64_t free;  ///< first cycle in which a message may leave by it
  CoprocessorPortCounters counters;
};

struct Line {
  std::uint64_t busy_until;  ///< first cycle in which another message may begin
  std::uint32_t current;     ///< copy on it, that has not been dealt with at its end; kNone
  std::uint32_t claimed;     ///< wormhole: copy that begins in the next cycle; kNone
  std::uint16_t waiting;     ///< queues with something in them, a bit each
  std::uint16_t dead;
  std::uint32_t stored;  ///< wormhole: messages at its end that wait for the next line
  LineCounters counters;
};

/// The queue in front of a line of one processor, the last one of through traffic.
struct Mini {
  std::uint32_t first, last;
  std::uint32_t count;
  std::uint32_t offered;  ///< cycle, its lower bits, in which its queue lets it send
  QueueCounters counters;
};

/// What a program sent, by its frame.
struct PointMessage {
  std::uint32_t source, node;  ///< processors; node: of a unicast, else the source
  std::uint32_t bytes;
  std::uint32_t outstanding;  ///< copies
  std::uint32_t reserved;
  std::uint32_t next;  ///< in the list of those that ended
  std::uint8_t used, lost, ended;
  std::uint8_t each;  ///< it ends for each receiver by itself, and then as a whole
  std::uint64_t cycle;
};

/// A message on its way to one card.
struct Copy {
  std::uint32_t frame;
  std::uint32_t target;   ///< card
  std::uint32_t next;     ///< in its queue, or in the list of free ones
  std::uint32_t line_in;  ///< wormhole: at whose end it waits; kNone
  std::uint64_t ready;    ///< first cycle in which it may leave
  std::uint8_t who;       ///< processors, a bit each
  std::uint8_t kind;      ///< CopyKind
  std::uint8_t refusals;
  std::uint8_t fetching;
};
/// A broadcast's copy goes to the card at the other end of the line it waits for, and on from there.
enum CopyKind : std::uint8_t { kSingle, kSpreading };

/// What happens to a copy in a cycle, in the order in which it was scheduled.
struct TimedCopy {
  std::uint64_t cycle, sequence;
  std::uint32_t copy;
};

/// A set of lines over memory: a bit each, and a bit for each word of them.
class LineSet {
 public:
  LineSet(std::uint64_t* words, std::uint32_t lines) : words_(words), tops_(words + words_of(lines)), lines_(lines) {}
  static constexpr std::uint32_t words_of(std::uint32_t lines) { return (lines + 63) / 64; }
  static constexpr std::size_t bytes(std::uint32_t lines) {
    return (words_of(lines) + words_of(words_of(lines))) * sizeof(std::uint64_t);
  }

  void add(std::uint32_t line) const {
    words_[line / 64] |= std::uint64_t{1} << line % 64;
    tops_[line / 4096] |= std::uint64_t{1} << line / 64 % 64;
  }
  void remove(std::uint32_t line) const {
    if ((words_[line / 64] &= ~(std::uint64_t{1} << line % 64)) == 0)
      tops_[line / 4096] &= ~(std::uint64_t{1} << line / 64 % 64);
  }
  /// In rising order. `what` may add and remove lines up to the one it is given.
  template <typename What>
  void each(What what) const {
    const std::uint32_t words = words_of(lines_);
    for (std::uint32_t top = 0; top < words_of(words); ++top)
      for (std::uint64_t left = tops_[top]; left != 0; left &= left - 1) {
        const std::uint32_t word = top * 64 + static_cast<std::uint32_t>(std::countr_zero(left));
        if (word >= words) break;
        for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
          const std::uint32_t line = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
          if (line < lines_) what(line);
        }
      }
  }
  /// The same, and the set is empty after it; `what` does not touch it.
  template <typename What>
  void take_each(What what) const {
    each([&](std::uint32_t line) {
      remove(line);
      what(line);
    });
  }

 private:
  std::uint64_t* words_;
  std::uint64_t* tops_;
  std::uint32_t lines_;
};

/// The arena as one process sees it.
class PointArena {
 public:
  PointArena(std::byte* base, const Parameters& p);
  std::size_t bytes() const noexcept { return end_; }

  PointHeader& header() const noexcept { return *at<PointHeader>(0); }
  PointCard& card(std::uint32_t i) const noexcept { return at<PointCard>(cards_at_)[i < cards_ ? i : 0]; }
  Processor& processor(std::uint32_t i) const noexcept { return at<Processor>(processors_at_)[i < nodes_ ? i : 0]; }
  PointPort& port(std::uint32_t i) const noexcept { return at<PointPort>(ports_at_)[i < ports_ ? i : 0]; }
  Line& line(std::uint32_t i) const noexcept { return at<Line>(lines_at_)[i < lines_ ? i : 0]; }
  Mini& mini(std::uint32_t i) const noexcept { return at<Mini>(minis_at_)[i < minis_ ? i : 0]; }
  PointMessage& message(std::uint32_t i) const noexcept { return at<PointMessage>(messages_at_)[i < frames_ ? i : 0]; }
  Copy& copy(std::uint32_t i) const noexcept { return at<Copy>(copies_at_)[i < copies_ ? i : 0]; }
  TimedCopy& heap(std::uint32_t i) const noexcept { return at<TimedCopy>(heap_at_)[i < copies_ ? i : 0]; }

  /// Lines in front of which something waits.
  LineSet active() const noexcept { return set(0); }
  /// Lines on which a message begins in that cycle.
  LineSet heads(std::uint64_t cycle) const noexcept { return set(1 + cycle % 2); }
  /// Lines whose message is there as a whole in that cycle.
  LineSet tails(std::uint64_t cycle) const noexcept { return set(3 + cycle % (kMostFlits + 1)); }
  static constexpr std::uint32_t kSets = 3 + kMostFlits + 1;

 private:
  template <typename T>
  T* at(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }
  LineSet set(std::uint64_t i) const noexcept { return {at<std::uint64_t>(sets_at_ + i * set_bytes_), lines_}; }

  std::byte* base_;
  std::uint32_t cards_, nodes_, ports_, lines_, minis_, frames_, copies_;
  std::size_t cards_at_, processors_at_, ports_at_, lines_at_, minis_at_, messages_at_, copies_at_, heap_at_, sets_at_;
  std::size_t set_bytes_, end_;
};

}  // namespace ulfm::fabric::pointdesign
