#include "base/doorbell.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/interrupted.hpp"
#include "base/timespec.hpp"
#include "base/wait_word.hpp"

namespace ulfm {
namespace {

// Registration makes this process one that a peer's barrier reaches; the result says whether barriers work
// here.
bool register_for_barriers() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}
const bool g_barriers = register_for_barriers();

void barrier() noexcept {
  if (g_barriers) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

// Longest sleep that may have missed what should have ended it. A store is visible long before.
constexpr std::chrono::milliseconds kBlindNap{1};

// What `watched` says when a thread is to be interrupted: its number, which is above that of the first process. Set
// before a watch begins, by the same process.
std::atomic<std::uint32_t> interrupted_thread{0};
constexpr std::uint32_t kSleeps = 1;

// The exchange makes exactly one of several producers pay for the system call.
void wake_one(std::atomic<std::uint32_t>& sleeper) noexcept {
  const std::uint32_t who = sleeper.exchange(0, std::memory_order_release);
  if (who == 0) return;
  // A thread that has ended is nobody's any more, and what is read here may be another user's number: the kernel
  // checks.
  if (who == kSleeps || syscall(SYS_tkill, who, SIGURG) != 0)
    syscall(SYS_futex, &sleeper, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Sleeps while the word is `value`; true when it was so until the limit. With neither kind of fence what ends the sleep
// may be missed.
bool sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds limit,
                 bool fenced) noexcept {
  if (!g_barriers && !fenced) limit = std::min<std::chrono::nanoseconds>(limit, kBlindNap);
  const timespec time = timespec_of(limit);
  return syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0) != 0 && errno == ETIMEDOUT;
}

enum class Slept { less, until_limit, no_such_call };

// Sleeps while all are 1. The kernel has no such call before Linux 5.16, and a filter may forbid it.
Slept sleep_on_all(std::span<const WaitWord> words, std::chrono::nanoseconds limit) noexcept {
#ifdef SYS_futex_waitv
  std::array<futex_waitv, FUTEX_WAITV_MAX> entries{};
  if (words.size() > entries.size()) return Slept::no_such_call;
  std::ranges::transform(words, entries.begin(), [](const WaitWord& one) {
    return futex_waitv{kSleeps, reinterpret_cast<std::uintptr_t>(one.word), FUTEX_32, 0};
  });
  const timespec until = timespec_of(std::chrono::steady_clock::now().time_since_epoch() + limit);  // CLOCK_MONOTONIC
  if (syscall(SYS_futex_waitv, entries.data(), words.size(), 0, &until, CLOCK_MONOTONIC) >= 0) return Slept::less;
  if (errno == ENOSYS || errno == EPERM) return Slept::no_such_call;
  return errno == ETIMEDOUT ? Slept::until_limit : Slept::less;
#else
  (void)words, (void)limit;
  return Slept::no_such_call;
#endif
}

// True when nothing ended it before the limit.
bool nap(std::span<const WaitWord> words, std::chrono::nanoseconds limit, bool fenced) noexcept {
  std::atomic<std::uint32_t>& first = *words.front().word;
  if (words.size() == 1) return sleep_while(first, kSleeps, limit, fenced);
  // Without a barrier this may miss what a process does that issues no fence.
  if (!g_barriers && !fenced) limit = std::min<std::chrono::nanoseconds>(limit, kBlindNap);
  const Slept slept = sleep_on_all(words, limit);
  if (slept != Slept::no_such_call) return slept == Slept::until_limit;
  return sleep_while(first, kSleeps, std::min<std::chrono::nanoseconds>(limit, kShortNap), fenced);
}

}  // namespace

void set_interrupted_thread(pid_t thread) noexcept {
  interrupted_thread.store(static_cast<std::uint32_t>(thread), std::memory_order_release);
}

// A sender that has read `fenced` as 0 issues no fence, so its last store may not be visible yet. The barrier makes it
// visible.
void Doorbell::expect_many_sleeps() noexcept {
  fenced.store(1, std::memory_order_relaxed);
  barrier();
}

void Doorbell::announce(std::atomic<std::uint32_t>& sleeper) noexcept {
  const std::uint32_t thread = &sleeper == &watched ? interrupted_thread.load(std::memory_order_acquire) : 0;
  sleeper.store(thread != 0 ? thread : kSleeps, std::memory_order_relaxed);
  // Pairs with the fence of ring(), or stands for it in every registered process.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (fenced.load(std::memory_order_relaxed) == 0) barrier();
}

bool Doorbell::sleep_on(std::atomic<std::uint32_t>& sleeper, std::chrono::nanoseconds limit) noexcept {
  // Whom arrivals interrupt is not woken by them: it sleeps whatever has come.
  const bool interrupts = &sleeper == &watched && interrupted_thread.load(std::memory_order_acquire) != 0;
  const std::uint32_t now = interrupts ? sleeper.load(std::memory_order_relaxed) : kSleeps;
  sleep_while(sleeper, now, limit, fenced.load(std::memory_order_relaxed) != 0);
  return sleeper.exchange(0, std::memory_order_acquire) == 0;
}

bool WaitWord::sleep(std::chrono::nanoseconds limit) const noexcept {
  sleep_while(*word, kSleeps, limit, fenced);
  return is_over();
}

void Doorbell::arm() noexcept { announce(parked); }
bool Doorbell::sleep(std::chrono::nanoseconds limit) noexcept { return sleep_on(parked, limit); }

void Doorbell::watch() noexcept { announce(watched); }
bool Doorbell::watch_sleep(std::chrono::nanoseconds limit) noexcept { return sleep_on(watched, limit); }
void Doorbell::end_watch() noexcept {
  watched.store(0, std::memory_order_release);
  syscall(SYS_futex, &watched, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

WaitWord RoomBell::arm() noexcept {
  awaited.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  barrier();
  return {&awaited};
}

void RoomBell::wake() noexcept {
  if (awaited.exchange(0, std::memory_order_release) != 0)
    syscall(SYS_futex, &awaited, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool sleep_on_any(std::span<const WaitWord> words, std::chrono::nanoseconds limit, const Look& look) {
  const bool fenced = std::ranges::all_of(words, &WaitWord::fenced);
  const bool looks = look && !fenced && limit > kBlindNap;
  if (nap(words, looks ? kBlindNap : limit, fenced) && looks) {
    if (look()) return true;
    nap(words, limit - kBlindNap, fenced);
  }
  return std::ranges::any_of(words, &WaitWord::is_over);
}

bool Doorbell::sleep(std::chrono::nanoseconds limit, WaitWord other, const Look& look) {
  const std::array both{word(), other};
  const bool has_come = sleep_on_any(std::span(both).first(other ? 2 : 1), limit, look);
  return parked.exchange(0, std::memory_order_acquire) == 0 || has_come;
}

void Doorbell::wake() noexcept {
  wake_one(parked);
  wake_one(watched);
}

}  // namespace ulfm
