// The floor: two pinned processes hand one cache line to and fro. No message between these cores can be faster than
// one way of this, so every latency is read beside it.

#include "floor.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kFloorTurns = 1000;

}  // namespace

ulfm::Result<Results> measure_floor(const Options& options) {
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return ulfm::fail_errno("mmap");
  Line& line = *new (shared) Line;
  const std::size_t batches =
      options.iterations != 0 ? std::max<std::size_t>(1, options.iterations / kFloorTurns) : 200;
  auto side = fork_pair();
  if (!side) return tl::unexpected(side.error());
  bind_side(side->number, options);
  side->barrier();
  const std::size_t warm = 10;
  std::vector<double> samples;
  std::uint64_t turn = 0;
  for (std::size_t batch = 0; batch < warm + batches; ++batch) {
    const auto start = Clock::now();
    hand_over(line, side->number, turn, kFloorTurns, [] {});
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (batch >= warm) samples.push_back(took.count() / kFloorTurns / 2);
  }
  if (side->number == 1) std::_Exit(0);
  (void)side->wait_for_child();
  const double median = percentile(samples, 50);
  return Results{"cache line, one way, us",
                 {{{{"one_way_us", median}, {"min_us", percentile(samples, 0)}, {"p99_us", percentile(samples, 99)}}}},
                 {}};
}

}  // namespace perf
