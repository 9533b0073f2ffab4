// A counter goes back and forth between two processes: compose in place, post, wait, read in place.
// Run: ulfmrun -n 2 pingpong
#include <cstring>

#include "must.hpp"

using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 7;
constexpr std::uint32_t kTurns = 20000;

int main() {
  auto job = must(ulfm::Job::join());
  if (job.size() != 2) {
    std::fprintf(stderr, "pingpong needs 2 processes; found %d: run it with ulfmrun -n 2\n", job.size());
    return 2;
  }
  auto port = must(job.open_port({.number = kPort}));
  must(job.barrier());  // the other port is open from here on
  const ulfm::Address peer = must(job.address(1 - job.rank(), kPort));

  for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
    if (static_cast<int>(turn % 2) == job.rank()) {
      auto ball = must(port.compose(sizeof turn));
      std::memcpy(ball.bytes().data(), &turn, sizeof turn);
      must(port.post(std::move(ball), peer));
    } else {
      const auto ball = must(port.wait(10s));
      if (ball.bytes().size() != sizeof turn || std::memcmp(ball.bytes().data(), &turn, sizeof turn) != 0) {
        std::fprintf(stderr, "turn %u: something else arrived\n", turn);
        return 1;
      }
    }
  }
  if (job.rank() == 0) std::printf("pingpong: %u turns, every one as sent\n", kTurns);
}
