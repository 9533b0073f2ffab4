#include "base/doorbell.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace ulfm {
namespace {

// Registration makes this process one that a peer's barrier reaches; the result says whether barriers work
// here.
bool register_for_barriers() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}
const bool g_barriers = register_for_barriers();

void announce(std::atomic<std::uint32_t>& sleeper) noexcept {
  sleeper.store(1, std::memory_order_seq_cst);
  // Pairs with the (unfenced) publish-then-read of ring() in every registered process.
  if (g_barriers) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

bool sleep_on(std::atomic<std::uint32_t>& sleeper, std::chrono::nanoseconds limit) noexcept {
  if (!g_barriers) limit = std::min<std::chrono::nanoseconds>(limit, std::chrono::milliseconds(1));
  timespec ts{};
  ts.tv_sec = static_cast<time_t>(limit.count() / 1'000'000'000);
  ts.tv_nsec = static_cast<long>(limit.count() % 1'000'000'000);
  syscall(SYS_futex, &sleeper, FUTEX_WAIT, 1, &ts, nullptr, 0);
  return sleeper.exchange(0, std::memory_order_acquire) == 0;
}

// The exchange makes exactly one of several producers pay for the system call.
void wake_one(std::atomic<std::uint32_t>& sleeper) noexcept {
  if (sleeper.exchange(0, std::memory_order_release) != 0)
    syscall(SYS_futex, &sleeper, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

void Doorbell::arm() noexcept { announce(parked); }
bool Doorbell::sleep(std::chrono::nanoseconds limit) noexcept { return sleep_on(parked, limit); }

void Doorbell::watch() noexcept { announce(watched); }
bool Doorbell::watch_sleep(std::chrono::nanoseconds limit) noexcept { return sleep_on(watched, limit); }
void Doorbell::end_watch() noexcept { wake_one(watched); }

void Doorbell::wake() noexcept {
  wake_one(parked);
  wake_one(watched);
}

}  // namespace ulfm
