#include "coll/collective.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/align.hpp"
#include "base/copy.hpp"
#include "base/doorbell.hpp"
#include "job/liveness.hpp"

namespace ulfm::coll {

namespace {
constexpr std::uint64_t kMagic = 0x756c666d636f6c31;  // "ulfmcol1"
constexpr std::size_t kSlot = kPart + kPage;
// In front of what a slot holds: users' data mostly begin at or near the begin of a page, and copies between the same
// places of two pages, or nearly so, are slow (is_close_behind).
constexpr std::size_t kFront = kPage / 2, kBeforeData = kFront + sizeof(std::uint64_t);
// The rest of the line of a mark.
constexpr std::size_t kBesideMark = kLine - sizeof(std::uint64_t);
constexpr std::size_t kFirstPart = kPage - kBeforeData - kBesideMark;
// From so many bytes on two ranks swap slots: to write lines that the other rank has read last costs a second journey
// of each (decision 0047). Fewer go with their mark.
constexpr std::size_t kSwapFrom = 1024;
// From here on more than two ranks with a core each share the work of a reduction.
constexpr std::size_t kShareFrom = 2048;
// Turns of a wait between two looks at other things.
constexpr std::uint32_t kProgressTurns = 16, kSpinningProgressTurns = 256;
// Looks at what has come begin when the answer that most waits are for would be there.
constexpr std::uint32_t kLooksFrom = 32, kLookTurns = 4;
constexpr auto kLookEvery = std::chrono::milliseconds(20);
constexpr auto kLookEveryRank = std::chrono::milliseconds(2);  // so that many ranks do not look all the time
constexpr int kPatience = 50;                                  // looks

// In front of a part of a call whose blocks have different sizes.
struct BlockHeader {
  std::uint64_t rounds;  // this rank needs
  std::uint64_t stride;  // from block to block
};

constexpr std::size_t rounded(std::size_t bytes) { return up_to(bytes, kPage); }
}  // namespace

/// Where a rank says who it is and how far it has come; its data lie in the same line when they are few.
struct alignas(kLine) RankSlot {
  std::byte front[kFront];
  std::atomic<std::uint64_t> posted;  // one more than the round
  std::byte data[kSlot - kBeforeData];
};

struct alignas(kLine) Member {
  std::atomic<std::uint64_t> started;  // 0 until it has attached
  std::atomic<std::int64_t> pid;
  std::atomic<std::int32_t> writes_to;  // one more than the rank whose memory it writes; see one_copy.cpp
  alignas(kLine) Doorbell bell;
  Favour favour;                        // that it asks for
  std::atomic<std::uint32_t> is_asked;  // somebody asks it for one
};

struct SegmentHeader {
  std::uint64_t magic, token;
  std::uint32_t size, counting;
  std::atomic<std::int32_t> broken;    // why, as the calls return it
  std::atomic<std::uint64_t> refused;  // one more than the first round in which the kernel refused a copy; 0: none
  alignas(kLine) std::atomic<std::uint32_t> arrived[2 * kLine / sizeof(std::uint32_t)];  // [0] and [16] are used
  alignas(kLine) std::atomic<std::uint64_t> epoch;
};

namespace {
static_assert(sizeof(RankSlot) == kSlot && kPart + kBeforeData + kBesideMark <= kSlot &&
              sizeof(SegmentHeader) <= kPage);

std::size_t members_at() { return kPage; }
std::size_t slots_at(int size) { return members_at() + rounded(static_cast<std::size_t>(size) * sizeof(Member)); }
// Slots of even rounds and a result, slots of odd rounds and a result.
std::size_t calls_at(int size) { return slots_at(size) + 2 * (static_cast<std::size_t>(size) + 1) * kSlot; }
std::size_t kept_at(int size) { return up_to(calls_at(size) + CallRoom::of_communicator(size).bytes(size), kPage); }
// Of all persistent calls of a communicator.
std::size_t kept_room(int size) { return CallRoom::of_communicator(size).ring; }
std::size_t near_at(int size) { return up_to(kept_at(size) + kept_room(size), kPage); }
std::size_t total(int size) { return near_at(size) + near_bytes(size); }
}  // namespace

Collective::Collective(Segment segment, int rank, int size, const WaitPolicy& policy, WaitHooks hooks)
    : segment_(std::move(segment)),
      header_(segment_.at<SegmentHeader>(0)),
      rank_(rank),
      size_(size),
      counting_(header_->counting != 0),
      policy_(policy),
      hooks_(std::move(hooks)),
      token_(header_->token),
      kept_end_(kept_at(size)),
      near_at_(near_at(size)) {
  add_calls(calls_at(size), CallRoom::of_communicator(size));
  Member& self = member(rank);
  if (counting_) self.bell.expect_many_sleeps();
  self.pid.store(getpid(), std::memory_order_relaxed);
  self.started.store(start_time(getpid()), std::memory_order_release);
}

Result<std::unique_ptr<Collective>> Collective::create(int size, bool shared_cores, const WaitPolicy& policy,
                                                       WaitHooks hooks) {
  auto segment = Segment::create("ulfm-collectives", total(size));
  if (!segment) return fail(segment.error());
  if (auto done = segment->commit(0, slots_at(size)); !done) return fail(done.error());
  if (auto done = segment->commit(near_at(size), near_cards(size)); !done) return fail(done.error());
  auto* header = segment->at<SegmentHeader>(0);
  header->token = random_token();
  header->size = static_cast<std::uint32_t>(size);
  header->counting = shared_cores ? 1 : 0;
  header->magic = kMagic;
  std::unique_ptr<Collective> made(new Collective(std::move(*segment), 0, size, policy, std::move(hooks)));
  if (auto done = made->commit(kFirstPart); !done) return fail(done.error());
  return made;
}

std::string Collective::ticket() const {
  return fmt::format("{:x}.{:x}.{:x}.{:x}", host_identity(), getpid(), segment_.fd(), header_->token);
}

Result<std::unique_ptr<Collective>> Collective::attach(const std::string& ticket, int rank, int size,
                                                       const WaitPolicy& policy, WaitHooks hooks) {
  unsigned long long host = 0, token = 0;
  unsigned pid = 0, fd = 0;
  if (std::sscanf(ticket.c_str(), "%llx.%x.%x.%llx", &host, &pid, &fd, &token) != 4)
    return fail(Errc::invalid, fmt::format("not a ticket of a communicator's segment: {}", ticket));
  if (host != host_identity()) return fail(Errc::unavailable, "the communicator has ranks on another host");
  auto segment = Segment::attach(static_cast<pid_t>(pid), static_cast<int>(fd));
  if (!segment) return fail(segment.error());
  const auto* header = segment->at<SegmentHeader>(0);
  if (segment->size() < total(size) || header->magic != kMagic || header->token != token ||
      header->size != static_cast<std::uint32_t>(size) || rank < 0 || rank >= size)
    return fail(Errc::invalid, "the segment behind a communicator's ticket is another one");
  std::unique_ptr<Collective> made(new Collective(std::move(*segment), rank, size, policy, std::move(hooks)));
  if (auto done = made->commit(kFirstPart); !done) return fail(done.error());
  return made;
}

// Memory for parts of so many bytes. Ranks ask for the results one and all: nobody knows who will write them. Two
// ranks write in both slots of each.
Result<void> Collective::commit(std::size_t bytes) {
  if (bytes <= committed_) return {};
  const std::size_t end = rounded(std::min(bytes, kPart) + kBeforeData + kBesideMark);
  for (std::size_t parity = 0; parity < 2; ++parity)
    for (const int index : {rank_, size_, size_ == 2 ? 1 - rank_ : size_}) {
      const std::size_t slot = parity * (static_cast<std::size_t>(size_) + 1) + static_cast<std::size_t>(index);
      if (auto done = segment_.commit(slots_at(size_) + slot * kSlot, end); !done) return done;
    }
  committed_ = end - kBeforeData - kBesideMark;
  return {};
}

RankSlot& Collective::slot(int rank) const noexcept {
  const std::size_t index = (round_ & 1) * (static_cast<std::size_t>(size_) + 1) + static_cast<std::size_t>(rank);
  return *segment_.at<RankSlot>(slots_at(size_) + index * kSlot);
}

// Of two ranks that both give and get, each writes where it has read two rounds before, beside the other's mark.
std::byte* Collective::part(int rank) const noexcept {
  if (!swaps_) return slot(rank).data;
  const int turn = swapped_ >> (round_ & 1) & 1;
  return slot(turn != 0 ? 1 - rank : rank).data + kBesideMark;
}
std::byte* Collective::result() const noexcept { return slot(size_).data; }

// Of a call, in bytes from each rank, where ranks share cores; beyond it messages are as fast (docs/performance.md).
constexpr std::size_t kLongest = 32 * 1024;
// Of a call with a root between two ranks with a core each: by messages who gives runs ahead of who gets, while here
// each round waits for the mark of the one before, which costs two ways of a line (bench/notes/collectives.md).
constexpr std::size_t kBcastRunsAhead = 8192;
constexpr std::size_t kReduceRunsAhead = 2048;
constexpr std::size_t kGatherRunsAhead = 16 * 1024;   // of each rank's block,
constexpr std::size_t kScatterRunsAhead = 32 * 1024;  // of both
// After so many bytes one call uses the segment, where a rank is at most one round ahead: a late receiver has to keep
// at most twice as much. A message counts as at least kLeastAhead; blocks of which not both ranks know how long they
// are count as kUnknownAhead, however long.
constexpr std::size_t kMostAhead = 256 * 1024;
constexpr std::size_t kLeastAhead = 128;
constexpr std::size_t kUnknownAhead = 4 * 1024;
// A scan costs the last rank as much as there are ranks; messages need a logarithm of that.
constexpr int kLongScan = 4;

// AMD's processors hand a line that is read over with the right to write it, so that two ranks that swap slots fetch
// each line once. Others have not been measured (decision 0047).
static bool hands_lines_over() noexcept {
#if defined(__x86_64__)
  static const bool does = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
  }();
  return does;
#else
  return false;
#endif
}

// How long such a call may be, as its ranks count its bytes.
static std::size_t longest_ahead(int kind) noexcept {
  switch (kind) {
    case ULFM_COLL_BCAST: return kBcastRunsAhead;
    case ULFM_COLL_REDUCE: return kReduceRunsAhead;
    case ULFM_COLL_GATHER: return kGatherRunsAhead;
    default: return kScatterRunsAhead;
  }
}

// Both ranks count the same calls, so they take the same way. Blocks have been measured where lines are not handed
// over.
static bool runs_ahead(int kind, std::size_t bytes, int size, std::size_t& ahead) noexcept {
  const bool is_known = kind != ULFM_COLL_GATHERV && kind != ULFM_COLL_SCATTERV;
  const bool has_blocks = kind != ULFM_COLL_BCAST && kind != ULFM_COLL_REDUCE;
  if (size != 2 || !has_root(kind) || (has_blocks && hands_lines_over())) return false;
  if (is_known && bytes > longest_ahead(kind)) return false;
  ahead += is_known ? std::max(bytes, kLeastAhead) : kUnknownAhead;
  if (ahead <= kMostAhead) return true;
  ahead = 0;
  return false;
}

bool goes_without_segment(int kind, std::size_t bytes, int size, int cores, bool always, std::size_t& ahead) noexcept {
  return has_root(kind) && (size > cores || (!always && runs_ahead(kind, bytes, size, ahead)));
}

bool Collective::are_two_that_hand_over() const noexcept { return size_ == 2 && !counting_ && hands_lines_over(); }

int Collective::way(int kind, std::size_t bytes, bool always) {
  if (has_root(kind) && (counting_ || (!always && runs_ahead(kind, bytes, size_, ahead_)))) return ULFM_COLL_ROOTED;
  if (bytes <= kLongest) return ULFM_COLL_SHARED;
  if (counting_ || broken()) return always ? ULFM_COLL_SHARED : ULFM_COLL_LONG;
  heed_refusal();
  bool gains = always || kind == ULFM_COLL_REDUCE;
  if (kind == ULFM_COLL_SCAN || kind == ULFM_COLL_EXSCAN) gains = gains || size_ <= kLongScan;
  if (has_one_copy(kind)) gains = reads_others() || gains;
  if (kind == ULFM_COLL_ALLREDUCE || kind == ULFM_COLL_REDUCE_SCATTER) gains = gains || are_two_that_hand_over();
  return gains ? ULFM_COLL_SHARED : ULFM_COLL_LONG;
}

bool Collective::broken() const noexcept { return why_broken() != 0; }

// ---- waiting ------------------------------------------------------------------------------------------------------

int Collective::abandon(int why) noexcept {
  std::int32_t none = 0;
  // The others learn of a death, and of anything else only that it happened.
  const bool death = why < 0 && why >= -size_;
  // Release: whoever reads it sees what this rank has posted (why_broken).
  header_->broken.compare_exchange_strong(none, death ? why : kAbandoned, std::memory_order_release,
                                          std::memory_order_relaxed);
  return why;
}

// Acquire: what the rank that broke it had posted before counts (abandon).
int Collective::why_broken() const noexcept { return header_->broken.load(std::memory_order_acquire); }

// A rank in [first, last] whose process has ended without posting `round`, or -1. A rank that has posted may end. When
// ranks share cores, one may have died at the very end of a round that all have posted, which looks the same as a rank
// that still works on it; so it is taken for dead after a while.
int Collective::find_dead(std::uint64_t round, int first, int last, int& patience) const noexcept {
  const std::size_t row = (round & 1) * (static_cast<std::size_t>(size_) + 1);
  bool missing = false;
  for (int rank = first; rank <= last; ++rank) {
    const RankSlot* slot = segment_.at<RankSlot>(slots_at(size_) + (row + static_cast<std::size_t>(rank)) * kSlot);
    if (slot->posted.load(std::memory_order_acquire) > round) continue;
    if (gone(rank)) return rank;
    missing = true;
  }
  if (missing || ++patience < kPatience) return -1;
  for (int rank = first; rank <= last; ++rank)
    if (gone(rank)) return rank;
  return -1;
}

Member& Collective::member(int rank) const noexcept { return segment_.at<Member>(members_at())[rank]; }

pid_t Collective::process_of(int rank) const noexcept {
  return static_cast<pid_t>(member(rank).pid.load(std::memory_order_relaxed));
}

std::atomic<std::int32_t>& Collective::writes_to(int rank) const noexcept { return member(rank).writes_to; }

Favour& Collective::favour_of(int rank) const noexcept { return member(rank).favour; }

std::atomic<std::uint32_t>& Collective::asked(int rank) const noexcept { return member(rank).is_asked; }

std::atomic<std::uint64_t>& Collective::refused_round() const noexcept { return header_->refused; }

bool Collective::gone(int rank) const noexcept {
  const Member& other = member(rank);
  const std::uint64_t started = other.started.load(std::memory_order_acquire);
  return started != 0 && !is_alive(process_of(rank), started);
}

// A wait for other ranks. `find_dead` returns one of them that has ended and is still waited for, or -1.
template <typename Condition, typename FindDead>
int Collective::await(Condition condition, FindDead find_dead) {
  if (condition()) return 0;
  const std::uint32_t every = policy_.has_own_core() ? kSpinningProgressTurns : kProgressTurns;
  std::chrono::steady_clock::time_point looked{};  // most waits end before they need the time
  const auto look_every = std::max<std::chrono::steady_clock::duration>(kLookEvery, kLookEveryRank * size_);
  int patience = 0;
  Waiter waiter(policy_);
  for (std::uint32_t turn = 1;; ++turn) {
    const bool nap = waiter.step();
    after_look();
    if (condition()) return 0;
    const bool has_come = turn > kLooksFrom && turn % kLookTurns == 0 && hooks_.look();
    if (has_come) waiter.reset();
    else if (!nap && turn % every != 0) continue;
    if (const int why = hooks_.progress(); why != 0) return condition() ? 0 : abandon(why);
    if (is_asked()) do_favours();
    // Who leaves right after its part has posted it.
    if (const int why = why_broken(); why != 0) return condition() ? 0 : why;
    if (condition()) return 0;
    const auto now = std::chrono::steady_clock::now();
    if (looked == std::chrono::steady_clock::time_point{}) looked = now;
    if (now - looked >= look_every) {
      looked = now;
      const int dead = find_dead(patience);
      if (dead >= 0 && !condition()) return abandon(-1 - dead);
    }
    if (nap && !has_come && sleep([&] { return condition() || is_asked(); })) waiter.reset();
  }
}

// True when something has come: others' one-sided operations on this rank's memory, say, of which more may follow.
template <typename Condition>
bool Collective::sleep(Condition condition) {
  if (!hooks_.sleep) return yield_now(), false;
  Doorbell& bell = member(rank_).bell;
  bell.arm();
  const bool has_come = condition() || hooks_.sleep(bell.word(), std::ref(condition));
  bell.cancel();
  return has_come;
}

// Whether all have posted `round`. Looks go on where the last one ended.
bool Collective::all_posted(std::uint64_t round) noexcept {
  if (complete_ > round) return true;
  if (counting_) {
    complete_ = header_->epoch.load(std::memory_order_acquire);
    return complete_ > round;
  }
  const std::size_t first = (round & 1) * (static_cast<std::size_t>(size_) + 1);
  const RankSlot* slots = segment_.at<RankSlot>(slots_at(size_) + first * kSlot);
  for (; looked_ < size_; ++looked_)
    if (slots[looked_].posted.load(std::memory_order_acquire) <= round) return false;
  looked_ = 0;
  complete_ = round + 1;
  return true;
}

int Collective::await_all(std::uint64_t round) {
  return await([&] { return all_posted(round); },
               [&](int& patience) { return find_dead(round, 0, size_ - 1, patience); });
}

int Collective::await_rank(int rank) {
  const auto& posted = slot(rank).posted;
  return await([&] { return posted.load(std::memory_order_acquire) > round_; },
               [&](int& patience) { return find_dead(round_, rank, rank, patience); });
}

// For something that no round tells, which that rank does.
template <typename Condition>
int Collective::await_deed(int rank, Condition condition) {
  awaited_deed_ = rank;
  const int why = await(condition, [&](int&) { return gone(rank) ? rank : -1; });
  awaited_deed_ = -1;
  return why;
}

int Collective::await_count(int rank, const std::atomic<std::uint64_t>& count, std::uint64_t least) {
  return await_deed(rank, [&] { return count.load(std::memory_order_acquire) >= least; });
}

int Collective::await_favour(int rank) {
  return await_deed(rank, [&] { return favour_of(rank_).of.load(std::memory_order_acquire) == 0; });
}

int Collective::missing() const noexcept {
  if (awaited_deed_ >= 0) return awaited_deed_;
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_ && slot(rank).posted.load(std::memory_order_relaxed) <= round_) return rank;
  return -1;
}

// ---- rounds -------------------------------------------------------------------------------------------------------

// `both`: each rank gives so many bytes, and gets what others give.
int Collective::begin(std::size_t bytes, bool both) {
  swaps_ = both && size_ == 2 && !counting_ && bytes >= kSwapFrom;
  if (swaps_) swapped_ ^= 1u << (round_ & 1);
  if (const int why = why_broken(); why != 0) return why;
  if (const int why = round_ == 0 ? 0 : await_all(round_ - 1); why != 0) return why;
  return bytes <= committed_ || commit(bytes) ? 0 : abandon(kNoMemory);
}

// This rank's part is in its slot. `work` is done once, by the last to arrive, when ranks share cores.
template <typename Work>
void Collective::post(Work work) {
  slot(rank_).posted.store(round_ + 1, std::memory_order_release);
  if (!counting_) return wake();
  auto& arrived = header_->arrived[(round_ & 1) * (kLine / sizeof(std::uint32_t))];
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 != static_cast<std::uint32_t>(size_)) return;
  arrived.store(0, std::memory_order_relaxed);
  work();
  header_->epoch.store(round_ + 1, std::memory_order_release);
  wake();
}

void Collective::wake() noexcept {
  // One fence for all bells of ranks that share cores (Doorbell::ring has it for one).
  if (counting_) std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    if (!counting_) member(rank).bell.ring();
    else if (member(rank).bell.is_awaited()) member(rank).bell.wake();
  }
}

void Collective::post() {
  post([] {});
}

// ---- nonblocking calls ---------------------------------------------------------------------------------------------

void Collective::add_calls(std::size_t at, CallRoom room) {
  calls_.push_back(std::make_unique<NonblockingCalls>(segment_, at, room, rank_, size_, counting_));
}

int Collective::keep(const ulfm_coll_call& call, bool always) {
  if (const int why = why_broken(); why != 0) return why;
  if (!counting_ && !has_root(call.kind) && !always) return 0;
  const CallRoom room = CallRoom::of_call(call, size_);
  const std::size_t needed = up_to_line(room.bytes(size_));
  if (needed > kept_at(size_) + kept_room(size_) - kept_end_) return 0;
  add_calls(kept_end_, room);
  kept_end_ += needed;
  if (!calls_.back()->commit()) return abandon(kNoMemory);
  return static_cast<int>(calls_.size()) - 1;
}

int Collective::start(const ulfm_coll_call& call, void* cookie) {
  if (const int why = why_broken(); why != 0) return why;
  NonblockingCalls& calls = *calls_[static_cast<std::size_t>(call.kept)];
  const auto has_finished = calls.start(call, cookie);
  if (!has_finished) return abandon(kNoMemory);
  if (calls.take_news()) wake();
  return *has_finished ? 1 : 0;
}

bool Collective::advance() {
  bool has_finished = false, has_news = false;
  for (const auto& calls : calls_) {
    if (calls->is_open()) calls->advance();
    has_news |= calls->take_news();
    has_finished |= calls->has_finished() || (calls->is_open() && broken());
  }
  if (has_news) wake();
  return has_finished;
}

void* Collective::finished(int& why) {
  why = 0;
  const auto next_finished = [this]() -> void* {
    for (const auto& calls : calls_)
      if (void* cookie = calls->finished()) return cookie;
    return nullptr;
  };
  if (void* cookie = next_finished()) return cookie;
  const int broken = why_broken();
  if (broken == 0) return nullptr;
  // Who leaves right after its part has posted it.
  advance();
  if (void* cookie = next_finished()) return cookie;
  why = broken;
  for (const auto& calls : calls_)
    if (void* cookie = calls->drop()) return cookie;
  return nullptr;
}

bool Collective::has_calls() const noexcept {
  return std::any_of(calls_.begin(), calls_.end(), [](const auto& calls) { return !calls->is_idle(); });
}

bool Collective::is_starved() const noexcept {
  return std::any_of(calls_.begin(), calls_.end(), [](const auto& calls) { return calls->is_starved(); });
}

const NonblockingCalls* Collective::open_calls() const noexcept {
  for (const auto& calls : calls_)
    if (calls->is_open()) return calls.get();
  return nullptr;
}

// A rank that a call under way waits for and of which `is_it` holds, or -1. A rank that has posted, and taken all it
// wanted, may end.
template <typename Condition>
int Collective::awaited(Condition is_it) const noexcept {
  for (const auto& calls : calls_)
    for (int rank = 0; calls->is_open() && rank < size_; ++rank)
      if (calls->waits_for(rank) && is_it(rank)) return rank;
  return -1;
}

void Collective::look_for_dead() noexcept {
  const int dead = awaited([this](int rank) { return gone(rank); });
  if (dead >= 0) (void)abandon(-1 - dead);
}

int Collective::missing_in_call() const noexcept {
  return awaited([this](int rank) { return rank != rank_; });
}

Doorbell& Collective::bell_of(int rank) const noexcept { return member(rank).bell; }

int Collective::give_up() noexcept { return abandon(kAbandoned); }

int Collective::barrier() {
  if (const int why = begin(0)) return why;
  post();
  const int why = await_all(round_);
  end();
  return why;
}

int Collective::bcast(void* data, std::size_t bytes, int root) {
  auto* at = static_cast<std::byte*>(data);
  if (is_long(bytes, kLong)) return left(bcast_long(at, bytes, root));
  for (std::size_t n; bytes > 0; bytes -= n, at += n) {
    n = std::min(bytes, kPart);
    if (const int why = begin(n)) return why;
    if (rank_ == root) copy_block(part(root), at, n);
    post();
    if (rank_ != root) {
      if (const int why = await_rank(root)) return why;
      copy_block(at, part(root), n);
    }
    end();
  }
  return 0;
}

// ---- reductions ---------------------------------------------------------------------------------------------------

// into = elements [from, from + count) of the parts of ranks [first, last], in this order. `own`: where this rank's are
// when they are not in its slot.
void Collective::combine(std::byte* into, int first, int last, std::size_t from, std::size_t count, std::size_t extent,
                         ulfm_kernel kernel, const std::byte* own) const noexcept {
  const auto of = [&](int rank) { return (rank == rank_ && own != nullptr ? own : part(rank)) + from * extent; };
  if (into != of(first)) copy_block(into, of(first), count * extent);
  for (int rank = first + 1; rank <= last; ++rank) kernel(into, of(rank), count);
}

// With every rank's part in its slot: leads to `*from` holding the result, for whoever wants it (`all`, or rank_ is the
// root). The round goes on until the caller has read it.
int Collective::combined(std::size_t count, std::size_t extent, ulfm_kernel kernel, bool all, const std::byte** from) {
  *from = result();
  if (counting_) {
    post([&] { combine(result(), 0, size_ - 1, 0, count, extent, kernel); });
    return await_all(round_);
  }
  post();
  if (const int why = await_all(round_)) return why;
  if (!all || size_ == 2 || count * extent < kShareFrom) {
    *from = nullptr;  // the caller combines for itself
    return 0;
  }
  const std::size_t share = (count + static_cast<std::size_t>(size_) - 1) / static_cast<std::size_t>(size_);
  const std::size_t first = std::min(count, share * static_cast<std::size_t>(rank_));
  combine(result() + first * extent, 0, size_ - 1, first, std::min(share, count - first), extent, kernel);
  end();
  post();
  return await_all(round_);
}

int Collective::reduce_piece(const std::byte* in, std::byte* out, std::size_t n, std::size_t extent, ulfm_kernel kernel,
                             int root) {
  if (const int why = begin(n * extent, root < 0)) return why;
  // What a rank reads of its own it may read where it is, unless the result would overwrite it too early.
  const bool stays = !counting_ && (in != out || rank_ == 0);
  if (!stays || rank_ != root) copy_block(part(rank_), in, n * extent);
  if (root >= 0 && rank_ != root) {
    post([&] { combine(result(), 0, size_ - 1, 0, n, extent, kernel); });
  } else {
    const std::byte* sum = nullptr;
    if (const int why = combined(n, extent, kernel, root < 0, &sum)) return why;
    if (sum == nullptr) combine(out, 0, size_ - 1, 0, n, extent, kernel, stays ? in : nullptr);
    else copy_block(out, sum, n * extent);
  }
  end();
  return 0;
}

int Collective::reduce(const void* in, void* out, std::size_t count, std::size_t extent, ulfm_kernel kernel, int root) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  const bool wanted = root < 0 || rank_ == root;
  if (root < 0 && is_long(count * extent, kLongSum, kNeverLong)) return allreduce_long(from, to, count, extent, kernel);
  if (root >= 0 && is_long(count * extent, kLongSum, kNeverLong))
    return left(reduce_long(from, to, count, extent, kernel, root));
  for (std::size_t n; count > 0; count -= n, from += n * extent, to += wanted ? n * extent : 0) {
    n = std::min(count, kPart / extent);
    if (const int why = reduce_piece(from, to, n, extent, kernel, root)) return why;
  }
  return 0;
}

int Collective::reduce_part(const void* in, void* out, std::size_t count, std::size_t extent, ulfm_kernel kernel,
                            std::size_t first, std::size_t mine) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  if (is_long(count * extent, kLongSum, kNeverLong)) return reduce_part_long(from, to, extent, kernel, first, mine);
  for (std::size_t at = 0, n; at < count; at += n) {
    n = std::min(count - at, kPart / extent);
    if (const int why = begin(n * extent, true)) return why;
    copy_block(part(rank_), from + at * extent, n * extent);
    post([&] { combine(result(), 0, size_ - 1, 0, n, extent, kernel); });
    if (const int why = await_all(round_)) return why;
    const std::size_t low = std::max(at, first), high = std::min(at + n, first + mine);
    if (low < high) {
      if (counting_) copy_block(to, result() + (low - at) * extent, (high - low) * extent);
      else combine(to, 0, size_ - 1, low - at, high - low, extent, kernel);
      to += (high - low) * extent;
    }
    end();
  }
  return 0;
}

// With a core for each rank: everyone reads the parts of those before it, and waits for nobody else.
int Collective::scan_piece(const std::byte* in, std::byte* out, std::size_t n, std::size_t extent, ulfm_kernel kernel,
                           bool exclusive) {
  if (const int why = begin(n * extent)) return why;
  const bool stays = in != out || rank_ == 0;
  if (rank_ != size_ - 1 || !stays) copy_block(part(rank_), in, n * extent);
  post();
  for (int rank = 0; rank < rank_; ++rank)
    if (const int why = await_rank(rank)) return why;
  const int last = exclusive ? rank_ - 1 : rank_;
  if (last >= 0) combine(out, 0, last, 0, n, extent, kernel, stays ? in : nullptr);
  end();
  return 0;
}

int Collective::scan_in_one_turn(const std::byte* in, std::byte* out, std::size_t n, std::size_t extent,
                                 ulfm_kernel kernel, bool exclusive) {
  const std::size_t bytes = n * extent;
  if (const int why = begin(bytes)) return why;
  copy_block(part(rank_), in, bytes);
  // Each slot becomes its rank's result; nobody has read any of them.
  post([&] {
    std::byte* sum = result();
    copy_block(sum, part(0), bytes);
    for (int rank = 1; rank < size_; ++rank) {
      if (exclusive) {
        std::byte previous[kPart];
        copy_block(previous, sum, bytes);
        kernel(sum, part(rank), n);
        copy_block(part(rank), previous, bytes);
      } else {
        kernel(sum, part(rank), n);
        copy_block(part(rank), sum, bytes);
      }
    }
  });
  if (const int why = await_all(round_)) return why;
  if (!exclusive || rank_ > 0) copy_block(out, part(rank_), bytes);
  end();
  return 0;
}

int Collective::scan(const void* in, void* out, std::size_t count, std::size_t extent, ulfm_kernel kernel,
                     bool exclusive) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::size_t n; count > 0; count -= n, from += n * extent, to += n * extent) {
    n = std::min(count, kPart / extent);
    const auto piece = counting_ ? &Collective::scan_in_one_turn : &Collective::scan_piece;
    if (const int why = (this->*piece)(from, to, n, extent, kernel, exclusive)) return why;
  }
  return 0;
}

// ---- moving data --------------------------------------------------------------------------------------------------

// What a rank gives to itself does not go through its slot, where others read.
static void copy_own(std::byte* to, const std::byte* from, std::size_t n) {
  if (n != 0 && to != from) copy_block(to, from, n);
}

int Collective::gather(const void* in, void* out, std::size_t bytes, int root) {
  const bool wanted = root < 0 || rank_ == root;
  const auto* from = static_cast<const std::byte*>(in);
  if (root < 0 && is_long(bytes, kLong)) return allgather_long(from, static_cast<std::byte*>(out), bytes);
  if (root >= 0 && is_long(bytes, kLong)) return left(gather_long(from, static_cast<std::byte*>(out), bytes, root));
  for (std::size_t at = 0, n; at < bytes; at += n) {
    n = std::min(bytes - at, kPart);
    if (const int why = begin(n, root < 0)) return why;
    const auto* own = from + at;
    if (rank_ != root) copy_block(part(rank_), own, n);
    post();
    if (wanted) {
      auto* to = static_cast<std::byte*>(out) + at;
      copy_own(to + static_cast<std::size_t>(rank_) * bytes, own, n);
      if (const int why = await_all(round_)) return why;
      for (int rank = 0; rank < size_; ++rank, to += bytes)
        if (rank != rank_) copy_block(to, part(rank), n);
    }
    end();
  }
  return 0;
}

int Collective::allgather(const void* in, void* out, std::size_t bytes) { return gather(in, out, bytes, -1); }

// Of the block for `rank` in the part of `giver`, which has none for itself. So of two ranks both have the same place,
// and each writes where it has read.
static std::size_t place_of(std::size_t rank, std::size_t giver) { return rank > giver ? rank - 1 : rank; }

int Collective::scatter(const void* in, void* out, std::size_t bytes, int root) {
  const auto size = static_cast<std::size_t>(size_), giver = static_cast<std::size_t>(root);
  const std::size_t block = kPart / std::max<std::size_t>(size - 1, 1);
  if (is_long(bytes, kLongBlock))
    return left(scatter_long(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), bytes, root));
  for (std::size_t at = 0, n; at < bytes; at += n) {
    n = std::min(bytes - at, block);
    if (const int why = begin(n * (size - 1))) return why;
    const auto* from = static_cast<const std::byte*>(in) + (rank_ == root ? at : 0);
    for (std::size_t rank = 0; rank_ == root && rank < size; ++rank)
      if (rank != giver) copy_block(part(root) + place_of(rank, giver) * n, from + rank * bytes, n);
    post();
    auto* to = static_cast<std::byte*>(out) + at;
    if (rank_ == root) {
      copy_own(to, from + giver * bytes, n);
    } else {
      if (const int why = await_rank(root)) return why;
      copy_block(to, part(root) + place_of(static_cast<std::size_t>(rank_), giver) * n, n);
    }
    end();
  }
  return 0;
}

int Collective::alltoall(const void* in, void* out, std::size_t bytes) {
  const auto size = static_cast<std::size_t>(size_);
  const std::size_t block = kPart / std::max<std::size_t>(size - 1, 1);
  if (is_long(bytes, kLongBlock))
    return alltoall_long(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), bytes);
  for (std::size_t at = 0, n; at < bytes; at += n) {
    n = std::min(bytes - at, block);
    if (const int why = begin(n * (size - 1), true)) return why;
    const auto* from = static_cast<const std::byte*>(in) + at;
    const auto own = static_cast<std::size_t>(rank_);
    for (std::size_t rank = 0; rank < size; ++rank)
      if (rank != own) copy_block(part(rank_) + place_of(rank, own) * n, from + rank * bytes, n);
    post();
    auto* to = static_cast<std::byte*>(out) + at;
    copy_own(to + own * bytes, from + own * bytes, n);
    if (const int why = await_all(round_)) return why;
    for (int rank = 0; rank < size_; ++rank, to += bytes)
      if (rank != rank_) copy_block(to, part(rank) + place_of(own, static_cast<std::size_t>(rank)) * n, n);
    end();
  }
  return 0;
}

// ---- blocks of different sizes ------------------------------------------------------------------------------------

namespace {
constexpr std::size_t pieces(std::size_t bytes, std::size_t of) {
  return std::max<std::size_t>(1, (bytes + of - 1) / of);
}
constexpr std::size_t lined_up(std::size_t bytes) { return up_to(bytes, 8); }
std::size_t longest_of(const Blocks& blocks, int size) { return *std::max_element(blocks.bytes, blocks.bytes + size); }
BlockHeader& header_of(std::byte* part) { return *reinterpret_cast<BlockHeader*>(part); }
std::byte* blocks_of(std::byte* part) { return part + sizeof(BlockHeader); }
// What is left of a block behind its first `at` bytes, at most `n`.
std::size_t rest(std::size_t bytes, std::size_t at, std::size_t n) { return bytes > at ? std::min(bytes - at, n) : 0; }
}  // namespace

// Of one rank in a part that has one for each other rank.
std::size_t Collective::block() const noexcept {
  return (kPart - sizeof(BlockHeader)) / std::max<std::size_t>(static_cast<std::size_t>(size_) - 1, 1) / 8 * 8;
}

// So many of its rounds bring about as much as `most` rounds in which a rank has a block for itself too.
std::size_t Collective::most_of_blocks(std::size_t most) const noexcept {
  return most - most / static_cast<std::size_t>(size_);
}

int Collective::allgather_blocks(const void* in, void* out, const Blocks& blocks) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  const std::size_t longest = longest_of(blocks, size_);
  if (is_long(longest, kLong)) return allgather_blocks_long(from, to, blocks);
  for (std::size_t at = 0; at < longest; at += kPart) {
    const std::size_t mine = rest(blocks.bytes[rank_], at, kPart);
    if (const int why = begin(std::min(longest - at, kPart), true)) return why;
    if (mine != 0) copy_block(part(rank_), from + at, mine);
    post();
    copy_own(to + blocks.at[rank_] + at, from + at, mine);
    if (const int why = await_all(round_)) return why;
    for (int rank = 0; rank < size_; ++rank)
      if (const std::size_t n = rank == rank_ ? 0 : rest(blocks.bytes[rank], at, kPart); n != 0)
        copy_block(to + blocks.at[rank] + at, part(rank), n);
    end();
  }
  return 0;
}

int Collective::gather_blocks(const void* in, std::size_t bytes, void* out, const Blocks& blocks, int root,
                              std::size_t most) {
  constexpr std::size_t kBlock = kPart - sizeof(BlockHeader);
  std::size_t rounds = 1;
  for (std::size_t k = 0, at = 0; k < rounds; ++k, at += kBlock) {
    const std::size_t mine = rank_ == root ? 0 : rest(bytes, at, kBlock);  // the root's own do not travel
    if (const int why = begin(sizeof(BlockHeader) + mine)) return why;
    header_of(part(rank_)) = {pieces(rank_ == root ? 0 : bytes, kBlock), 0};
    if (mine != 0) copy_block(blocks_of(part(rank_)), static_cast<const std::byte*>(in) + at, mine);
    post();
    if (rank_ == root || k == 0)
      if (const int why = await_all(round_)) return why;
    for (int rank = 0; k == 0 && rank < size_; ++rank)
      rounds = std::max<std::size_t>(rounds, header_of(part(rank)).rounds);
    for (int rank = 0; rank_ == root && rounds <= most && rank < size_; ++rank)
      if (const std::size_t n = rank == root ? 0 : rest(blocks.bytes[rank], at, kBlock); n != 0)
        copy_block(static_cast<std::byte*>(out) + blocks.at[rank] + at, blocks_of(part(rank)), n);
    end();
    if (rounds > most) return kTooLong;
    if (k == 0 && rounds > 1 && !counting_ && reads_others() && is_long((rounds - 1) * kBlock, kBlock)) {
      if (const int why =
              gather_rest(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), blocks, root, kBlock))
        return why;
      break;
    }
  }
  if (rank_ == root && bytes != 0 && static_cast<std::byte*>(out) + blocks.at[root] != in)
    copy_block(static_cast<std::byte*>(out) + blocks.at[root], in, bytes);
  return 0;
}

int Collective::scatter_blocks(const void* in, const Blocks& blocks, void* out, std::size_t bytes, int root,
                               std::size_t most) {
  const std::size_t giver = static_cast<std::size_t>(root), others = static_cast<std::size_t>(size_) - 1;
  most = most_of_blocks(most);
  std::size_t rounds = 1, stride = 0;
  if (rank_ == root) {
    rounds = pieces(longest_of(blocks, size_), block());
    stride = std::min(lined_up(longest_of(blocks, size_)), block());
  }
  for (std::size_t k = 0, at = 0; k < rounds; ++k, at += block()) {
    if (const int why = begin(sizeof(BlockHeader) + stride * others)) return why;
    if (rank_ == root) header_of(part(root)) = {rounds, stride};
    for (int rank = 0; rank_ == root && rounds <= most && rank < size_; ++rank)
      if (const std::size_t n = rank == root ? 0 : rest(blocks.bytes[rank], at, block()); n != 0)
        copy_block(blocks_of(part(root)) + place_of(static_cast<std::size_t>(rank), giver) * stride,
                   static_cast<const std::byte*>(in) + blocks.at[rank] + at, n);
    post();
    if (const int why = await_rank(root)) return why;
    const BlockHeader header = header_of(part(root));
    rounds = header.rounds;
    if (const std::size_t n = rank_ == root || rounds > most ? 0 : rest(bytes, at, block()); n != 0)
      copy_block(static_cast<std::byte*>(out) + at,
                 blocks_of(part(root)) + place_of(static_cast<std::size_t>(rank_), giver) * header.stride, n);
    end();
    if (rounds > most) return kTooLong;
  }
  if (rank_ == root && bytes != 0 && static_cast<const std::byte*>(in) + blocks.at[root] != out)
    copy_block(out, static_cast<const std::byte*>(in) + blocks.at[root], bytes);
  return 0;
}

int Collective::alltoall_blocks(const void* in, const Blocks& from, void* out, const Blocks& to, std::size_t most) {
  const std::size_t longest = longest_of(from, size_), mine = pieces(longest, block());
  const std::size_t stride = std::min(lined_up(longest), block());
  const std::size_t own = static_cast<std::size_t>(rank_), others = static_cast<std::size_t>(size_) - 1;
  most = most_of_blocks(most);
  std::size_t rounds = 1;
  for (std::size_t k = 0, at = 0; k < rounds; ++k, at += block()) {
    if (const int why = begin(sizeof(BlockHeader) + stride * others)) return why;
    header_of(part(rank_)) = {mine, stride};
    for (int rank = 0; rank < size_; ++rank)
      if (const std::size_t n = rank == rank_ ? 0 : rest(from.bytes[rank], at, block()); n != 0)
        copy_block(blocks_of(part(rank_)) + place_of(static_cast<std::size_t>(rank), own) * stride,
                   static_cast<const std::byte*>(in) + from.at[rank] + at, n);
    post();
    if (const int why = await_all(round_)) return why;
    for (int rank = 0; k == 0 && rank < size_; ++rank)
      rounds = std::max<std::size_t>(rounds, header_of(part(rank)).rounds);
    if (rounds <= most)
      copy_own(static_cast<std::byte*>(out) + to.at[rank_] + at,
               static_cast<const std::byte*>(in) + from.at[rank_] + at, rest(to.bytes[rank_], at, block()));
    for (int rank = 0; rounds <= most && rank < size_; ++rank)
      if (const std::size_t n = rank == rank_ ? 0 : rest(to.bytes[rank], at, block()); n != 0)
        copy_block(static_cast<std::byte*>(out) + to.at[rank] + at,
                   blocks_of(part(rank)) + place_of(own, static_cast<std::size_t>(rank)) * header_of(part(rank)).stride,
                   n);
    end();
    if (rounds > most) return kTooLong;
  }
  return 0;
}

}  // namespace ulfm::coll
