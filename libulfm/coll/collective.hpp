// Collectives in one turn, through a segment that the ranks of a communicator share (ulfm-collectives(7)).
//
// Every rank has two slots. In round k a rank writes its part into its slot k mod 2 and posts it. With a core for each
// rank the others look at each rank's mark; with fewer cores each counts itself in, the last to arrive does the work of
// all, in rank order, and flips the epoch. Either way an operation is applied in rank order to the same values, so the
// result is the same to the bit. A rank begins round k only when all have posted round k - 1, that is when nobody reads
// round k - 2 any more: two slots suffice, and a rank that need not wait for others (a broadcast's root) does not. Two
// ranks with a core each swap slots in calls where both give much and get much, so that each writes where it has read.
// Nonblocking calls have a ring of their own (nonblocking.hpp).
#pragma once

#include <sys/types.h>
#include <ulfm/netmod.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/doorbell.hpp"
#include "base/error.hpp"
#include "base/segment.hpp"
#include "base/wait.hpp"
#include "base/wait_word.hpp"
#include "coll/nonblocking.hpp"

namespace ulfm::coll {

/// Longest ticket, with its ending zero.
inline constexpr std::size_t kTicketBytes = 64;

/// From so many bytes on, in one piece, in a block for each rank, or reduced, calls are long: with one copy, where
/// ranks may read each other's memory (decision 0019).
inline constexpr std::size_t kLong = 32 * 1024, kLongBlock = 16 * 1024, kLongSum = 64 * 1024;

/// The same between two ranks whose processor hands lines over, which is faster there up to this length; a reduction is
/// never long (decisions 0047 and 0049).
inline constexpr std::size_t kLongOfTwo = 512 * 1024, kNeverLong = std::numeric_limits<std::size_t>::max();

/// Of a slot. A small message needs one page of it; the others cost nothing until they are used.
inline constexpr std::size_t kPart = 32 * 1024;

struct SegmentHeader;
struct Member;
struct RankSlot;
struct NearCard;
struct NearSlot;

/// What one rank asks another for when the kernel does not copy between their buffers: to copy what lies `there`, in
/// the other's memory, to the place `at` of the segment, or the other way round.
struct Favour {
  std::atomic<std::int32_t> of;  ///< one more than the rank that is asked; 0 once it is done
  bool into_segment;
  std::uint64_t there, at, bytes;
};

/// Ranks with more neighbours give them their blocks by messages.
inline constexpr int kMostNear = 58;

/// Of a segment of so many ranks: the part for neighbours, and what of it is used from the beginning.
std::size_t near_bytes(int size) noexcept;
std::size_t near_cards(int size) noexcept;

/// Longest sleep in a wait, so that deaths and what rings no bell are found.
inline constexpr std::chrono::milliseconds kLongestNap{10};

/// What a wait does beside waiting. Called by the thread that waits.
struct WaitHooks {
  std::function<int()> progress;  ///< now and then; not 0 abandons the collective with that
  std::function<bool()> look;     ///< something has come that progress() is to take; cheap, and no more than a hint
  /// Sleeps until `call`, which is announced, ends it, or something comes that progress() is to take; true when either
  /// has. `look` says whether `call` should have. Null: only yields, as when the caller holds a lock that others want.
  std::function<bool(WaitWord call, const Look& look)> sleep;
};

/// One rank gives to all, or gets from all.
constexpr bool has_root(int kind) noexcept {
  return kind == ULFM_COLL_BCAST || kind == ULFM_COLL_REDUCE || kind == ULFM_COLL_GATHER || kind == ULFM_COLL_SCATTER ||
         kind == ULFM_COLL_GATHERV || kind == ULFM_COLL_SCATTERV;
}

/// Long ones may be made with one copy.
constexpr bool has_one_copy(int kind) noexcept {
  return kind == ULFM_COLL_BCAST || kind == ULFM_COLL_REDUCE || kind == ULFM_COLL_ALLREDUCE ||
         kind == ULFM_COLL_REDUCE_SCATTER || kind == ULFM_COLL_GATHER || kind == ULFM_COLL_ALLGATHER ||
         kind == ULFM_COLL_ALLGATHERV || kind == ULFM_COLL_SCATTER || kind == ULFM_COLL_ALLTOALL;
}

/// A call of `size` ranks that goes by messages whether they share a segment or not: it has a root, and they run ahead,
/// because there are more ranks than the host has `cores`, whoever may use them, or two ranks and few bytes. `ahead` is
/// the communicator's count of such bytes, as in way(). The same in all ranks, which ask at the same place.
bool goes_without_segment(int kind, std::size_t bytes, int size, int cores, bool always, std::size_t& ahead) noexcept;

/// Where a buffer has the bytes for each rank, or from it.
struct Blocks {
  const std::size_t* bytes;
  const std::size_t* at;
};

/// The calls of one communicator, in the same order in every rank. One thread at a time. All sizes are bytes but for
/// counts of elements; buffers may not overlap unless said. A call returns 0; -1 - rank when that rank's process has
/// died; kNoMemory; kAbandoned when another rank gave up; kTooLong, in all ranks, with nothing done; or what progress()
/// returned, which is positive. After anything else but 0 the others' calls fail too and the object can only be
/// destroyed.
class Collective {
 public:
  static constexpr int kNoMemory = std::numeric_limits<int>::min(), kAbandoned = kNoMemory + 1,
                       kTooLong = ULFM_COLL_TOO_LONG;

  /// Made by rank 0; `shared_cores` when there are fewer cores than processes.
  static Result<std::unique_ptr<Collective>> create(int size, bool shared_cores, const WaitPolicy& policy,
                                                    WaitHooks hooks);
  /// What the other ranks attach with: printable, shorter than kTicketBytes.
  std::string ticket() const;
  static Result<std::unique_ptr<Collective>> attach(const std::string& ticket, int rank, int size,
                                                    const WaitPolicy& policy, WaitHooks hooks);

  int barrier();
  int bcast(void* data, std::size_t bytes, int root);
  /// out = in of rank 0 OP in of rank 1 ...; `root` -1 for all. `in` may be `out`.
  int reduce(const void* in, void* out, std::size_t count, std::size_t extent, ulfm_kernel kernel, int root);
  /// The same, of which this rank wants elements [first, first + mine) only. `in` may be `out`.
  int reduce_part(const void* in, void* out, std::size_t count, std::size_t extent, ulfm_kernel kernel,
                  std::size_t first, std::size_t mine);
  /// out = in of rank 0 OP ... up to this rank, or (exclusive) to the one before; rank 0's is then left alone.
  int scan(const void* in, void* out, std::size_t count, std::size_t extent, ulfm_kernel kernel, bool exclusive);
  /// `bytes` of each rank, in rank order. `in` may be this rank's place in `out`. out may be null but at the root.
  int gather(const void* in, void* out, std::size_t bytes, int root);
  int allgather(const void* in, void* out, std::size_t bytes);
  /// `in` may be null but at the root; out may be this rank's place in `in`.
  int scatter(const void* in, void* out, std::size_t bytes, int root);
  /// `in` may be `out`.
  int alltoall(const void* in, void* out, std::size_t bytes);

  // The same with blocks of different sizes. Where a rank does not know the sizes of others, all learn in the first
  // round how many rounds there are; more than `most` are too long.
  /// `in` may be this rank's place in `out`; all know all sizes.
  int allgather_blocks(const void* in, void* out, const Blocks& blocks);
  /// `bytes` of this rank; `blocks` is the root's, as `out`.
  int gather_blocks(const void* in, std::size_t bytes, void* out, const Blocks& blocks, int root, std::size_t most);
  /// `bytes` is for this rank; `blocks` is the root's, as `in`.
  int scatter_blocks(const void* in, const Blocks& blocks, void* out, std::size_t bytes, int root, std::size_t most);
  /// `in` may be `out` when the blocks are the same.
  int alltoall_blocks(const void* in, const Blocks& from, void* out, const Blocks& to, std::size_t most);

  // Blocks for neighbours and from them, a call in five steps. Whoever gives or gets nothing makes them too.
  /// Before the first call: whom this rank gets blocks from, and gives them to, in order; negative: nobody. Of two from
  /// the same rank the first is for the first.
  int near_open(std::span<const int> from, std::span<const int> to);
  bool has_near() const noexcept { return near_ != nullptr; }
  /// Where this rank's blocks go, in order and `step` apart, and how many bytes there are.
  int near_begin(std::byte*& blocks, std::size_t& room);
  /// They are there. `step` 0: one for all.
  void near_post(std::size_t step) noexcept;
  /// The block from rank `from`, the `index`-th of those; null when that rank's come by messages.
  int near_take(int index, int from, const std::byte*& block);
  /// All of them have been read.
  void near_end() noexcept;

  /// The way for a call of that kind, of which a rank hands over or gets so many bytes: ULFM_COLL_SHARED, _LONG or
  /// _ROOTED. `always`: whatever its size. The same in all ranks, which ask at the same place.
  int way(int kind, std::size_t bytes, bool always);

  /// Long calls are made with one copy, out of the other ranks' own memory; asked by all ranks at the same time.
  bool reads_others();
  /// From the beginning: this rank does not want that, and then no rank does it.
  void without_one_copy() noexcept { wants_one_copy_ = false; }

  // Nonblocking calls, in the same order in every rank, among themselves: blocking ones may come between.
  /// Such a call may be made here. The same in all ranks.
  bool fits(int kind, std::size_t bytes) const noexcept { return calls_.front()->fits(kind, bytes); }
  /// Of kinds in which no rank knows all sizes, longer blocks are left out.
  std::size_t longest_block(int kind) const noexcept { return calls_.front()->longest_block(kind); }
  /// Room of its own for a persistent call that fits, for as long as this object lives: what goes into `call.kept`, the
  /// same in all ranks, which ask in the same order. 0: there is none left, or, unless `always`, each rank has a core
  /// and the call no root: then MPICH's schedule, which is made once, is quicker. Else why not, as above.
  int keep(const ulfm_coll_call& call, bool always);
  /// Begins a call; the buffers stay as they are until it has finished. A persistent one is begun again when it has
  /// finished here, and in any order beside others. 1: it has finished, already; 0: finished() will return `cookie`;
  /// else why not, as above.
  int start(const ulfm_coll_call& call, void* cookie);
  /// Goes on with what was begun. True when something has finished.
  bool advance();
  /// A call that has finished, or, once the object is of no use any more, one that never will; null when there is none.
  /// `why`: 0, or why it has not, as above.
  void* finished(int& why);
  bool has_calls() const noexcept;
  bool has_open_calls() const noexcept { return open_calls() != nullptr; }
  /// A look, now and then, for a rank that has died and that a call waits for.
  void look_for_dead() noexcept;
  /// Sleeps until something may have finished, by `sleep`, which gets the armed bell and whether to take a short nap.
  template <typename Sleep>
  void sleep_for_calls(Sleep sleep);
  /// Kind of the oldest call under way and a rank that it waits for, or -1. There must be one.
  int kind_of_call() const noexcept { return open_calls()->kind(); }
  int missing_in_call() const noexcept;

  /// Makes the others' calls fail: this rank cannot do its part.
  int give_up() noexcept;
  /// Some rank's call has failed.
  bool broken() const noexcept;
  /// Ranks share cores: only calls in which all wait for all gain from the segment.
  bool counts() const noexcept { return counting_; }
  /// A rank that has not posted its part of the call that this rank is in; -1 when all have. For reports.
  int missing() const noexcept;
  int size() const noexcept { return size_; }

 private:
  Collective(Segment segment, int rank, int size, const WaitPolicy& policy, WaitHooks hooks);
  RankSlot& slot(int rank) const noexcept;
  std::byte* part(int rank) const noexcept;
  std::byte* result() const noexcept;
  // With one copy: see one_copy.cpp.
  bool is_long(std::size_t bytes, std::size_t from, std::size_t of_two = kLongOfTwo) const noexcept {
    return bytes >= (are_two_that_hand_over() ? of_two : from) && reads_others_ == Reads::yes;
  }
  bool are_two_that_hand_over() const noexcept;
  int show(const void* data, const void* result = nullptr);
  int all_have_read();
  std::uint64_t shown(int rank) const noexcept;
  bool may_read(int rank) const noexcept;
  int ask(int rank, bool to_write, std::byte* here, std::uint64_t there, std::size_t bytes);
  Favour& favour_of(int rank) const noexcept;
  std::atomic<std::uint32_t>& asked(int rank) const noexcept;
  bool is_asked() const noexcept { return asked(rank_).load(std::memory_order_acquire) != 0; }
  void do_favours() noexcept;
  std::atomic<std::uint64_t>& refused_round() const noexcept;
  void heed_refusal() noexcept;
  int read(int rank, std::byte* into, std::uint64_t from, std::size_t bytes);
  int write(int rank, const std::byte* from, std::uint64_t into, std::size_t bytes);
  std::atomic<std::int32_t>& writes_to(int rank) const noexcept;
  int left(int why) const noexcept;
  template <typename Call>
  int with_root(int root, Call call);
  int take_rest(int rank, std::byte* block, std::uint64_t from, std::size_t bytes, std::size_t left_out);
  struct Share {
    std::size_t first, bytes;
  };
  bool make_scratch(std::size_t bytes) noexcept;
  Share share_of(int rank, std::size_t count, std::size_t extent, int root = -1) const noexcept;
  int combine_piece(std::byte* sum, const std::byte* own, std::size_t from, std::size_t bytes, std::size_t extent,
                    ulfm_kernel kernel);
  template <typename Put>
  int combine_others(std::byte* into, const std::byte* own, std::size_t from, std::size_t bytes, std::size_t extent,
                     ulfm_kernel kernel, Put put);
  int combine_here(std::byte* into, const std::byte* own, std::size_t from, std::size_t bytes, std::size_t extent,
                   ulfm_kernel kernel);
  int bcast_long(std::byte* data, std::size_t bytes, int root);
  int reduce_long(const std::byte* in, std::byte* out, std::size_t count, std::size_t extent, ulfm_kernel kernel,
                  int root);
  int allreduce_long(const std::byte* in, std::byte* out, std::size_t count, std::size_t extent, ulfm_kernel kernel);
  int reduce_part_long(const std::byte* in, std::byte* out, std::size_t extent, ulfm_kernel kernel, std::size_t first,
                       std::size_t mine);
  int gather_long(const std::byte* in, std::byte* out, std::size_t bytes, int root);
  int allgather_long(const std::byte* in, std::byte* out, std::size_t bytes);
  int allgather_blocks_long(const std::byte* in, std::byte* out, const Blocks& blocks);
  int gather_rest(const std::byte* in, std::byte* out, const Blocks& blocks, int root, std::size_t at);
  template <typename Block>
  int read_blocks(const std::byte* in, std::byte* out, Block block);
  int scatter_long(const std::byte* in, std::byte* out, std::size_t bytes, int root);
  int alltoall_long(const std::byte* in, std::byte* out, std::size_t bytes);

  void add_calls(std::size_t at, CallRoom room);
  bool is_starved() const noexcept;
  const NonblockingCalls* open_calls() const noexcept;
  template <typename Condition>
  int awaited(Condition is_it) const noexcept;
  int begin(std::size_t bytes, bool both = false);
  Result<void> commit(std::size_t bytes);
  template <typename Work>
  void post(Work work);
  void post();
  void end() noexcept { ++round_; }
  bool all_posted(std::uint64_t round) noexcept;
  int await_all(std::uint64_t round);
  int await_rank(int rank);
  template <typename Condition, typename FindDead>
  int await(Condition condition, FindDead find_dead);
  template <typename Condition>
  int await_deed(int rank, Condition condition);
  int await_favour(int rank);
  int await_count(int rank, const std::atomic<std::uint64_t>& count, std::uint64_t least);
  template <typename Condition>
  bool sleep(Condition condition);
  void wake() noexcept;
  Member& member(int rank) const noexcept;
  pid_t process_of(int rank) const noexcept;
  Doorbell& own_bell() const noexcept { return bell_of(rank_); }
  Doorbell& bell_of(int rank) const noexcept;
  int abandon(int why) noexcept;
  int why_broken() const noexcept;
  bool gone(int rank) const noexcept;
  int find_dead(std::uint64_t round, int first, int last, int& patience) const noexcept;
  void combine(std::byte* into, int first, int last, std::size_t from, std::size_t count, std::size_t extent,
               ulfm_kernel kernel, const std::byte* own = nullptr) const noexcept;
  int combined(std::size_t count, std::size_t extent, ulfm_kernel kernel, bool all, const std::byte** from);
  int reduce_piece(const std::byte* in, std::byte* out, std::size_t n, std::size_t extent, ulfm_kernel kernel,
                   int root);
  int scan_piece(const std::byte* in, std::byte* out, std::size_t n, std::size_t extent, ulfm_kernel kernel,
                 bool exclusive);
  int scan_in_one_turn(const std::byte* in, std::byte* out, std::size_t n, std::size_t extent, ulfm_kernel kernel,
                       bool exclusive);
  std::size_t block() const noexcept;
  std::size_t most_of_blocks(std::size_t most) const noexcept;
  NearCard& near_card(int rank) const noexcept;
  std::size_t near_slot_at(int rank, std::uint64_t call) const noexcept;
  NearSlot& near_slot(int rank, std::uint64_t call) const noexcept;
  int near_place(int of, int nth) const noexcept;
  void ring_near(const std::vector<int>& ranks) noexcept;

  Segment segment_;
  SegmentHeader* header_;
  int rank_, size_;
  bool counting_;          // fewer cores than processes: see above
  std::size_t ahead_ = 0;  // bytes that two ranks sent by messages since the last call that waited: see runs_ahead
  WaitPolicy policy_;
  WaitHooks hooks_;
  std::uint64_t round_ = 0;
  std::uint64_t complete_ = 0;  // rounds that all have posted, as far as this rank has looked
  bool swaps_ = false;          // this round: two ranks write where they have read
  unsigned swapped_ = 0;        // bits, by parity of the round: where that is the other rank's slot
  std::size_t committed_ = 0;   // of each of this rank's slots and of each result
  int looked_ = 0;              // ranks that have posted round complete_
  enum class Reads { unknown, yes, no };
  Reads reads_others_ = Reads::unknown;
  bool wants_one_copy_ = true;
  std::uint64_t token_;  // what others look for in this process's memory, to see whether they may
  std::vector<pid_t> processes_;
  std::unique_ptr<std::byte[]> scratch_;  // of long reductions
  std::size_t scratch_bytes_ = 0;
  std::size_t kept_end_;  // in the segment: of the room for persistent calls that is in use
  std::vector<std::unique_ptr<NonblockingCalls>> calls_;  // of the communicator, then each persistent call's
  struct Near {
    std::vector<int> from, to;             // each rank once, without this one
    std::vector<int> tells_end, told_end;  // who says to this rank which calls have ended, and the other way round
    std::vector<int> places;               // of the blocks that this rank gets, among their rank's
    std::uint64_t call = 0;
  };
  std::unique_ptr<Near> near_;
  std::size_t near_at_;    // in the segment
  int awaited_deed_ = -1;  // the rank of an await_deed()
};

template <typename Sleep>
void Collective::sleep_for_calls(Sleep sleep) {
  Doorbell& bell = own_bell();
  bell.arm();
  if (!advance()) sleep(bell.word(), is_starved());
  bell.cancel();
}

}  // namespace ulfm::coll
