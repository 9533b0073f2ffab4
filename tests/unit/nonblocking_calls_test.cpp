// Nonblocking collectives through a segment: ranks of one process that take their steps in drawn orders, with many
// calls under way. Each result is compared with what the test works out for itself.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "coll/nonblocking.hpp"
#include "reduce/kernels.h"

using namespace ulfm;
using coll::CallRoom;
using coll::NonblockingCalls;

namespace {

using Ints = std::vector<std::int32_t>;

constexpr int kKinds[] = {ULFM_COLL_BARRIER,        ULFM_COLL_BCAST,    ULFM_COLL_REDUCE,   ULFM_COLL_ALLREDUCE,
                          ULFM_COLL_REDUCE_SCATTER, ULFM_COLL_SCAN,     ULFM_COLL_EXSCAN,   ULFM_COLL_GATHER,
                          ULFM_COLL_ALLGATHER,      ULFM_COLL_SCATTER,  ULFM_COLL_ALLTOALL, ULFM_COLL_GATHERV,
                          ULFM_COLL_ALLGATHERV,     ULFM_COLL_SCATTERV, ULFM_COLL_ALLTOALLV};
bool has_sizes(int kind) { return kind >= ULFM_COLL_GATHERV; }

/// What all ranks know of call `number`.
struct Plan {
  int kind, root;
  std::size_t n;  // ints of a rank, or for each rank
  ulfm_kernel kernel;
};

/// Small values, so that sums and products are exact.
Ints given(std::uint64_t call, int rank, std::size_t n) {
  Ints values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<std::int32_t>((call * 31 + static_cast<std::uint64_t>(rank) * 7 + i * 3) % 5);
  return values;
}

class Ranks {
 public:
  Ranks(int size, bool counts, std::size_t longest, unsigned seed) : size_(size), longest_(longest), random_(seed) {
    segment_ = Segment::create("test", kAt + CallRoom::of_communicator(size).bytes(size)).value();
    for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(segment_, rank, size, counts));
  }

  /// Makes so many calls in each rank, at most `most` under way in one, and sees them end.
  void run(std::uint64_t calls, std::size_t most) {
    for (std::uint64_t n = 0; n < calls; ++n) plans_.push_back(draw());
    for (bool over = false; !over;) {
      const int which = static_cast<int>(random_() % static_cast<unsigned>(size_));
      Rank& rank = *ranks_[static_cast<std::size_t>(which)];
      if (rank.made < calls && rank.under_way.size() < most && random_() % 3 != 0) make(rank, which);
      else rank.calls.advance();
      (void)rank.calls.take_news();
      take_finished(rank, which);
      over = std::all_of(ranks_.begin(), ranks_.end(),
                         [&](const auto& r) { return r->made == calls && r->under_way.empty(); });
    }
  }

 private:
  struct Made {
    std::uint64_t number;
    Ints in, out;
    std::vector<std::size_t> in_bytes, in_at, out_bytes, out_at;
  };
  struct Rank {
    Rank(Segment& segment, int rank, int size, bool counts)
        : calls(segment, kAt, CallRoom::of_communicator(size), rank, size, counts) {}
    NonblockingCalls calls;
    std::uint64_t made = 0;
    std::vector<std::unique_ptr<Made>> under_way;
  };
  static constexpr std::size_t kAt = 8192;  // anywhere in a segment

  Plan draw() {
    const int ops[] = {ULFM_OP_SUM, ULFM_OP_MAX, ULFM_OP_PROD, ULFM_OP_BXOR};
    Plan plan{kKinds[random_() % std::size(kKinds)], static_cast<int>(random_() % static_cast<unsigned>(size_)),
              1 + random_() % longest_, ulfm_reduce_kernel(ops[random_() % 4], ULFM_TYPE_I32)};
    const std::size_t bytes = 4 * plan.n * (is_for_each(plan) ? static_cast<std::size_t>(size_) : 1);
    if (!ranks_[0]->calls.fits(plan.kind, bytes * 2)) plan.n = 1;
    return plan;
  }
  static bool is_for_each(const Plan& p) {
    return p.kind == ULFM_COLL_SCATTER || p.kind == ULFM_COLL_ALLTOALL || p.kind == ULFM_COLL_REDUCE_SCATTER;
  }
  /// Ints that rank `from` has for rank `to`, where sizes differ.
  static std::size_t block(const Plan& p, int from, int to) {
    return p.n * static_cast<std::size_t>((from * 5 + to * 4) % 3);
  }
  /// The blocks of a call with sizes: one behind the other, with a gap before each where they arrive.
  void lay_out(Made& made, const Plan& plan, int self) const {
    std::size_t in = 0, out = 0;
    for (int rank = 0; rank < size_; ++rank) {
      const std::size_t gives = block(plan, self, rank),
                        gets = block(plan, rank, plan.kind == ULFM_COLL_ALLGATHERV ? 0 : self);
      made.in_bytes.push_back(gives * 4);
      made.in_at.push_back(in * 4);
      in += gives;
      made.out_bytes.push_back(gets * 4);
      made.out_at.push_back(++out * 4);
      out += gets;
    }
    made.in = given(made.number, self, std::max(in, block(plan, self, 0)));
    made.out.assign(std::max(out, 2 * plan.n), -1);
  }
  void describe(ulfm_coll_call& call, const Made& made, const Plan& plan, int self) const {
    call.in_bytes = made.in_bytes.data();
    call.in_at = made.in_at.data();
    call.out_bytes = made.out_bytes.data();
    call.out_at = made.out_at.data();
    call.count = 4 * (plan.kind == ULFM_COLL_GATHERV ? block(plan, self, plan.root) : block(plan, plan.root, self));
  }
  /// What block `to` of `from` is, when each has blocks of its own.
  Ints block_of(std::uint64_t number, int from, int to) const {
    std::size_t at = 0;
    for (int rank = 0; rank < to; ++rank) at += block(plans_[number], from, rank);
    const std::size_t n = block(plans_[number], from, to);
    const Ints all = given(number, from, at + n);
    return {all.begin() + static_cast<std::ptrdiff_t>(at), all.end()};
  }
  /// Blocks that are too long are left out, but for a rank's own.
  void expect_blocks(Ints& result, const Made& made, int self) const {
    const Plan& plan = plans_[made.number];
    const bool is_limited = plan.kind != ULFM_COLL_ALLGATHERV;
    const std::size_t longest = ranks_[0]->calls.longest_block(plan.kind);
    const auto put = [&](std::size_t at, int from, const Ints& values) {
      if (!is_limited || from == self || values.size() * 4 <= longest)
        std::copy(values.begin(), values.end(), result.begin() + static_cast<std::ptrdiff_t>(at));
    };
    if (plan.kind == ULFM_COLL_SCATTERV) return put(0, plan.root, block_of(made.number, plan.root, self));
    if (plan.kind == ULFM_COLL_GATHERV && self != plan.root) return;
    for (int from = 0; from < size_; ++from)
      put(made.out_at[static_cast<std::size_t>(from)] / 4, from,
          plan.kind == ULFM_COLL_ALLTOALLV
              ? block_of(made.number, from, self)
              : given(made.number, from, made.out_bytes[static_cast<std::size_t>(from)] / 4));
  }
  std::size_t length(const Plan& p) const { return p.n * (is_for_each(p) ? static_cast<std::size_t>(size_) : 1); }

  void make(Rank& rank, int self) {
    const Plan& plan = plans_[rank.made];
    auto made = std::make_unique<Made>();
    made->number = rank.made++;
    made->in = given(made->number, self, length(plan));
    made->out.assign(plan.n * static_cast<std::size_t>(size_), -1);
    if (has_sizes(plan.kind)) lay_out(*made, plan, self);
    if (plan.kind == ULFM_COLL_BCAST && self == plan.root)
      std::copy(made->in.begin(), made->in.end(), made->out.begin());
    ulfm_coll_call call{};
    call.kind = plan.kind;
    call.root = plan.root;
    call.in = made->in.data();
    call.out = made->out.data();
    const bool reduces = plan.kind == ULFM_COLL_REDUCE || plan.kind == ULFM_COLL_ALLREDUCE ||
                         plan.kind == ULFM_COLL_SCAN || plan.kind == ULFM_COLL_EXSCAN ||
                         plan.kind == ULFM_COLL_REDUCE_SCATTER;
    call.count = reduces ? length(plan) : plan.n * 4;
    if (has_sizes(plan.kind)) describe(call, *made, plan, self);
    call.extent = 4;
    call.kernel = plan.kernel;
    call.first = plan.n * static_cast<std::size_t>(self);
    call.mine = plan.n;
    rank.under_way.push_back(std::move(made));
    if (rank.calls.start(call, rank.under_way.back().get()).value()) {
      check(*rank.under_way.back(), self);
      rank.under_way.pop_back();
    }
  }

  void take_finished(Rank& rank, int self) {
    while (void* cookie = rank.calls.finished()) {
      const auto at = std::find_if(rank.under_way.begin(), rank.under_way.end(),
                                   [&](const auto& one) { return one.get() == cookie; });
      REQUIRE(at != rank.under_way.end());
      check(**at, self);
      rank.under_way.erase(at);
    }
  }

  Ints combined(std::uint64_t number, int last) const {
    Ints sum = given(number, 0, length(plans_[number]));
    for (int rank = 1; rank <= last; ++rank)
      plans_[number].kernel(sum.data(), given(number, rank, sum.size()).data(), sum.size());
    return sum;
  }
  void append_block(Ints& to, std::uint64_t number, int from, int block) const {
    const Plan& plan = plans_[number];
    const Ints all = given(number, from, length(plan));
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(plan.n) * block;
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(plan.n));
  }

  Ints expected(std::uint64_t number, int self) const {
    const Plan& plan = plans_[number];
    Ints result;
    switch (plan.kind) {
      case ULFM_COLL_BCAST: return given(number, plan.root, plan.n);
      case ULFM_COLL_REDUCE: return self == plan.root ? combined(number, size_ - 1) : Ints{};
      case ULFM_COLL_ALLREDUCE: return combined(number, size_ - 1);
      case ULFM_COLL_SCAN: return combined(number, self);
      case ULFM_COLL_EXSCAN: return self == 0 ? Ints{} : combined(number, self - 1);
      case ULFM_COLL_REDUCE_SCATTER: {
        const Ints sum = combined(number, size_ - 1);
        const auto first = sum.begin() + static_cast<std::ptrdiff_t>(plan.n) * self;
        return {first, first + static_cast<std::ptrdiff_t>(plan.n)};
      }
      case ULFM_COLL_SCATTER: append_block(result, number, plan.root, self); return result;
      case ULFM_COLL_GATHER:
        if (self != plan.root) return {};
        [[fallthrough]];
      case ULFM_COLL_ALLGATHER:
        for (int rank = 0; rank < size_; ++rank) append_block(result, number, rank, 0);
        return result;
      case ULFM_COLL_ALLTOALL:
        for (int rank = 0; rank < size_; ++rank) append_block(result, number, rank, self);
        return result;
      default: return {};
    }
  }

  void check(const Made& made, int self) const {
    Ints wanted = expected(made.number, self);
    wanted.resize(made.out.size(), -1);  // and nothing behind it has changed
    if (has_sizes(plans_[made.number].kind)) expect_blocks(wanted, made, self);
    INFO("call " << made.number << " of kind " << plans_[made.number].kind << " in rank " << self);
    REQUIRE(made.out == wanted);
    REQUIRE(made.in == given(made.number, self, made.in.size()));
  }

  int size_;
  std::size_t longest_;
  std::mt19937 random_;
  Segment segment_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Plan> plans_;
};

ulfm_coll_call barrier() {
  ulfm_coll_call call{};
  call.kind = ULFM_COLL_BARRIER;
  return call;
}

}  // namespace

TEST_CASE("nonblocking calls in drawn orders give what they must", "[collective][nonblocking]") {
  const bool counts = GENERATE(false, true);
  const int size = GENERATE(2, 3, 5, 8);
  const unsigned seed = GENERATE(range(1u, 9u));
  SECTION("short ones") { Ranks(size, counts, 20, seed).run(300, 10); }
  SECTION("more than there are entries") { Ranks(size, counts, 3, seed).run(600, 300); }
  SECTION("long ones, for which room is short") { Ranks(size, counts, 1500, seed).run(200, 30); }
}

TEST_CASE("a nonblocking call waits for those that have not made it, and for nobody else",
          "[collective][nonblocking]") {
  const bool counts = GENERATE(false, true);
  Segment segment = Segment::create("test", CallRoom::of_communicator(3).bytes(3)).value();
  NonblockingCalls a(segment, 0, CallRoom::of_communicator(3), 0, 3, counts),
      b(segment, 0, CallRoom::of_communicator(3), 1, 3, counts),
      c(segment, 0, CallRoom::of_communicator(3), 2, 3, counts);
  int first = 0, second = 0;
  CHECK_FALSE(a.start(barrier(), &first).value());
  CHECK(a.waits_for(1));
  CHECK(a.waits_for(2));
  CHECK_FALSE(b.start(barrier(), &second).value());
  CHECK_FALSE(a.has_finished());
  CHECK(a.kind() == ULFM_COLL_BARRIER);
  CHECK(c.start(barrier(), nullptr).value());
  CHECK(c.take_news());
  a.advance();
  CHECK(a.finished() == &first);
  CHECK(a.finished() == nullptr);
  CHECK_FALSE(a.is_open());
  // Those that will never finish are handed back.
  CHECK_FALSE(a.start(barrier(), &first).value());
  CHECK_FALSE(a.start(barrier(), &second).value());
  CHECK(a.waits_for(2));
  CHECK(a.drop() == &first);
  CHECK(a.drop() == &second);
  CHECK(a.drop() == nullptr);
}

TEST_CASE("what does not fit is known beforehand", "[collective][nonblocking]") {
  Segment segment = Segment::create("test", CallRoom::of_communicator(2).bytes(2)).value();
  const NonblockingCalls calls(segment, 0, CallRoom::of_communicator(2), 0, 2, true);
  CHECK(calls.fits(ULFM_COLL_BARRIER, 0));
  CHECK(calls.fits(ULFM_COLL_BCAST, 32 * 1024));
  CHECK_FALSE(calls.fits(ULFM_COLL_BCAST, 32 * 1024 + 1));
  CHECK(calls.fits(ULFM_COLL_ALLGATHER, 16 * 1024));
  CHECK_FALSE(calls.fits(ULFM_COLL_ALLREDUCE, 16 * 1024));
  CHECK_FALSE(calls.fits(ULFM_COLL_ALLREDUCE, ~std::size_t{0}));
  // Of these, long blocks are left out.
  CHECK(calls.fits(ULFM_COLL_GATHERV, 1));
  CHECK(calls.fits(ULFM_COLL_ALLTOALLV, ~std::size_t{0}));
  CHECK(calls.longest_block(ULFM_COLL_ALLTOALLV) == 4096);
  CHECK(calls.longest_block(ULFM_COLL_SCATTERV) == 1024);
}

TEST_CASE("a persistent call is started again while others have not finished", "[collective][nonblocking]") {
  const bool counts = GENERATE(false, true);
  ulfm_coll_call call{};
  call.kind = ULFM_COLL_ALLREDUCE;
  call.count = 5;
  call.extent = 4;
  call.kernel = ulfm_reduce_kernel(ULFM_OP_SUM, ULFM_TYPE_I32);
  const CallRoom room = CallRoom::of_call(call, 2);
  CHECK(room.entries == 2);
  Segment segment = Segment::create("test", room.bytes(2)).value();
  NonblockingCalls a(segment, 0, room, 0, 2, counts), b(segment, 0, room, 1, 2, counts);
  Ints in(5), out_a(5), out_b(5);
  call.in = in.data();
  ulfm_coll_call of_a = call, of_b = call;
  of_a.out = out_a.data();
  of_b.out = out_b.data();
  int cookie = 0;
  for (std::int32_t start = 1; start < 10; ++start) {
    std::fill(in.begin(), in.end(), start);
    CHECK_FALSE(a.start(of_a, &cookie).value());
    CHECK(b.start(of_b, &cookie).value());
    a.advance();
    CHECK(a.finished() == &cookie);
    CHECK(out_a == Ints(5, 2 * start));
    CHECK(out_b == Ints(5, 2 * start));
  }
}

TEST_CASE("a root that waits for nobody starts a persistent call ahead", "[collective][nonblocking]") {
  std::int32_t value = 0, got = -1;
  ulfm_coll_call call{};
  call.kind = ULFM_COLL_BCAST;
  call.count = sizeof value;
  const CallRoom room = CallRoom::of_call(call, 2);
  Segment segment = Segment::create("test", room.bytes(2)).value();
  NonblockingCalls root(segment, 0, room, 0, 2, true), other(segment, 0, room, 1, 2, true);
  call.out = &value;
  int cookie = 0;
  std::uint64_t ahead = 0;
  for (; root.start(call, &cookie).value(); ++ahead) value = static_cast<std::int32_t>(ahead + 1);
  CHECK(ahead == room.entries);
  CHECK(ahead > 2);
  call.out = &got;
  for (std::uint64_t n = 0; n < ahead; ++n) {
    CHECK(other.start(call, nullptr).value());
    CHECK(got == static_cast<std::int32_t>(n));
  }
  root.advance();
  CHECK(root.finished() == &cookie);
  CHECK(other.start(call, nullptr).value());
  CHECK(got == static_cast<std::int32_t>(ahead));
}

TEST_CASE("a call for which there is no memory is an error, and nothing has been done", "[collective][nonblocking]") {
  // Half of the room lies behind the end of the segment, where nothing can be committed.
  Segment segment = Segment::create("test", CallRoom::of_communicator(2).bytes(2) / 2).value();
  NonblockingCalls calls(segment, 0, CallRoom::of_communicator(2), 0, 2, true);
  const auto rc = calls.start(barrier(), nullptr);
  REQUIRE_FALSE(rc);
  CHECK(calls.is_idle());
  CHECK_FALSE(calls.start(barrier(), nullptr));
}
