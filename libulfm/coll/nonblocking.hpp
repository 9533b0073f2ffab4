// Nonblocking collectives in one turn, through a part of the segment of a communicator (ulfm-collectives(7)).
//
// Every rank makes the calls of a communicator in the same order, so their numbers are the same in all ranks. A call
// has an entry, and a piece of a ring of bytes: the parts of the ranks one behind the other, and a result. All ranks
// know the sizes of all calls, so each finds the place of a call by itself.
//
// What a root gives, when it is a few bytes, lies beside the mark in the entry, so that a receiver reads one line.
//
//   posted     this rank's part is in its place. Calls are posted in order: when the call is made or, while the room is
//              still in use, later, by the progress of this rank.
//   ready      what this rank waits for has been posted. When ranks share cores, each counts itself in, and the last to
//              arrive does the work of all, within its own call. With a core for each rank everyone looks at who has
//              posted, and works for itself. Operations are applied in the order of the ranks either way.
//   finished   this rank has taken its result. What lay in a place is overwritten when all ranks have finished the
//              call.
//
// So a call costs one turn of the scheduler, as a blocking one does, and nobody waits for a rank that has posted and
// computes. One thread at a time.
//
// The calls of a communicator have one such object. A persistent one has its own, because ranks may start persistent
// calls in different orders: its calls are the starts, and its ring has room for two of them.
#pragma once

#include <ulfm/netmod.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/segment.hpp"

namespace ulfm::coll {

struct CallEntry;
struct CallProgress;

/// What a ring has room for.
struct CallRoom {
  std::uint64_t entries;  ///< calls under way at a time; a rank that makes more waits, in its progress
  std::size_t ring;       ///< bytes, of which one call may have a half

  /// For all calls of a communicator of so many ranks.
  static CallRoom of_communicator(int size) noexcept;
  /// For one persistent call.
  static CallRoom of_call(const ulfm_coll_call& call, int size) noexcept;
  /// In a segment.
  std::size_t bytes(int size) const noexcept;
};

class NonblockingCalls {
 public:
  /// `at` is where the room begins, which reads as zero at first; `counts`: ranks share cores.
  NonblockingCalls(Segment& segment, std::size_t at, CallRoom room, int rank, int size, bool counts);

  /// A call of that kind, of which a rank hands over or gets so many bytes, is short enough. The same in all ranks.
  bool fits(int kind, std::size_t bytes) const noexcept;
  /// In GATHERV, SCATTERV and ALLTOALLV no rank knows all sizes, so each block has room for this much, and longer ones
  /// are left out: whoever gives one and whoever gets it know that by themselves.
  std::size_t longest_block(int kind) const noexcept;
  /// Memory for the calls, which the first one asks for otherwise.
  Result<void> commit();
  /// Makes a call that fits, whose buffers stay as they are until it has finished. Then finished() returns `cookie`.
  /// True: it has finished already, and finished() will not return it. An error: there is no memory, and nothing was
  /// done; the calls that follow cannot be made either.
  Result<bool> start(const ulfm_coll_call& call, void* cookie);
  /// Posts and finishes what can be.
  void advance();
  /// Others may have something to do, because of what was called since this was asked last.
  bool take_news() noexcept { return std::exchange(has_news_, false); }
  /// The next call that has finished, in any order, or null.
  void* finished() noexcept;
  /// For failures: forgets the first call that has not finished and returns its cookie; null when there is none.
  void* drop() noexcept;

  /// This rank waits for room, for which others ring. Another rank that got room may have cleared the mark that asks
  /// them to, so naps must be short.
  bool is_starved() const noexcept { return is_starved_; }
  bool has_finished() const noexcept { return !done_.empty(); }
  bool is_open() const noexcept { return !open_.empty(); }
  bool is_idle() const noexcept { return open_.empty() && done_.empty(); }
  /// Kind of the oldest call that has not finished; is_open().
  int kind() const noexcept { return open_.front().call.kind; }
  /// The oldest call may wait for something that this rank has not done yet.
  bool waits_for(int rank) const noexcept;

 private:
  struct OpenCall {
    ulfm_coll_call call;
    void* cookie;
    std::uint64_t number;
    std::uint64_t place = 0, length = 0, stride = 0;  // of its piece of the ring, which has no end
    bool is_in_entry = false;                         // instead of there
    bool is_posted = false, is_finished = false;
  };
  struct Piece {
    std::uint64_t number, place;
  };

  CallProgress& progress(int rank) const noexcept;
  CallEntry& entry(const OpenCall& open) const noexcept;
  std::byte* part(const OpenCall& open, int rank) const noexcept;
  std::byte* result(const OpenCall& open) const noexcept { return part(open, size_); }
  std::size_t bytes_of(const ulfm_coll_call& call) const noexcept;
  void allot(OpenCall& open) noexcept;
  bool has_room(const OpenCall& open) noexcept;
  bool try_to_post(OpenCall& open);
  bool try_to_finish(OpenCall& open);
  void write_part(const OpenCall& open) const noexcept;
  void write_blocks(const OpenCall& open, std::byte* to) const noexcept;
  void arrive(const OpenCall& open);
  void make_ready(const OpenCall& open);
  void work(const OpenCall& open);
  void work_on_scan(const OpenCall& open);
  bool is_ready(const OpenCall& open) noexcept;
  bool all_have_posted(std::uint64_t number) noexcept;
  void take_result(const OpenCall& open);
  void take_blocks(const OpenCall& open) const noexcept;
  void combine(std::byte* into, const OpenCall& open, int last, std::size_t first, std::size_t count) const noexcept;
  void settle();
  void note_finished(std::uint64_t all_before);
  const std::byte* given(const OpenCall& open) const noexcept;

  Segment& segment_;
  std::size_t at_, ring_at_;
  CallRoom room_;
  int rank_, size_;
  bool counts_, committed_ = false, has_news_ = false, is_starved_ = false;
  std::deque<OpenCall> open_;  // in order; finished ones leave when all before them have
  std::deque<void*> done_;
  std::deque<Piece> pieces_;                         // whose room may be in use
  std::uint64_t next_ = 0;                           // number
  std::uint64_t end_ = 0;                            // of the last piece
  std::uint64_t posted_ = 0;                         // calls that this rank has posted
  std::uint64_t all_posted_ = 0, all_finished_ = 0;  // and all ranks, as far as this one has looked
};

}  // namespace ulfm::coll
