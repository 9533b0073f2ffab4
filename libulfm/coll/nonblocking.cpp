#include "coll/nonblocking.hpp"

#include <algorithm>

#include "base/align.hpp"
#include "base/copy.hpp"

namespace ulfm::coll {

namespace {
// Of a communicator.
constexpr std::size_t kLeastRing = 64 * 1024, kRingOfRank = 16 * 1024;
// A root that waits for nobody uses them up, which costs all ranks a turn: so the more ranks, the more entries.
constexpr std::uint64_t kEntriesOfRank = 32;
constexpr std::uint64_t kMostEntries = 512;
// Of a persistent call: a rank may start it again while others have not finished, and one that waits for nobody, such
// as a broadcast's root, goes on while there is room.
constexpr std::uint64_t kEntriesOfCall = 2, kMostEntriesOfCall = 32;
constexpr std::size_t kRingOfCall = 16 * 1024;

struct alignas(kLine) CallsHeader {
  std::atomic<std::uint32_t> is_starved;  // a rank waits for room: others ring when they have finished
};

// Of one rank: whoever overwrites what it wrote has to know.
constexpr bool is_given(int kind) noexcept {
  return kind == ULFM_COLL_BCAST || kind == ULFM_COLL_SCATTER || kind == ULFM_COLL_SCATTERV;
}
constexpr bool is_taken(int kind) noexcept {
  return kind == ULFM_COLL_REDUCE || kind == ULFM_COLL_GATHER || kind == ULFM_COLL_GATHERV;
}
constexpr bool is_scan(int kind) noexcept { return kind == ULFM_COLL_SCAN || kind == ULFM_COLL_EXSCAN; }
constexpr bool is_reduction(int kind) noexcept {
  return kind == ULFM_COLL_REDUCE || kind == ULFM_COLL_ALLREDUCE || kind == ULFM_COLL_REDUCE_SCATTER || is_scan(kind);
}
// A rank's part has a block for each rank.
constexpr bool has_blocks(int kind) noexcept {
  return kind == ULFM_COLL_SCATTER || kind == ULFM_COLL_ALLTOALL || kind == ULFM_COLL_SCATTERV ||
         kind == ULFM_COLL_ALLTOALLV;
}
// No rank knows all sizes.
constexpr bool has_unknown_sizes(int kind) noexcept {
  return kind == ULFM_COLL_GATHERV || kind == ULFM_COLL_SCATTERV || kind == ULFM_COLL_ALLTOALLV;
}

// In its piece: of all ranks and a result, or of the root.
constexpr std::uint64_t parts_of(int kind, int size) noexcept {
  if (kind == ULFM_COLL_BARRIER) return 0;
  if (is_given(kind)) return 1;
  return static_cast<std::uint64_t>(size) + (is_reduction(kind) ? 1 : 0);
}
}  // namespace

/// Of a call.
struct alignas(kLine) CallEntry {
  std::atomic<std::uint32_t> arrived;               // when ranks share cores
  alignas(kLine) std::atomic<std::uint64_t> ready;  // one more than the number of the call
  std::byte data[kLine - sizeof(std::uint64_t)];    // of a root, when that is all
};
static_assert(sizeof(CallEntry) == 2 * kLine);

/// Of a rank: how many calls it has posted, and how many have finished with all before them.
struct alignas(kLine) CallProgress {
  std::atomic<std::uint64_t> posted, finished;
};

namespace {
constexpr std::size_t kEntriesAt = sizeof(CallsHeader);
std::size_t progress_at(const CallRoom& room) { return kEntriesAt + room.entries * sizeof(CallEntry); }
std::size_t ring_at(const CallRoom& room, int size) {
  return progress_at(room) + static_cast<std::size_t>(size) * sizeof(CallProgress);
}
CallsHeader& header_of(const Segment& segment, std::size_t at) { return *segment.at<CallsHeader>(at); }
// Of a call. The ring has room for as many calls as a rank may run ahead; where all wait for all that is not far.
std::size_t longest_block_in(std::size_t ring, int kind, int size) {
  const auto n = static_cast<std::size_t>(size);
  const std::size_t room = kind == ULFM_COLL_ALLTOALLV ? ring / 4 / (n * n) : ring / 32 / n;
  return std::max(room / kLine * kLine, kLine);
}
// In the part of a rank.
std::size_t part_of(const ulfm_coll_call& call, std::size_t longest_block, int size) {
  if (call.kind == ULFM_COLL_BARRIER) return 0;
  if (is_reduction(call.kind)) return call.count * call.extent;
  if (call.kind == ULFM_COLL_ALLGATHERV) return *std::max_element(call.out_bytes, call.out_bytes + size);
  const std::size_t block = has_unknown_sizes(call.kind) ? longest_block : call.count;
  return block * (has_blocks(call.kind) ? static_cast<std::size_t>(size) : 1);
}
// A root's few bytes lie in the entry.
bool lies_in_entry(int kind, std::size_t bytes) { return is_given(kind) && bytes <= sizeof(CallEntry::data); }
std::size_t length_of(int kind, std::size_t part, int size) {
  return lies_in_entry(kind, part) ? 0 : parts_of(kind, size) * up_to_line(part);
}
}  // namespace

CallRoom CallRoom::of_communicator(int size) noexcept {
  const auto n = static_cast<std::size_t>(size);
  return {std::min(kEntriesOfRank * n, kMostEntries), std::max(kLeastRing, kRingOfRank * n)};
}

CallRoom CallRoom::of_call(const ulfm_coll_call& call, int size) noexcept {
  const std::size_t length = std::max(length_of(call.kind, part_of(call, 0, size), size), kLine);
  if (!is_given(call.kind) && !is_taken(call.kind)) return {kEntriesOfCall, kEntriesOfCall * length};
  const std::uint64_t entries = std::clamp<std::uint64_t>(kRingOfCall / length, kEntriesOfCall, kMostEntriesOfCall);
  return {entries, entries * length};
}

std::size_t CallRoom::bytes(int size) const noexcept { return ring_at(*this, size) + ring; }

NonblockingCalls::NonblockingCalls(Segment& segment, std::size_t at, CallRoom room, int rank, int size, bool counts)
    : segment_(segment),
      at_(at),
      ring_at_(at + ring_at(room, size)),
      room_(room),
      rank_(rank),
      size_(size),
      counts_(counts) {}

CallProgress& NonblockingCalls::progress(int rank) const noexcept {
  return segment_.at<CallProgress>(at_ + progress_at(room_))[rank];
}
CallEntry& NonblockingCalls::entry(const OpenCall& open) const noexcept {
  return segment_.at<CallEntry>(at_ + kEntriesAt)[open.number % room_.entries];
}
std::byte* NonblockingCalls::part(const OpenCall& open, int rank) const noexcept {
  return segment_.at<std::byte>(ring_at_ + open.place % room_.ring + static_cast<std::uint64_t>(rank) * open.stride);
}

// ---- making calls -------------------------------------------------------------------------------------------------

bool NonblockingCalls::fits(int kind, std::size_t bytes) const noexcept {
  if (has_unknown_sizes(kind)) {
    const std::size_t block = longest_block(kind);
    bytes = has_blocks(kind) ? block * static_cast<std::size_t>(size_) : block;
  }
  return bytes <= room_.ring && parts_of(kind, size_) * up_to_line(bytes) <= room_.ring / 2;
}

std::size_t NonblockingCalls::longest_block(int kind) const noexcept {
  return longest_block_in(room_.ring, kind, size_);
}

std::size_t NonblockingCalls::bytes_of(const ulfm_coll_call& call) const noexcept {
  return part_of(call, longest_block(call.kind), size_);
}

Result<void> NonblockingCalls::commit() {
  if (committed_) return {};
  auto done = segment_.commit(at_, room_.bytes(size_));
  committed_ = done.has_value();
  return done;
}

Result<bool> NonblockingCalls::start(const ulfm_coll_call& call, void* cookie) {
  if (auto done = commit(); !done) return fail(done.error());
  OpenCall made{call, cookie, next_++};
  allot(made);
  if (open_.empty() && try_to_post(made) && try_to_finish(made)) {
    note_finished(next_);
    return true;
  }
  open_.push_back(made);
  return false;
}

// The piece of the ring for a call: behind the last one, and never across the end.
void NonblockingCalls::allot(OpenCall& open) noexcept {
  const std::size_t bytes = bytes_of(open.call);
  open.is_in_entry = lies_in_entry(open.call.kind, bytes);
  open.stride = up_to_line(bytes);
  open.length = length_of(open.call.kind, bytes, size_);
  if (open.length == 0) return;
  open.place = end_ % room_.ring + open.length > room_.ring ? up_to(end_, room_.ring) : end_;
  end_ = open.place + open.length;
  pieces_.push_back({open.number, open.place});
}

// All have finished what lay where this call is to lie, and the call that had its entry.
bool NonblockingCalls::has_room(const OpenCall& open) noexcept {
  const auto is_free = [&] {
    while (!pieces_.empty() && pieces_.front().number < all_finished_) pieces_.pop_front();
    return open.number < all_finished_ + room_.entries &&
           (pieces_.empty() || open.place + open.length <= pieces_.front().place + room_.ring);
  };
  if (is_free()) return true;
  std::uint64_t least = next_;
  for (int rank = 0; rank < size_; ++rank)
    least = std::min(least, progress(rank).finished.load(std::memory_order_acquire));
  all_finished_ = least;
  return is_free();
}

// ---- posting ------------------------------------------------------------------------------------------------------

bool NonblockingCalls::try_to_post(OpenCall& open) {
  auto& others_ring = header_of(segment_, at_).is_starved;
  if (!has_room(open)) {
    is_starved_ = true;
    others_ring.store(1, std::memory_order_relaxed);
    return false;
  }
  if (std::exchange(is_starved_, false)) others_ring.store(0, std::memory_order_relaxed);
  write_part(open);
  open.is_posted = true;
  posted_ = open.number + 1;
  progress(rank_).posted.store(posted_, std::memory_order_release);
  if (is_given(open.call.kind)) {
    if (rank_ == open.call.root) make_ready(open);
  } else if (counts_) {
    arrive(open);
  } else {
    has_news_ = true;
  }
  return true;
}

void NonblockingCalls::write_part(const OpenCall& open) const noexcept {
  const ulfm_coll_call& call = open.call;
  if (is_given(call.kind) && rank_ != call.root) return;
  std::byte* to = open.is_in_entry ? entry(open).data : part(open, is_given(call.kind) ? 0 : rank_);
  switch (call.kind) {
    case ULFM_COLL_BARRIER: break;
    case ULFM_COLL_BCAST: copy_block(to, call.out, call.count); break;
    case ULFM_COLL_ALLGATHERV:
      if (call.out_bytes[rank_] != 0) copy_block(to, call.in, call.out_bytes[rank_]);
      break;
    case ULFM_COLL_GATHERV:
      if (rank_ != call.root && call.count != 0 && call.count <= longest_block(call.kind))
        copy_block(to, call.in, call.count);
      break;
    case ULFM_COLL_SCATTERV:
    case ULFM_COLL_ALLTOALLV: write_blocks(open, to); break;
    default: copy_block(to, call.in, bytes_of(call));
  }
}

void NonblockingCalls::write_blocks(const OpenCall& open, std::byte* to) const noexcept {
  const ulfm_coll_call& call = open.call;
  const std::size_t longest = longest_block(call.kind);
  for (int rank = 0; rank < size_; ++rank, to += longest)
    if (const std::size_t n = call.in_bytes[rank]; rank != rank_ && n != 0 && n <= longest)
      copy_block(to, static_cast<const std::byte*>(call.in) + call.in_at[rank], n);
}

// The last one does what is to be done for all.
void NonblockingCalls::arrive(const OpenCall& open) {
  CallEntry& e = entry(open);
  if (e.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 != static_cast<std::uint32_t>(size_)) return;
  e.arrived.store(0, std::memory_order_relaxed);
  work(open);
  make_ready(open);
}

void NonblockingCalls::make_ready(const OpenCall& open) {
  entry(open).ready.store(open.number + 1, std::memory_order_release);
  has_news_ = true;
}

void NonblockingCalls::work(const OpenCall& open) {
  if (is_scan(open.call.kind)) work_on_scan(open);
  else if (is_reduction(open.call.kind)) combine(result(open), open, size_ - 1, 0, open.call.count);
}

// Each part becomes the result of its rank; nobody has read any of them. Rank 0 has none of an exclusive one: its part
// keeps what the next rank gets.
void NonblockingCalls::work_on_scan(const OpenCall& open) {
  const ulfm_coll_call& call = open.call;
  const std::size_t bytes = call.count * call.extent;
  std::byte *const sum = result(open), *const before = part(open, 0);
  copy_block(sum, before, bytes);
  for (int rank = 1; rank < size_; ++rank) {
    if (call.kind == ULFM_COLL_EXSCAN) copy_block(before, sum, bytes);
    call.kernel(sum, part(open, rank), call.count);
    copy_block(part(open, rank), call.kind == ULFM_COLL_EXSCAN ? before : sum, bytes);
  }
}

// into = elements [first, first + count) of the parts of rank 0 to `last`, in this order.
void NonblockingCalls::combine(std::byte* into, const OpenCall& open, int last, std::size_t first,
                               std::size_t count) const noexcept {
  const std::size_t extent = open.call.extent;
  copy_block(into, part(open, 0) + first * extent, count * extent);
  for (int rank = 1; rank <= last; ++rank) open.call.kernel(into, part(open, rank) + first * extent, count);
}

// ---- finishing ----------------------------------------------------------------------------------------------------

bool NonblockingCalls::all_have_posted(std::uint64_t number) noexcept {
  if (all_posted_ > number) return true;
  std::uint64_t least = posted_;
  for (int rank = 0; rank < size_ && least > number; ++rank)
    least = std::min(least, progress(rank).posted.load(std::memory_order_acquire));
  if (least <= number) return false;
  all_posted_ = least;
  return true;
}

bool NonblockingCalls::is_ready(const OpenCall& open) noexcept {
  const int kind = open.call.kind, root = open.call.root;
  if (is_given(kind) ? rank_ == root : is_taken(kind) && rank_ != root) return true;
  if (counts_ || is_given(kind)) return entry(open).ready.load(std::memory_order_acquire) == open.number + 1;
  if (!is_scan(kind)) return all_have_posted(open.number);
  for (int rank = 0; rank < rank_; ++rank)
    if (progress(rank).posted.load(std::memory_order_acquire) <= open.number) return false;
  return true;
}

const std::byte* NonblockingCalls::given(const OpenCall& open) const noexcept {
  return open.is_in_entry ? entry(open).data : part(open, 0);
}

void NonblockingCalls::take_result(const OpenCall& open) {
  const ulfm_coll_call& call = open.call;
  auto* out = static_cast<std::byte*>(call.out);
  const bool is_root = rank_ == call.root;
  const std::size_t bytes = call.count, extent = call.extent;
  switch (call.kind) {
    case ULFM_COLL_BCAST:
      if (!is_root) copy_block(out, given(open), bytes);
      break;
    case ULFM_COLL_SCATTER:
      // The root's own block may stay where it is.
      if (out == nullptr ||
          (is_root && out == static_cast<const std::byte*>(call.in) + static_cast<std::size_t>(rank_) * bytes))
        break;
      copy_block(out, given(open) + static_cast<std::size_t>(rank_) * bytes, bytes);
      break;
    case ULFM_COLL_GATHER:
      if (!is_root) break;
      [[fallthrough]];
    case ULFM_COLL_ALLGATHER:
      for (int rank = 0; rank < size_; ++rank, out += bytes) copy_block(out, part(open, rank), bytes);
      break;
    case ULFM_COLL_ALLGATHERV:
      for (int rank = 0; rank < size_; ++rank)
        if (const std::size_t n = call.out_bytes[rank]; n != 0)
          copy_block(out + call.out_at[rank], part(open, rank), n);
      break;
    case ULFM_COLL_GATHERV:
    case ULFM_COLL_SCATTERV:
    case ULFM_COLL_ALLTOALLV: take_blocks(open); break;
    case ULFM_COLL_ALLTOALL:
      for (int rank = 0; rank < size_; ++rank, out += bytes)
        copy_block(out, part(open, rank) + static_cast<std::size_t>(rank_) * bytes, bytes);
      break;
    case ULFM_COLL_SCAN:
    case ULFM_COLL_EXSCAN: {
      const int last = call.kind == ULFM_COLL_SCAN ? rank_ : rank_ - 1;
      if (last < 0) break;  // rank 0 has no result of an exclusive one
      if (counts_) copy_block(out, part(open, rank_), bytes * extent);
      else combine(out, open, last, 0, bytes);
      break;
    }
    case ULFM_COLL_REDUCE:
      if (!is_root) break;
      [[fallthrough]];
    case ULFM_COLL_ALLREDUCE:
      if (counts_) copy_block(out, result(open), bytes * extent);
      else combine(out, open, size_ - 1, 0, bytes);
      break;
    case ULFM_COLL_REDUCE_SCATTER:
      if (call.mine == 0) break;
      if (counts_) copy_block(out, result(open) + call.first * extent, call.mine * extent);
      else combine(out, open, size_ - 1, call.first, call.mine);
      break;
    default: break;  // a barrier
  }
}

// A rank's own block does not travel, and may stay where it is.
void NonblockingCalls::take_blocks(const OpenCall& open) const noexcept {
  const ulfm_coll_call& call = open.call;
  const std::size_t longest = longest_block(call.kind);
  const auto* in = static_cast<const std::byte*>(call.in);
  auto* out = static_cast<std::byte*>(call.out);
  const auto take = [](std::byte* to, const std::byte* from, std::size_t n) {
    if (n != 0 && to != from) copy_block(to, from, n);
  };
  if (call.kind == ULFM_COLL_SCATTERV) {
    if (rank_ == call.root) {
      if (out != nullptr) take(out, in + call.in_at[rank_], call.in_bytes[rank_]);
    } else if (call.count <= longest) {
      take(out, part(open, 0) + static_cast<std::size_t>(rank_) * longest, call.count);
    }
    return;
  }
  const bool is_gather = call.kind == ULFM_COLL_GATHERV;
  if (is_gather && rank_ != call.root) return;
  const std::size_t mine = is_gather ? 0 : static_cast<std::size_t>(rank_) * longest;  // in the part of each
  for (int rank = 0; rank < size_; ++rank) {
    std::byte* to = out + call.out_at[rank];
    if (rank != rank_) take(to, part(open, rank) + mine, call.out_bytes[rank] <= longest ? call.out_bytes[rank] : 0);
    else if (in != nullptr) take(to, is_gather ? in : in + call.in_at[rank], call.out_bytes[rank]);
  }
}

bool NonblockingCalls::try_to_finish(OpenCall& open) {
  if (!is_ready(open)) return false;
  take_result(open);
  return open.is_finished = true;
}

// All calls before this one have finished here, which somebody may wait for.
void NonblockingCalls::note_finished(std::uint64_t all_before) {
  progress(rank_).finished.store(all_before, std::memory_order_release);
  if (header_of(segment_, at_).is_starved.load(std::memory_order_relaxed) != 0) has_news_ = true;
}

void NonblockingCalls::advance() {
  for (OpenCall& open : open_) {
    if (!open.is_posted && !try_to_post(open)) break;
    if (open.is_finished || !try_to_finish(open)) continue;
    done_.push_back(open.cookie);
  }
  settle();
}

// Calls that have finished, with all before them, leave.
void NonblockingCalls::settle() {
  if (open_.empty() || !open_.front().is_finished) return;
  while (!open_.empty() && open_.front().is_finished) open_.pop_front();
  note_finished(open_.empty() ? next_ : open_.front().number);
}

void* NonblockingCalls::finished() noexcept {
  if (done_.empty()) return nullptr;
  void* cookie = done_.front();
  done_.pop_front();
  return cookie;
}

// ---- failures -----------------------------------------------------------------------------------------------------

void* NonblockingCalls::drop() noexcept {
  while (!open_.empty()) {
    const OpenCall open = open_.front();
    open_.pop_front();
    if (!open.is_finished) return open.cookie;
  }
  return nullptr;
}

bool NonblockingCalls::waits_for(int rank) const noexcept {
  const CallProgress& other = progress(rank);
  const std::uint64_t posted = other.posted.load(std::memory_order_acquire);
  return posted <= open_.front().number || other.finished.load(std::memory_order_acquire) < posted;
}

}  // namespace ulfm::coll
