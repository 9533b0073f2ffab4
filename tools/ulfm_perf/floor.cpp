// The floor: two pinned processes hand one cache line to and fro. No message between these cores can be faster than
// one way of this, so every latency is read beside it.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "base/wait.hpp"
#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBatch = 1000;

struct alignas(64) Line {
  std::atomic<std::uint64_t> turn{0};
};

// With a core for each side nothing but looks; asked before the sides are bound, when the cores can still be seen.
ulfm::WaitPolicy policy_of_pair() {
  auto policy = ulfm::WaitPolicy::for_processes(2);
  if (policy.has_own_core()) policy.spins = 100000;
  return policy;
}

void wait_for(const Line& line, std::uint64_t value, const ulfm::WaitPolicy& policy) {
  if (line.turn.load(std::memory_order_acquire) == value) return;
  ulfm::Waiter waiter(policy);
  while (line.turn.load(std::memory_order_acquire) != value)
    if (waiter.step()) ulfm::yield_now();
}

}  // namespace

ulfm::Result<Results> measure_floor(const Options& options) {
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return ulfm::fail_errno("mmap");
  Line& line = *new (shared) Line;
  const std::size_t batches = options.iterations != 0 ? std::max<std::size_t>(1, options.iterations / kBatch) : 200;
  const ulfm::WaitPolicy policy = policy_of_pair();
  auto side = fork_pair();
  if (!side) return tl::unexpected(side.error());
  bind_side(side->number, options);
  side->meet();
  const std::size_t warm = 10;
  std::vector<double> samples;
  std::uint64_t turn = 0;
  for (std::size_t batch = 0; batch < warm + batches; ++batch) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < kBatch; ++i, turn += 2) {
      if (side->number == 0) {
        line.turn.store(turn + 1, std::memory_order_release);
        wait_for(line, turn + 2, policy);
      } else {
        wait_for(line, turn + 1, policy);
        line.turn.store(turn + 2, std::memory_order_release);
      }
    }
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (batch >= warm) samples.push_back(took.count() / kBatch / 2);
  }
  if (side->number == 1) std::_Exit(0);
  (void)side->wait_for_child();
  const double median = percentile(samples, 50);
  return Results{"cache line, one way, us",
                 {{{{"one_way_us", median}, {"min_us", percentile(samples, 0)}, {"p99_us", percentile(samples, 99)}}}}};
}

}  // namespace perf
