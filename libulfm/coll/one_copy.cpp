// Long collectives with one copy: each rank shows where its data are, and the others read them there, or write what is
// for it (process_vm_readv(2)), where the kernel allows that. It is tried once for each communicator, by all at once;
// where one of them may not, all copy through the segment. Decisions 0019 and 0043 have the measurements; decision 0076
// is about copies that the kernel refuses later.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/align.hpp"
#include "base/copy.hpp"
#include "coll/collective.hpp"
#include "job/peer_memory.hpp"

namespace ulfm::coll {

namespace {
// What a rank shows in its slot.
struct Shown {
  std::uint64_t address;
  std::uint64_t may;     // read everybody
  std::uint64_t result;  // where the root of a reduction wants it
};
Shown& shown_in(std::byte* part) { return *reinterpret_cast<Shown*>(part); }

// Pieces of a reduction: two of them, and what they are combined with, stay in the cache that a core has for itself.
// Each costs a call of the kernel, which may take as long as to copy 60 KB.
constexpr std::size_t kPiece = 256 * 1024;
// Of a reduction to a root, the root combines so many bytes before the others help, who also have to bring it theirs.
constexpr std::size_t kOfRoot = 64 * 1024;
// Pieces that are written to another rank, which may wait for the end of one.
constexpr std::size_t kWritten = 1024 * 1024;

// Null: there is none.
std::unique_ptr<std::byte[]> memory(std::size_t bytes) noexcept {
  return std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes]);
}

// Of each block of a call with a root, so many bytes are moved by the root and the others by the other rank: of `size`
// ranks each moves as much as each other.
std::size_t share_of_root(std::size_t bytes, int size) {
  return std::min(bytes, up_to_line(bytes / static_cast<std::size_t>(size)));
}
}  // namespace

// ---- what all rounds of it need -----------------------------------------------------------------------------------

bool Collective::may_read(int rank) const noexcept {
  std::uint64_t token = 0;
  return read_process(processes_[static_cast<std::size_t>(rank)], &token, shown(rank), sizeof token) == sizeof token &&
         token == token_;
}

std::uint64_t Collective::shown(int rank) const noexcept { return shown_in(part(rank)).address; }

// Two rounds: where to look, and what came of it. A failure is found again, and told, by the call that asked.
bool Collective::reads_others() {
  if (reads_others_ != Reads::unknown) return reads_others_ == Reads::yes;
  reads_others_ = Reads::no;
  if (show(&token_) != 0) return false;
  bool may = wants_one_copy_;
  for (int rank = 0; rank < size_; ++rank) processes_.push_back(process_of(rank));
  for (int rank = 0; rank < size_; ++rank) may = may && may_read(rank);
  end();
  if (begin(sizeof(Shown)) != 0) return false;
  shown_in(part(rank_)) = {0, may ? 1u : 0u, 0};
  post();
  if (await_all(round_) != 0) return false;
  for (int rank = 0; rank < size_; ++rank) may = may && shown_in(part(rank)).may != 0;
  end();
  if (may) reads_others_ = Reads::yes;
  return may;
}

// A round in which all know where the others' data are; it goes on until the caller ends it.
int Collective::show(const void* data, const void* result) {
  if (const int why = begin(sizeof(Shown))) return why;
  shown_in(part(rank_)) = {address_of(data), 0, address_of(result)};
  post();
  return await_all(round_);
}

// Ends it, and with it the time in which others may read.
int Collective::all_have_read() {
  end();
  return barrier();
}

int Collective::read(int rank, std::byte* into, std::uint64_t from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t n = read_process(processes_[static_cast<std::size_t>(rank)], into + at, from + at, bytes - at);
    if (n <= 0) return ask(rank, false, into + at, from + at, bytes - at);
    at += static_cast<std::size_t>(n);
  }
  return 0;
}

// A rank whose call fails may use its memory for something else. So this one says that it writes there, and does not
// begin once somebody's call has failed; who leaves a call that failed waits until nobody writes (left).
int Collective::write(int rank, const std::byte* from, std::uint64_t into, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    writes_to(rank_).store(rank + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const int why = why_broken();
    const std::size_t most = std::min(bytes - at, kWritten);
    const ssize_t n =
        why != 0 ? 0 : write_process(processes_[static_cast<std::size_t>(rank)], from + at, into + at, most);
    writes_to(rank_).store(0, std::memory_order_release);
    if (why != 0) return why;
    if (n <= 0) return ask(rank, true, const_cast<std::byte*>(from) + at, into + at, bytes - at);
    at += static_cast<std::size_t>(n);
  }
  return 0;
}

// ---- what the kernel does not copy --------------------------------------------------------------------------------

// A rank's memory may be one that the kernel copies for nobody else (memfd_secret(2), a device's), or the process may
// have become one that others may not look into (prctl(2), PR_SET_DUMPABLE; setuid(2)). Then that rank copies, between
// its memory and this one's slot, as soon as it waits for the others, which it does at the end of each such call, and
// while it asks itself. So reductions in place, too, go on where they are.
int Collective::ask(int rank, bool to_write, std::byte* here, std::uint64_t there, std::size_t bytes) {
  if (errno == ESRCH || gone(rank)) return abandon(-1 - rank);
  if (!commit(kPart)) return abandon(kNoMemory);
  std::uint64_t none = 0;
  refused_round().compare_exchange_strong(none, round_ + 1, std::memory_order_relaxed);
  std::byte* const room = part(rank_) + sizeof(Shown);
  Favour& favour = favour_of(rank_);
  for (std::size_t at = 0, n; at < bytes; at += n) {
    n = std::min(bytes - at, kPart - sizeof(Shown));
    if (to_write) copy_block(room, here + at, n);
    favour.into_segment = !to_write;
    favour.there = there + at;
    favour.at = static_cast<std::uint64_t>(room - segment_.at<std::byte>(0));
    favour.bytes = n;
    favour.of.store(rank + 1, std::memory_order_release);
    asked(rank).store(1, std::memory_order_release);
    bell_of(rank).ring();
    if (const int why = await_favour(rank)) return why;
    if (!to_write) copy_block(here + at, room, n);
  }
  return 0;
}

// To ask takes several times as long as two copies through the segment: that is how later calls go. A rank may be in
// the next call already, and refused there; all see the same of the calls before it, which have ended in a barrier.
void Collective::heed_refusal() noexcept {
  const std::uint64_t refused = refused_round().load(std::memory_order_relaxed);
  if (refused != 0 && refused <= round_ && reads_others_ == Reads::yes) reads_others_ = Reads::no;
}

// Who asks says so after it has said what for: it is found by this look or by the next one.
void Collective::do_favours() noexcept {
  asked(rank_).exchange(0, std::memory_order_acq_rel);
  for (int rank = 0; rank < size_; ++rank) {
    Favour& favour = favour_of(rank);
    if (favour.of.load(std::memory_order_acquire) != rank_ + 1) continue;
    auto* const own = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(favour.there));
    std::byte* const room = segment_.at<std::byte>(favour.at);
    copy_block(favour.into_segment ? room : own, favour.into_segment ? own : room, favour.bytes);
    favour.of.store(0, std::memory_order_release);
    bell_of(rank).ring();
  }
}

// The end of a call in which others write this rank's memory, with its result. A call that failed is known to all.
int Collective::left(int why) const noexcept {
  if (why == 0) return 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int rank = 0; rank < size_; ++rank)
    while (writes_to(rank).load(std::memory_order_acquire) == rank_ + 1 && !gone(rank)) yield_now();
  return why;
}

// ---- data only move -----------------------------------------------------------------------------------------------

// The part of a block that is not the first `left_out` bytes, from that rank.
int Collective::take_rest(int rank, std::byte* block, std::uint64_t from, std::size_t bytes, std::size_t left_out) {
  return read(rank, block + left_out, from + left_out, bytes - left_out);
}

// In a call with a root: `call` with each rank that this one gives to or gets from, which is the root for all others.
template <typename Call>
int Collective::with_root(int root, Call call) {
  if (rank_ != root) return call(root);
  for (int i = 1; i < size_; ++i)
    if (const int why = call((root + i) % size_)) return why;
  return 0;
}

int Collective::bcast_long(std::byte* data, std::size_t bytes, int root) {
  if (const int why = show(data)) return why;
  const std::size_t given = share_of_root(bytes, size_);
  const auto move = [&](int rank) {
    return rank_ == root ? write(rank, data, shown(rank), given) : take_rest(root, data, shown(root), bytes, given);
  };
  if (const int why = with_root(root, move)) return why;
  return all_have_read();
}

// The block of each rank. `block` says where in `out` a rank's is, and how long.
template <typename Block>
int Collective::read_blocks(const std::byte* in, std::byte* out, Block block) {
  if (const int why = show(in)) return why;
  // Each begins with another one, so that not all read the same memory at the same time.
  for (int i = 0; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    const auto [at, bytes] = block(static_cast<std::size_t>(rank));
    if (rank == rank_ && bytes != 0 && out + at != in) copy_block(out + at, in, bytes);
    if (rank == rank_) continue;
    if (const int why = read(rank, out + at, shown(rank), bytes)) return why;
  }
  return all_have_read();
}

int Collective::allgather_long(const std::byte* in, std::byte* out, std::size_t bytes) {
  return read_blocks(in, out, [bytes](std::size_t rank) { return std::pair(rank * bytes, bytes); });
}

int Collective::allgather_blocks_long(const std::byte* in, std::byte* out, const Blocks& blocks) {
  return read_blocks(in, out, [&](std::size_t rank) { return std::pair(blocks.at[rank], blocks.bytes[rank]); });
}

// Of blocks whose first `at` bytes the root has; it alone knows where they belong.
int Collective::gather_rest(const std::byte* in, std::byte* out, const Blocks& blocks, int root, std::size_t at) {
  if (const int why = show(in)) return why;
  for (int rank = 0; rank_ == root && rank < size_; ++rank) {
    if (rank == root || blocks.bytes[rank] <= at) continue;
    std::byte* const to = out + blocks.at[rank] + at;
    if (const int why = read(rank, to, shown(rank) + at, blocks.bytes[rank] - at)) return why;
  }
  return all_have_read();
}

int Collective::gather_long(const std::byte* in, std::byte* out, std::size_t bytes, int root) {
  if (const int why = show(rank_ == root ? out : in)) return why;
  const auto place = [bytes](int rank) { return static_cast<std::size_t>(rank) * bytes; };
  const std::size_t given = bytes - share_of_root(bytes, size_);
  const auto move = [&](int rank) {
    return rank_ == root ? take_rest(rank, out + place(rank), shown(rank), bytes, given)
                         : write(root, in, shown(root) + place(rank_), given);
  };
  if (const int why = with_root(root, move)) return why;
  if (rank_ == root && out + place(root) != in) copy_block(out + place(root), in, bytes);
  return all_have_read();
}

int Collective::scatter_long(const std::byte* in, std::byte* out, std::size_t bytes, int root) {
  if (const int why = show(rank_ == root ? in : out)) return why;
  const auto place = [bytes](int rank) { return static_cast<std::size_t>(rank) * bytes; };
  const std::size_t given = share_of_root(bytes, size_);
  const auto move = [&](int rank) {
    return rank_ == root ? write(rank, in + place(rank), shown(rank), given)
                         : take_rest(root, out, shown(root) + place(rank_), bytes, given);
  };
  if (const int why = with_root(root, move)) return why;
  if (rank_ == root && in + place(root) != out) copy_block(out, in + place(root), bytes);
  return all_have_read();
}

int Collective::alltoall_long(const std::byte* in, std::byte* out, std::size_t bytes) {
  std::unique_ptr<std::byte[]> kept;  // what the others' blocks would overwrite
  if (in == out) {
    const std::size_t all = bytes * static_cast<std::size_t>(size_);
    kept = memory(all);
    if (!kept) return abandon(kNoMemory);
    copy_block(kept.get(), in, all);
    in = kept.get();
  }
  if (const int why = show(in)) return why;
  const std::size_t at = static_cast<std::size_t>(rank_) * bytes;
  for (int i = 0; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    std::byte* to = out + static_cast<std::size_t>(rank) * bytes;
    if (rank == rank_) copy_block(to, in + at, bytes);
    else if (const int why = read(rank, to, shown(rank) + at, bytes)) return why;
  }
  return all_have_read();
}

// ---- reductions ---------------------------------------------------------------------------------------------------

// sum = `bytes` at `from` of what each rank shows, in rank order; `own` is this rank's. A piece at most.
int Collective::combine_piece(std::byte* sum, const std::byte* own, std::size_t from, std::size_t bytes,
                              std::size_t extent, ulfm_kernel kernel) {
  for (int rank = 0; rank < size_; ++rank) {
    std::byte* const to = rank == 0 ? sum : scratch_.get() + scratch_bytes_ / 2;
    const std::byte* data = to;
    if (rank == rank_) data = own + from;
    else if (const int why = read(rank, to, shown(rank) + from, bytes)) return why;
    if (rank > 0) kernel(sum, data, bytes / extent);
    else if (data != sum) copy_block(sum, data, bytes);
  }
  return 0;
}

// Memory for two pieces of a reduction, which is kept for the next one. False: there is none.
bool Collective::make_scratch(std::size_t bytes) noexcept {
  if (bytes <= scratch_bytes_) return true;
  scratch_.reset();
  scratch_ = memory(bytes = up_to(bytes, 2 * kPage));
  scratch_bytes_ = scratch_ ? bytes : 0;
  return scratch_ != nullptr;
}

// The same for any length, in pieces. `put` hands over each sum, which is at `into` if that is not null, or in memory
// that is used again.
template <typename Put>
int Collective::combine_others(std::byte* into, const std::byte* own, std::size_t from, std::size_t bytes,
                               std::size_t extent, ulfm_kernel kernel, Put put) {
  const std::size_t most = std::min(kPiece / extent * extent, bytes);
  if (!make_scratch(2 * most)) return abandon(kNoMemory);
  for (std::size_t at = 0, n; at < bytes; at += n) {
    n = std::min(bytes - at, most);
    std::byte* const sum = into != nullptr ? into + at : scratch_.get();
    if (const int why = combine_piece(sum, own, from + at, n, extent, kernel)) return why;
    if (const int why = put(sum, at, n)) return why;
  }
  return 0;
}

// into = `bytes` at `from` of what each rank shows. `into` may be the same memory as `own` + `from`: then a piece is
// put there when nobody needs what was there any more.
int Collective::combine_here(std::byte* into, const std::byte* own, std::size_t from, std::size_t bytes,
                             std::size_t extent, ulfm_kernel kernel) {
  const bool apart = rank_ == 0 || into != own + from;
  const auto put = [&](const std::byte* sum, std::size_t at, std::size_t n) {
    if (!apart) copy_block(into + at, sum, n);
    return 0;
  };
  return combine_others(apart ? into : nullptr, own, from, bytes, extent, kernel, put);
}

// In a reduction to `root`, the others also bring it their shares: it combines more than each of them, as measured.
Collective::Share Collective::share_of(int rank, std::size_t count, std::size_t extent, int root) const noexcept {
  const std::size_t of_root = root < 0 ? 0 : std::min(count, kOfRoot / extent);
  count -= of_root;
  const auto units_before = [&](int of) {
    return static_cast<std::size_t>(root < 0 ? of : of * 2 * (size_ - 1) + (of > root ? 1 : 0));
  };
  const std::size_t units = units_before(size_), unit = (count + units - 1) / units;
  const auto first = [&](int of) {
    return (std::min(count, unit * units_before(of)) + (of > root ? of_root : 0)) * extent;
  };
  return {first(rank), first(rank + 1) - first(rank)};
}

// Each rank combines its share of the result, in which nobody else reads or writes, and brings it to the root.
int Collective::reduce_long(const std::byte* in, std::byte* out, std::size_t count, std::size_t extent,
                            ulfm_kernel kernel, int root) {
  if (const int why = show(in, rank_ == root ? out : nullptr)) return why;
  const Share mine = share_of(rank_, count, extent, root);
  const std::uint64_t result = shown_in(part(root)).result + mine.first;
  const auto put = [&](const std::byte* sum, std::size_t at, std::size_t n) {
    return write(root, sum, result + at, n);
  };
  const int why = rank_ == root ? combine_here(out + mine.first, in, mine.first, mine.bytes, extent, kernel)
                                : combine_others(nullptr, in, mine.first, mine.bytes, extent, kernel, put);
  return why != 0 ? why : all_have_read();
}

// Each rank combines its share of the result, and then everyone reads the others' shares.
int Collective::allreduce_long(const std::byte* in, std::byte* out, std::size_t count, std::size_t extent,
                               ulfm_kernel kernel) {
  if (const int why = show(in)) return why;
  const Share mine = share_of(rank_, count, extent);
  if (const int why = combine_here(out + mine.first, in, mine.first, mine.bytes, extent, kernel)) return why;
  end();
  if (const int why = show(out)) return why;
  for (int i = 1; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    const Share share = share_of(rank, count, extent);
    if (const int why = read(rank, out + share.first, shown(rank) + share.first, share.bytes)) return why;
  }
  return all_have_read();
}

// In place the result would overwrite what others read.
int Collective::reduce_part_long(const std::byte* in, std::byte* out, std::size_t extent, ulfm_kernel kernel,
                                 std::size_t first, std::size_t mine) {
  const std::size_t bytes = mine * extent;
  std::unique_ptr<std::byte[]> kept;
  if (in == out) kept = memory(bytes);
  if (in == out && !kept) return abandon(kNoMemory);
  if (const int why = show(in)) return why;
  if (const int why = combine_here(kept ? kept.get() : out, in, first * extent, bytes, extent, kernel)) return why;
  const int why = all_have_read();
  if (why == 0 && kept) copy_block(out, kept.get(), bytes);
  return why;
}

}  // namespace ulfm::coll
