// Long collectives with one copy: each rank shows where its data are and the others read them there
// (process_vm_readv(2)), where the kernel allows that. It is tried once for each communicator, by all at once; where
// one of them may not, all copy through the segment. Decision 0019 has the measurements.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "coll/collective.hpp"
#include "job/peer_memory.hpp"

namespace ulfm::coll {

namespace {
// What a rank shows in its slot.
struct Shown {
  std::uint64_t address;
  std::uint64_t process;
  std::uint64_t may;  // read everybody
};
Shown& shown_in(std::byte* part) { return *reinterpret_cast<Shown*>(part); }

// Pieces of a reduction: two of them stay in the cache that a core has for itself.
constexpr std::size_t kPiece = 64 * 1024;

std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
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
  bool may = true;
  for (int rank = 0; rank < size_; ++rank) processes_.push_back(static_cast<pid_t>(shown_in(part(rank)).process));
  for (int rank = 0; rank < size_; ++rank) may = may && may_read(rank);
  end();
  if (begin(sizeof(Shown)) != 0) return false;
  shown_in(part(rank_)) = {0, 0, may ? 1u : 0u};
  post();
  if (await_all(round_) != 0) return false;
  for (int rank = 0; rank < size_; ++rank) may = may && shown_in(part(rank)).may != 0;
  end();
  if (may) reads_others_ = Reads::yes;
  return may;
}

// A round in which all know where the others' data are; it goes on until the caller ends it.
int Collective::show(const void* data) {
  if (const int why = begin(sizeof(Shown))) return why;
  shown_in(part(rank_)) = {address_of(data), static_cast<std::uint64_t>(getpid()), 0};
  post();
  return await_all(round_);
}

// Ends it, and with it the time in which others may read.
int Collective::all_have_read() {
  end();
  return barrier();
}

int Collective::read(int rank, void* into, std::uint64_t from, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(into);
  while (bytes > 0) {
    const ssize_t n = read_process(processes_[static_cast<std::size_t>(rank)], to, from, bytes);
    if (n <= 0) return abandon(gone(rank) || errno == ESRCH ? -1 - rank : kAbandoned);
    to += n;
    from += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

// ---- data only move -----------------------------------------------------------------------------------------------

int Collective::bcast_long(std::byte* data, std::size_t bytes, int root) {
  if (const int why = show(data)) return why;
  if (rank_ != root)
    if (const int why = read(root, data, shown(root), bytes)) return why;
  return all_have_read();
}

// Each begins with another one, so that not all read the same memory at the same time.
int Collective::gather_long(const std::byte* in, std::byte* out, std::size_t bytes, int root) {
  if (const int why = show(in)) return why;
  for (int i = 0; (root < 0 || rank_ == root) && i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    std::byte* to = out + static_cast<std::size_t>(rank) * bytes;
    if (rank == rank_ && to != in) std::memcpy(to, in, bytes);
    if (rank == rank_) continue;
    if (const int why = read(rank, to, shown(rank), bytes)) return why;
  }
  return all_have_read();
}

int Collective::scatter_long(const std::byte* in, std::byte* out, std::size_t bytes, int root) {
  if (const int why = show(in)) return why;
  const std::size_t at = static_cast<std::size_t>(rank_) * bytes;
  if (rank_ != root) {
    if (const int why = read(root, out, shown(root) + at, bytes)) return why;
  } else if (in + at != out) {
    std::memcpy(out, in + at, bytes);
  }
  return all_have_read();
}

int Collective::alltoall_long(const std::byte* in, std::byte* out, std::size_t bytes) {
  std::unique_ptr<std::byte[]> kept;  // what the others' blocks would overwrite
  if (in == out) {
    const std::size_t all = bytes * static_cast<std::size_t>(size_);
    kept = std::make_unique_for_overwrite<std::byte[]>(all);
    std::memcpy(kept.get(), in, all);
    in = kept.get();
  }
  if (const int why = show(in)) return why;
  const std::size_t at = static_cast<std::size_t>(rank_) * bytes;
  for (int i = 0; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    std::byte* to = out + static_cast<std::size_t>(rank) * bytes;
    if (rank == rank_) std::memcpy(to, in + at, bytes);
    else if (const int why = read(rank, to, shown(rank) + at, bytes)) return why;
  }
  return all_have_read();
}

// ---- reductions ---------------------------------------------------------------------------------------------------

// into = `bytes` at `from` of what each rank shows, in rank order; `own` is this rank's. `into` may be the same memory
// as `own` + `from`: then a piece is put there when nobody needs what was there any more.
int Collective::combine_others(std::byte* into, const std::byte* own, std::size_t from, std::size_t bytes,
                               std::size_t extent, ulfm_kernel kernel) {
  if (!scratch_) scratch_ = std::make_unique_for_overwrite<std::byte[]>(2 * kPiece);
  const bool apart = rank_ == 0 || into != own + from;
  std::byte* const other = scratch_.get() + kPiece;
  const std::size_t most = kPiece / extent * extent;
  for (std::size_t at = 0, n; at < bytes; at += n) {
    n = std::min(bytes - at, most);
    std::byte* const sum = apart ? into + at : scratch_.get();
    for (int rank = 0; rank < size_; ++rank) {
      std::byte* const to = rank == 0 ? sum : other;
      const std::byte* data = to;
      if (rank == rank_) data = own + from + at;
      else if (const int why = read(rank, to, shown(rank) + from + at, n)) return why;
      if (rank > 0) kernel(sum, data, n / extent);
      else if (data != sum) std::memcpy(sum, data, n);
    }
    if (!apart) std::memcpy(into + at, sum, n);
  }
  return 0;
}

// Each rank combines its share of the result, and then everyone reads the others' shares.
int Collective::allreduce_long(const std::byte* in, std::byte* out, std::size_t count, std::size_t extent,
                               ulfm_kernel kernel) {
  const std::size_t share = (count + static_cast<std::size_t>(size_) - 1) / static_cast<std::size_t>(size_);
  const auto first = [&](int rank) { return std::min(count, share * static_cast<std::size_t>(rank)) * extent; };
  std::byte* const mine = out + first(rank_);

  if (const int why = show(in)) return why;
  if (const int why = combine_others(mine, in, first(rank_), first(rank_ + 1) - first(rank_), extent, kernel))
    return why;
  end();
  if (const int why = show(mine)) return why;
  for (int i = 1; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    if (const int why = read(rank, out + first(rank), shown(rank), first(rank + 1) - first(rank))) return why;
  }
  return all_have_read();
}

// In place the result would overwrite what others read.
int Collective::reduce_part_long(const std::byte* in, std::byte* out, std::size_t extent, ulfm_kernel kernel,
                                 std::size_t first, std::size_t mine) {
  const std::size_t bytes = mine * extent;
  std::unique_ptr<std::byte[]> kept;
  if (in == out) kept = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (const int why = show(in)) return why;
  if (const int why = combine_others(kept ? kept.get() : out, in, first * extent, bytes, extent, kernel)) return why;
  const int why = all_have_read();
  if (why == 0 && kept) std::memcpy(out, kept.get(), bytes);
  return why;
}

}  // namespace ulfm::coll
