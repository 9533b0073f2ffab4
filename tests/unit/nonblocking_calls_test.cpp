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
using coll::NonblockingCalls;

namespace {

using Ints = std::vector<std::int32_t>;

constexpr int kKinds[] = {ULFM_COLL_BARRIER,        ULFM_COLL_BCAST,   ULFM_COLL_REDUCE,  ULFM_COLL_ALLREDUCE,
                          ULFM_COLL_REDUCE_SCATTER, ULFM_COLL_SCAN,    ULFM_COLL_EXSCAN,  ULFM_COLL_GATHER,
                          ULFM_COLL_ALLGATHER,      ULFM_COLL_SCATTER, ULFM_COLL_ALLTOALL};

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
    segment_ = Segment::create("test", kAt + NonblockingCalls::room(size)).value();
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
  };
  struct Rank {
    Rank(Segment& segment, int rank, int size, bool counts) : calls(segment, kAt, rank, size, counts) {}
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
    if (!ranks_[0]->calls.fits(plan.kind, bytes)) plan.n = 1;
    return plan;
  }
  static bool is_for_each(const Plan& p) {
    return p.kind == ULFM_COLL_SCATTER || p.kind == ULFM_COLL_ALLTOALL || p.kind == ULFM_COLL_REDUCE_SCATTER;
  }
  std::size_t length(const Plan& p) const { return p.n * (is_for_each(p) ? static_cast<std::size_t>(size_) : 1); }

  void make(Rank& rank, int self) {
    const Plan& plan = plans_[rank.made];
    auto made = std::make_unique<Made>();
    made->number = rank.made++;
    made->in = given(made->number, self, length(plan));
    made->out.assign(plan.n * static_cast<std::size_t>(size_), -1);
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
  SECTION("more than there are entries") { Ranks(size, counts, 3, seed).run(400, 150); }
  SECTION("long ones, for which room is short") { Ranks(size, counts, 1500, seed).run(200, 30); }
}

TEST_CASE("a nonblocking call waits for those that have not made it, and for nobody else",
          "[collective][nonblocking]") {
  const bool counts = GENERATE(false, true);
  Segment segment = Segment::create("test", NonblockingCalls::room(3)).value();
  NonblockingCalls a(segment, 0, 0, 3, counts), b(segment, 0, 1, 3, counts), c(segment, 0, 2, 3, counts);
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
  Segment segment = Segment::create("test", NonblockingCalls::room(2)).value();
  const NonblockingCalls calls(segment, 0, 0, 2, true);
  CHECK(calls.fits(ULFM_COLL_BARRIER, 0));
  CHECK(calls.fits(ULFM_COLL_BCAST, 32 * 1024));
  CHECK_FALSE(calls.fits(ULFM_COLL_BCAST, 32 * 1024 + 1));
  CHECK(calls.fits(ULFM_COLL_ALLGATHER, 16 * 1024));
  CHECK_FALSE(calls.fits(ULFM_COLL_ALLREDUCE, 16 * 1024));
  CHECK_FALSE(calls.fits(ULFM_COLL_ALLREDUCE, ~std::size_t{0}));
  CHECK_FALSE(calls.fits(ULFM_COLL_GATHERV, 8));
}
