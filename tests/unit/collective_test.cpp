// Collectives of forked processes through a segment: random calls, each result compared with what this process works
// out for itself, since it knows what every rank gives.
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "child.hpp"
#include "coll/collective.hpp"
#include "process/process.hpp"
#include "reduce/kernels.h"
#include "transport/direct/direct.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

// The kernel's copies of this program, of which one in `refused_every` is refused; 0: none.
static std::atomic<unsigned> refused_every{0}, copies{0};

static bool is_refused() {
  const unsigned every = refused_every;
  if (every == 0 || ++copies % every != 0) return false;
  errno = EFAULT;
  return true;
}

extern "C" ssize_t process_vm_readv(pid_t process, const iovec* own, unsigned long owns, const iovec* other,
                                    unsigned long others, unsigned long flags) noexcept {
  return is_refused() ? -1 : syscall(SYS_process_vm_readv, process, own, owns, other, others, flags);
}

extern "C" ssize_t process_vm_writev(pid_t process, const iovec* own, unsigned long owns, const iovec* other,
                                     unsigned long others, unsigned long flags) noexcept {
  return is_refused() ? -1 : syscall(SYS_process_vm_writev, process, own, owns, other, others, flags);
}

namespace {

using Bytes = std::vector<std::byte>;

struct Random {
  std::uint64_t state;
  std::uint64_t any() {
    std::uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(any() % n); }
};

/// `n` ints that rank `rank` gives in call `call`: small, so that sums and products are exact in any order.
Bytes given(std::uint64_t call, int rank, std::size_t n) {
  std::vector<std::int32_t> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<std::int32_t>((call * 31 + static_cast<std::uint64_t>(rank) * 7 + i * 3) % 5);
  Bytes bytes(n * 4);
  if (n != 0) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// One rank's calls. The numbers drawn are the same in all ranks.
class Caller {
 public:
  Caller(coll::Collective& coll, int rank, int size, std::uint64_t seed)
      : coll_(coll), rank_(rank), size_(size), random_{seed} {}

  /// A call and its check; what went wrong, or "".
  std::string call(std::uint64_t number) {
    number_ = number;
    const std::size_t lengths[] = {1, 5, 1000, 9000, 60000};
    n_ = random_.below(lengths[random_.below(5)]) + 1;
    root_ = static_cast<int>(random_.below(static_cast<std::size_t>(size_)));
    in_place_ = random_.below(3) == 0;
    switch (random_.below(12)) {
      case 0: return coll_.barrier() == 0 ? "" : "barrier";
      case 1: return bcast();
      case 2: return reduce(-1);
      case 3: return reduce(root_);
      case 4: return scan(false);
      case 5: return scan(true);
      case 6: return gather(random_.below(2) == 0 ? -1 : root_);
      case 7: return alltoall();
      case 8: return scatter();
      case 9: return reduce_part();
      case 10: return neighbors();
      default: return blocks();
    }
  }

 private:
  Bytes mine() const { return given(number_, rank_, n_); }
  std::string check(const char* what, int rc, const Bytes& got, const Bytes& expected) const {
    if (rc != 0) return std::string(what) + " returned " + std::to_string(rc);
    return got == expected ? "" : std::string(what) + " of " + std::to_string(n_) + " ints gave something else";
  }

  /// Two blocks for one rank and one for another, few of which are neighbours both ways.
  std::vector<int> neighbors_of(int rank) const { return {(rank + 1) % size_, (rank + 1) % size_, (rank + 3) % size_}; }
  std::byte block_of(int rank, int place) const {
    return static_cast<std::byte>(number_ * 7 + static_cast<std::uint64_t>(rank) * 3 +
                                  static_cast<std::uint64_t>(place) * 50 + 1);
  }
  std::string neighbors() {
    const std::size_t bytes = n_ % 1300 + 1;
    std::vector<int> from, places;
    for (int rank = 0; rank < size_; ++rank)
      for (int place = 0; place < 3; ++place)
        if (neighbors_of(rank)[static_cast<std::size_t>(place)] == rank_) from.push_back(rank), places.push_back(place);
    if (!coll_.has_near() && coll_.near_open(from, neighbors_of(rank_)) != 0) return "near_open";
    std::byte* blocks = nullptr;
    std::size_t room = 0;
    if (coll_.near_begin(blocks, room) != 0 || room < 3 * bytes) return "near_begin";
    for (int place = 0; place < 3; ++place)
      std::fill_n(blocks + static_cast<std::size_t>(place) * bytes, bytes, block_of(rank_, place));
    coll_.near_post(bytes);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::byte* block = nullptr;
      if (coll_.near_take(static_cast<int>(i), from[i], block) != 0 || block == nullptr) return "near_take";
      const std::byte expected = block_of(from[i], places[i]);
      if (!std::all_of(block, block + bytes, [&](std::byte one) { return one == expected; }))
        return "a block from rank " + std::to_string(from[i]) + " is another one";
    }
    coll_.near_end();
    return "";
  }

  std::string bcast() {
    Bytes data = rank_ == root_ ? mine() : Bytes(n_ * 4);
    const int rc = coll_.bcast(data.data(), data.size(), root_);
    return check("bcast", rc, data, given(number_, root_, n_));
  }

  Bytes combined(int last, ulfm_kernel kernel) const {
    Bytes sum = given(number_, 0, n_);
    for (int rank = 1; rank <= last; ++rank) kernel(sum.data(), given(number_, rank, n_).data(), n_);
    return sum;
  }
  ulfm_kernel draw_kernel() {
    const int ops[] = {ULFM_OP_SUM, ULFM_OP_MAX, ULFM_OP_PROD, ULFM_OP_BXOR};
    return ulfm_reduce_kernel(ops[random_.below(4)], ULFM_TYPE_I32);
  }

  std::string reduce(int root) {
    const ulfm_kernel kernel = draw_kernel();
    Bytes in = mine(), out = in_place_ ? in : Bytes(n_ * 4);
    const int rc = coll_.reduce(in_place_ ? out.data() : in.data(), out.data(), n_, 4, kernel, root);
    if (root >= 0 && rank_ != root) return check("reduce", rc, in, mine());
    return check("reduce", rc, out, combined(size_ - 1, kernel));
  }

  /// Rank r gets r % 3 shares.
  std::string reduce_part() {
    const ulfm_kernel kernel = draw_kernel();
    const std::size_t share = n_ / static_cast<std::size_t>(size_) / 3;
    const auto shares = [](int rank) { return static_cast<std::size_t>(rank % 3); };
    std::size_t first = 0, all = 0;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) first = all;
      all += share * shares(rank);
    }
    if (all == 0) return "";
    const std::size_t got = share * shares(rank_);
    const Bytes sum = combined(size_ - 1, kernel);
    Bytes in = mine(), out = in_place_ ? in : Bytes(got * 4 + 4);
    const int rc = coll_.reduce_part(in_place_ ? out.data() : in.data(), out.data(), all, 4, kernel, first, got);
    const auto from = sum.begin() + static_cast<std::ptrdiff_t>(first * 4);
    out.resize(got * 4);
    return check("reduce_scatter", rc, out, Bytes(from, from + static_cast<std::ptrdiff_t>(got * 4)));
  }

  std::string scan(bool exclusive) {
    const ulfm_kernel kernel = draw_kernel();
    Bytes in = mine(), out = in_place_ ? in : Bytes(n_ * 4);
    const int rc = coll_.scan(in_place_ ? out.data() : in.data(), out.data(), n_, 4, kernel, exclusive);
    if (exclusive && rank_ == 0) return rc == 0 ? "" : "exscan";
    return check("scan", rc, out, combined(exclusive ? rank_ - 1 : rank_, kernel));
  }

  std::string gather(int root) {
    Bytes expected, in = mine();
    for (int rank = 0; rank < size_; ++rank) {
      const Bytes part = given(number_, rank, n_);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    Bytes out(expected.size());
    const std::byte* from = in.data();
    if (in_place_ && (root < 0 || rank_ == root)) {
      std::byte* place = out.data() + static_cast<std::size_t>(rank_) * in.size();
      std::memcpy(place, in.data(), in.size());
      from = place;
    }
    const int rc = coll_.gather(from, out.data(), in.size(), root);
    if (root >= 0 && rank_ != root) return rc == 0 ? "" : "gather";
    return check("gather", rc, out, expected);
  }

  std::string alltoall() {
    const auto size = static_cast<std::size_t>(size_);
    Bytes in = given(number_, rank_, n_ * size), expected, out(in.size());
    for (int rank = 0; rank < size_; ++rank) {
      const Bytes all = given(number_, rank, n_ * size);
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(n_ * 4) * rank_;
      expected.insert(expected.end(), from, from + static_cast<std::ptrdiff_t>(n_ * 4));
    }
    if (in_place_) out = in;
    const int rc = coll_.alltoall(in_place_ ? out.data() : in.data(), out.data(), n_ * 4);
    return check("alltoall", rc, out, expected);
  }

  std::string scatter() {
    const auto size = static_cast<std::size_t>(size_);
    Bytes all = given(number_, root_, n_ * size), out(n_ * 4);
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(n_ * 4) * rank_;
    const Bytes expected(from, from + static_cast<std::ptrdiff_t>(n_ * 4));
    const int rc = coll_.scatter(rank_ == root_ ? all.data() : nullptr, out.data(), out.size(), root_);
    return check("scatter", rc, out, expected);
  }

  // ---- blocks of different sizes: what rank `from` has for rank `to`, with gaps between them
  std::size_t ints(int from, int to) const {
    return (static_cast<std::size_t>(from) * 5 + static_cast<std::size_t>(to) * 11 + number_) % 7 == 0
               ? 0
               : n_ * static_cast<std::size_t>(1 + (from + 2 * to) % 3) / 2;
  }
  struct Layout {
    std::vector<std::size_t> bytes, at;
    std::size_t end = 0;
    void add(std::size_t n) {
      bytes.push_back(n);
      at.push_back(end + 8);
      end += n + 8;
    }
    coll::Blocks blocks() const { return {bytes.data(), at.data()}; }
  };
  Bytes block(int from, int to) const { return given(number_ + static_cast<std::uint64_t>(to), from, ints(from, to)); }
  static void put(Bytes& all, std::size_t at, const Bytes& block) {
    if (!block.empty()) std::memcpy(all.data() + at, block.data(), block.size());
  }

  std::string blocks() {
    const std::size_t most = random_.below(2) == 0 ? 1 : 1000;
    switch (random_.below(4)) {
      case 0: return allgather_blocks();
      case 1: return gather_blocks(most);
      case 2: return scatter_blocks(most);
      default: return alltoall_blocks(most);
    }
  }

  /// Too long is right only when there is a limit, and leaves what was there.
  std::string check_blocks(const char* what, int rc, const Bytes& got, const Bytes& expected, std::size_t most) const {
    if (rc != coll::Collective::kTooLong || most != 1) return check(what, rc, got, expected);
    return got == Bytes(got.size()) ? "" : std::string(what) + " was too long and yet did something";
  }

  std::string allgather_blocks() {
    Layout layout;
    for (int rank = 0; rank < size_; ++rank) layout.add(ints(rank, 0) * 4);
    Bytes out(layout.end), expected(layout.end), in = block(rank_, 0);
    for (int rank = 0; rank < size_; ++rank) put(expected, layout.at[static_cast<std::size_t>(rank)], block(rank, 0));
    if (in_place_) put(out, layout.at[static_cast<std::size_t>(rank_)], in);
    const std::byte* from = in_place_ ? out.data() + layout.at[static_cast<std::size_t>(rank_)] : in.data();
    return check("allgatherv", coll_.allgather_blocks(from, out.data(), layout.blocks()), out, expected);
  }

  std::string gather_blocks(std::size_t most) {
    Layout layout;
    if (rank_ == root_)
      for (int rank = 0; rank < size_; ++rank) layout.add(ints(rank, 0) * 4);
    Bytes out(layout.end), expected(layout.end), in = block(rank_, 0);
    for (int rank = 0; rank_ == root_ && rank < size_; ++rank)
      put(expected, layout.at[static_cast<std::size_t>(rank)], block(rank, 0));
    const int rc = coll_.gather_blocks(in.data(), in.size(), out.data(), layout.blocks(), root_, most);
    return check_blocks("gatherv", rc, out, expected, most);
  }

  std::string scatter_blocks(std::size_t most) {
    Layout layout;
    for (int rank = 0; rank_ == root_ && rank < size_; ++rank) layout.add(ints(root_, rank) * 4);
    Bytes in(layout.end);
    for (int rank = 0; rank_ == root_ && rank < size_; ++rank)
      put(in, layout.at[static_cast<std::size_t>(rank)], block(root_, rank));
    const Bytes expected = block(root_, rank_);
    Bytes out(expected.size());
    const int rc = coll_.scatter_blocks(in.data(), layout.blocks(), out.data(), out.size(), root_, most);
    return check_blocks("scatterv", rc, out, expected, most);
  }

  std::string alltoall_blocks(std::size_t most) {
    Layout from, to;
    for (int rank = 0; rank < size_; ++rank) {
      from.add(ints(rank_, rank) * 4);
      to.add(ints(rank, rank_) * 4);
    }
    Bytes in(from.end), out(to.end), expected(to.end);
    for (int rank = 0; rank < size_; ++rank) {
      put(in, from.at[static_cast<std::size_t>(rank)], block(rank_, rank));
      put(expected, to.at[static_cast<std::size_t>(rank)], block(rank, rank_));
    }
    const int rc = coll_.alltoall_blocks(in.data(), from.blocks(), out.data(), to.blocks(), most);
    return check_blocks("alltoallv", rc, out, expected, most);
  }

  coll::Collective& coll_;
  int rank_, size_;
  Random random_;
  std::uint64_t number_ = 0;
  std::size_t n_ = 0;
  int root_ = 0;
  bool in_place_ = false;
};

/// Whether calls are made with one copy, and how many of the kernel's copies it refuses then: see refused_every.
struct OneCopy {
  bool is_wanted = false;
  unsigned refused_every = 0;
};

/// Process `rank` makes `calls` of them and says how it went.
void run(test::Pipe& parent, std::unique_ptr<coll::Collective> coll, int rank, int size, OneCopy one_copy,
         std::uint64_t calls) {
  if (one_copy.is_wanted && !coll->reads_others()) return parent.send("no one copy");
  refused_every = one_copy.refused_every;
  Caller caller(*coll, rank, size, 4711 + static_cast<std::uint64_t>(size));
  for (std::uint64_t i = 0; i < calls; ++i)
    if (const std::string wrong = caller.call(i); !wrong.empty())
      return parent.send("call " + std::to_string(i) + ", rank " + std::to_string(rank) + ": " + wrong);
  // Two ranks whose processor hands lines over copy only longer ones once (kLongOfTwo).
  if (one_copy.refused_every != 0 && size > 2 && copies == 0) return parent.send("nothing was copied once");
  // Nobody leaves while others may still read its memory.
  parent.send(coll->barrier() == 0 ? "right" : "the last barrier failed");
}

void compare(int size, bool shared_cores, OneCopy one_copy, std::uint64_t calls) {
  const WaitPolicy policy = WaitPolicy::for_processes(1000);  // the machine may be busy: yield
  std::vector<std::unique_ptr<test::Child>> children;
  coll::WaitHooks hooks{[] { return 0; }, [] { return false; },
                        [](WaitWord call, const Look&) { return call.sleep(1ms); }};
  // The child of rank 0 stays until all have attached to its segment.
  children.push_back(std::make_unique<test::Child>([&](test::Pipe& parent) {
    auto coll = coll::Collective::create(size, shared_cores, policy, hooks);
    if (!coll) return parent.send("no segment: " + coll.error().what);
    parent.send((*coll)->ticket());
    run(parent, std::move(*coll), 0, size, one_copy, calls);
    parent.receive();
  }));
  const std::string ticket = children[0]->pipe().receive();
  for (int rank = 1; rank < size; ++rank)
    children.push_back(std::make_unique<test::Child>([&, rank](test::Pipe& parent) {
      auto coll = coll::Collective::attach(ticket, rank, size, policy, hooks);
      if (!coll) return parent.send("not attached: " + coll.error().what);
      run(parent, std::move(*coll), rank, size, one_copy, calls);
    }));
  for (auto& child : children) {
    const std::string said = child->pipe().receive();
    if (said == "no one copy") {
      WARN("this kernel does not let processes read each other's memory");
      continue;
    }
    CHECK(said == "right");
  }
  children[0]->pipe().send("done");
}

}  // namespace

TEST_CASE("Random collectives with a core for each rank give what they must", "[collective]") {
  const int size = GENERATE(2, 3, 5);
  compare(size, false, {}, 150);
}

TEST_CASE("Random collectives of ranks that share cores give what they must", "[collective]") {
  const int size = GENERATE(2, 4, 7);
  compare(size, true, {}, 150);
}

TEST_CASE("Long collectives with one copy give what they must", "[collective]") {
  const int size = GENERATE(2, 3, 4);
  compare(size, false, {.is_wanted = true}, 150);
}

TEST_CASE("Long collectives go on where the kernel refuses a copy", "[collective]") {
  const int size = GENERATE(2, 3, 4);
  const unsigned every = GENERATE(1u, 2u, 5u);
  compare(size, false, {.is_wanted = true, .refused_every = every}, 150);
}

TEST_CASE("who asks a rank that dies for its bytes is told", "[collective]") {
  const WaitPolicy policy = WaitPolicy::for_processes(1000);
  std::function<int()> in_waits = [] { return 0; };
  const coll::WaitHooks hooks{[&] { return in_waits(); }, [] { return false; }, nullptr};
  auto coll = coll::Collective::create(2, false, policy, hooks).value();
  const auto gathered = [](coll::Collective& calls) {
    Bytes in(1 << 20), out(2 << 20);
    return calls.gather(in.data(), out.data(), in.size(), -1);
  };
  // Once it has read what it wants it does nothing any more, not even what it is asked for.
  test::Child other([&](test::Pipe& parent) {
    auto same = coll::Collective::attach(coll->ticket(), 1, 2, policy, hooks).value();
    if (!same->reads_others()) return;
    refused_every = std::numeric_limits<unsigned>::max();
    in_waits = [&] {
      if (copies == 0) return 0;
      parent.send("has read");
      for (;;) pause();
    };
    (void)gathered(*same);
  });
  if (!coll->reads_others()) {
    WARN("this kernel does not let processes read each other's memory");
    return;
  }
  int waits = 0;
  in_waits = [&] {
    if (copies > 0 && ++waits == 10 && other.pipe().receive() == "has read") other.strike();
    return 0;
  };
  copies = 0;
  refused_every = 1;
  const int why = gathered(*coll);
  refused_every = 0;
  CHECK(why == -2);
  CHECK(waits >= 10);
}

TEST_CASE("who waits in a barrier is woken by what comes to its port, and by the barrier", "[collective]") {
  const bool shared_cores = GENERATE(false, true);
  auto transport = direct_transport.make(Config::load().value()).value();
  PortCounters counters;
  auto here = transport->open(5, {}).value(), there = transport->open(6, {}).value();
  auto outlet = transport->connect(transport->card(), 6, 5, {}, counters).value();
  if (shared_cores) there->wake_source().expect_many_sleeps();
  const WaitPolicy policy = WaitPolicy::for_processes(1000);
  std::atomic<int> taken{0}, sleeps{0};
  const coll::WaitHooks waits{[&] {
                                Frame frame;
                                for (; there->next(frame); ++taken) there->release(frame);
                                return 0;
                              },
                              [&] { return there->look(); },
                              [&](WaitWord call, const Look& over) {  // as good as for ever: nothing but a ring ends it
                                Inlet* const inlet = there.get();
                                ++sleeps;
                                return Process::park(std::span(&inlet, 1), 1h, call, over);
                              }};
  auto first = coll::Collective::create(2, shared_cores, policy, {[] { return 0; }, [] { return false; }, {}}).value();
  auto second = coll::Collective::attach(first->ticket(), 1, 2, policy, waits).value();
  int said = -1;
  std::thread waiter([&] { said = second->barrier(); });
  for (int i = 0; i < 20; ++i) {
    while (sleeps.load() <= i) std::this_thread::yield();
    Gather none;
    REQUIRE(outlet->push(Kind::first, {}, none, 0));
    while (taken.load() <= i) std::this_thread::yield();
  }
  CHECK(first->barrier() == 0);
  waiter.join();
  CHECK(said == 0);
}

TEST_CASE("short broadcasts and reductions of two ranks go by messages, which run ahead, but not for ever",
          "[collective]") {
  const WaitPolicy policy = WaitPolicy::for_processes(1000);
  const coll::WaitHooks none{[] { return 0; }, [] { return false; }, {}};
  const auto way = [&](int size, int kind, std::size_t bytes, bool always) {
    return coll::Collective::create(size, false, policy, none).value()->way(kind, bytes, always);
  };
  CHECK(way(2, ULFM_COLL_BCAST, 8192, false) == ULFM_COLL_ROOTED);
  CHECK(way(2, ULFM_COLL_BCAST, 8193, false) == ULFM_COLL_SHARED);
  CHECK(way(2, ULFM_COLL_REDUCE, 2048, false) == ULFM_COLL_ROOTED);
  CHECK(way(2, ULFM_COLL_REDUCE, 2049, false) == ULFM_COLL_SHARED);
  CHECK(way(2, ULFM_COLL_BCAST, 8, true) == ULFM_COLL_SHARED);
  CHECK(way(2, ULFM_COLL_ALLREDUCE, 8, false) == ULFM_COLL_SHARED);
  CHECK(way(3, ULFM_COLL_BCAST, 8, false) == ULFM_COLL_SHARED);
  CHECK(way(3, ULFM_COLL_GATHER, 8, false) == ULFM_COLL_SHARED);
  // The processor's maker decides about blocks.
  const int of_blocks = way(2, ULFM_COLL_GATHER, 8, false);
  CHECK((of_blocks == ULFM_COLL_ROOTED || of_blocks == ULFM_COLL_SHARED));
  CHECK(way(2, ULFM_COLL_GATHER, 16384, false) == of_blocks);
  CHECK(way(2, ULFM_COLL_GATHER, 16385, false) == ULFM_COLL_SHARED);
  CHECK(way(2, ULFM_COLL_SCATTER, 32768, false) == of_blocks);
  CHECK(way(2, ULFM_COLL_GATHERV, 1, false) == of_blocks);
  CHECK(way(2, ULFM_COLL_SCATTERV, 1, true) == ULFM_COLL_SHARED);

  // At most 256 KB go between two calls that use the segment, and both ranks decide alike.
  auto first = coll::Collective::create(2, false, policy, none).value();
  auto second = coll::Collective::attach(first->ticket(), 1, 2, policy, none).value();
  std::size_t ahead = 0, furthest = 0, waits = 0;
  for (const std::size_t bytes : {std::size_t{8192}, std::size_t{0}, std::size_t{1}, std::size_t{2000}})
    for (int i = 0; i < 5000; ++i) {
      const int kind = i % 3 == 0 && bytes <= 2048 ? ULFM_COLL_REDUCE : ULFM_COLL_BCAST;
      const int chosen = first->way(kind, bytes, false);
      REQUIRE(second->way(kind, bytes, false) == chosen);
      ahead = chosen == ULFM_COLL_ROOTED ? ahead + bytes : 0;
      furthest = std::max(furthest, ahead);
      waits += chosen == ULFM_COLL_SHARED;
    }
  CHECK(furthest <= 256 * 1024);
  CHECK(waits > 100);
}

TEST_CASE("calls that go by messages in any case need no segment", "[collective]") {
  std::size_t ahead = 0;
  const auto without = [&](int kind, std::size_t bytes, int size, int cores, bool always) {
    return coll::goes_without_segment(kind, bytes, size, cores, always, ahead);
  };
  // More ranks than cores: whatever has a root.
  CHECK(without(ULFM_COLL_BCAST, 1 << 20, 8, 4, false));
  CHECK(without(ULFM_COLL_SCATTERV, 1, 8, 4, true));
  CHECK_FALSE(without(ULFM_COLL_BCAST, 1 << 20, 4, 4, false));
  CHECK_FALSE(without(ULFM_COLL_ALLREDUCE, 8, 8, 4, false));
  CHECK_FALSE(without(ULFM_COLL_BARRIER, 0, 8, 4, false));
  // Two ranks: few bytes, but not for ever.
  CHECK(without(ULFM_COLL_BCAST, 8192, 2, 4, false));
  CHECK_FALSE(without(ULFM_COLL_BCAST, 8192, 2, 4, true));
  CHECK_FALSE(without(ULFM_COLL_BCAST, 8193, 2, 4, false));
  CHECK_FALSE(without(ULFM_COLL_ALLGATHER, 8, 2, 4, false));
  CHECK(ahead == 8192);
  int calls = 1;
  while (without(ULFM_COLL_BCAST, 8192, 2, 4, false)) ++calls;
  CHECK(calls == 32);
  CHECK(without(ULFM_COLL_BCAST, 8192, 2, 4, false));
}

TEST_CASE("a rank that posts its part of a call and gives up right after it does not fail the others' call",
          "[collective]") {
  const bool shared_cores = GENERATE(false, true);
  const WaitPolicy policy = WaitPolicy::for_processes(1000);
  const coll::WaitHooks none{[] { return 0; }, [] { return false; }, {}};
  auto first = coll::Collective::create(2, shared_cores, policy, none).value();

  SECTION("a blocking one, of which a look for what comes finds only the end") {
    constexpr int kHasEnded = 77;
    std::atomic<bool> waits{false}, has_given_up{false};
    const coll::WaitHooks ends{[&] {
                                 waits = true;
                                 while (!has_given_up.load()) std::this_thread::yield();
                                 return kHasEnded;
                               },
                               [] { return false; },
                               {}};
    auto second = coll::Collective::attach(first->ticket(), 1, 2, policy, ends).value();
    int said = -1;
    std::thread waiter([&] { said = second->barrier(); });
    while (!waits.load()) std::this_thread::yield();
    CHECK(first->barrier() == 0);
    first->give_up();
    has_given_up = true;
    waiter.join();
    CHECK(said == 0);
    CHECK(second->barrier() != 0);
  }
  SECTION("a nonblocking one") {
    auto second = coll::Collective::attach(first->ticket(), 1, 2, policy, none).value();
    ulfm_coll_call barrier{};
    barrier.kind = ULFM_COLL_BARRIER;
    int mine = 0, others = 0, why = -1;
    REQUIRE(first->start(barrier, &mine) == 0);
    REQUIRE(second->start(barrier, &others) == 1);
    REQUIRE(first->start(barrier, &others) == 0);  // which never ends
    second->give_up();
    CHECK(first->finished(why) == &mine);
    CHECK(why == 0);
    CHECK(first->finished(why) == &others);
    CHECK(why != 0);
    CHECK(first->finished(why) == nullptr);
  }
}
