#include "base/wait.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/give_way.hpp"
#include "base/shared_core.hpp"
#include "base/trace.hpp"

namespace ulfm {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A yield that takes long has run a process that computes; processes of the job that wait pass the core on within
// microseconds. A few such yields are the scheduler's turns for other sessions. When most yields are slow, another
// process computes on this core, and the system charges each further yield as a whole time slice (Linux 6.18: the slice
// is forfeited). It is then better to sleep until the doorbell rings, because a woken process preempts one that
// computes.
constexpr std::chrono::milliseconds kSlowFor{100};
constexpr int kSlowWeight = 8, kSlowScore = 10 * kSlowWeight;  // ten slow ones with few quick ones between
constexpr std::chrono::microseconds kTurnOfWaiting{10};        // at most, of each process that waits on the same core

// End of the time in which yields are known to be slow; nanoseconds of the steady clock. Any thread.
std::atomic<std::int64_t> slow_until{0};
// Rises with each slow yield, falls with each quick one. Any thread; of two at once one may be lost.
std::atomic<int> slow_score{0};

constexpr std::uint32_t kSpinsWhereShared = 2;
SharedCore shared_core;

int cores_of(pid_t pid) noexcept {
  cpu_set_t set;
  return sched_getaffinity(pid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

struct Ancestor {
  pid_t parent = 0;
  bool is_launcher = false;  ///< Hydra's proxy, which starts the processes of a host
};

Ancestor look_at(pid_t pid) noexcept {
  char path[32], text[128] = {};
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  // "pid (name) state parent ...", and the name may have blanks and parentheses in it.
  const char* behind = length > 0 ? std::strrchr(text, ')') : nullptr;
  Ancestor ancestor;
  if (behind == nullptr || std::sscanf(behind, ") %*c %d", &ancestor.parent) != 1) return {};
  ancestor.is_launcher = std::strstr(text, "(hydra_pmi_proxy)") != nullptr;
  return ancestor;
}

// How many times others have had the core of this thread since it asked last. An answer costs as much as a yield
// (1.5 us), so it asks at most every 0.1 ms. After a long time it only begins to count anew: what happened while it
// computed or slept says nothing of its yields.
int switches_since_asked(SteadyClock::time_point now) noexcept {
  constexpr std::chrono::microseconds kSoon{100}, kLate{2000};
  thread_local SteadyClock::time_point asked{};
  thread_local long counted = 0;
  const auto passed = now - asked;
  if (passed < kSoon) return 0;
  asked = now;
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) != 0 || usage.ru_nvcsw + usage.ru_nivcsw == 0)
    return 1;  // a system that does not count (gVisor): the yield took as long as a switch
  // A thread that yields does not sleep, so the system took the core from it.
  const long before = std::exchange(counted, usage.ru_nivcsw);
  return passed < kLate ? static_cast<int>(counted - before) : 0;
}

void classify_yield(SteadyClock::time_point before, SteadyClock::time_point after,
                    std::chrono::nanoseconds limit) noexcept {
  shared_core.note(SharedCore::like_switch(after - before) ? switches_since_asked(after) : 0, after);
  const int score = slow_score.load(std::memory_order_relaxed);
  if (after - before <= limit) {
    if (score > 0) slow_score.store(score - 1, std::memory_order_relaxed);
  } else if (score + kSlowWeight < kSlowScore) {
    slow_score.store(score + kSlowWeight, std::memory_order_relaxed);
  } else {
    slow_score.store(kSlowScore - kSlowWeight, std::memory_order_relaxed);  // the next one decides again
    note_lost_core(after);
  }
}

}  // namespace

constinit WaitCounters g_wait_counters;

int usable_cores() noexcept {
  // A launcher binds each process to a core of its own, so one's own mask says little about what the job may use.
  // The launcher's own mask does, and between it and us there may be scripts, which are bound too.
  const int own = cores_of(0);
  int cores = own;
  pid_t pid = getppid();
  for (int levels = 0; pid > 1 && levels < 8; ++levels) {
    cores = std::max(cores, cores_of(pid));
    const Ancestor ancestor = look_at(pid);
    if (ancestor.is_launcher) return cores;
    pid = ancestor.parent;
  }
  return std::max(own, cores_of(getppid()));  // started without one
}

WaitPolicy WaitPolicy::for_processes(int processes) noexcept {
  WaitPolicy policy;
  const int cores = usable_cores();
  policy.slow_yield += kTurnOfWaiting * (processes / cores);
  if (processes > cores) {
    // The answer comes from a process that needs this core: a look or two, then out of its way.
    policy.spins = 2;
    policy.pauses = 0;
  }
  return policy;
}

void yield_now() noexcept {
  wait_counters().count(Rung::yield);
  sched_yield();
}

bool core_is_shared() noexcept { return shared_core.found(); }

bool core_is_lost(SteadyClock::time_point now) noexcept {
  return now.time_since_epoch().count() < slow_until.load(std::memory_order_relaxed);
}

void note_lost_core(SteadyClock::time_point now) noexcept {
  slow_until.store((now + kSlowFor).time_since_epoch().count(), std::memory_order_relaxed);
}

void yield_and_learn(const WaitPolicy& policy, SteadyClock::time_point now) noexcept {
  yield_now();
  classify_yield(now, SteadyClock::now(), policy.slow_yield);
}

void give_way(const WaitPolicy& policy) noexcept {
  if (policy.has_own_core()) return;
  if (const auto now = SteadyClock::now(); !core_is_lost(now)) yield_and_learn(policy, now);
}

std::uint32_t Waiter::spins_now(const WaitPolicy& policy) noexcept {
  return core_is_shared() ? std::min(policy.spins, kSpinsWhereShared) : policy.spins;
}

bool Waiter::slow_step() noexcept {
  const auto now = SteadyClock::now();
  if (turns_ == spins_ + 1) {
    cpu_contended_ = core_is_lost(now);
    pausing_since_ = now;
  }
  if (cpu_contended_ || patience_out_) return true;
  if (turns_ - spins_ <= policy_->pauses && now - pausing_since_ < policy_->pause_for && spins_ == policy_->spins) {
    ++paused_;
    cpu_pause();
    return false;
  }
  if (yielding_since_ == SteadyClock::time_point{}) yielding_since_ = now;
  if (now - yielding_since_ >= policy_->yield_for) return true;
  if (core_is_lost(now)) return true;
  yield_and_learn(*policy_, now);
  return false;
}

void Waiter::flush() noexcept {
  if (turns_ == 0) return;
  wait_counters().count(Rung::spin, std::min(turns_, spins_));
  if (paused_ != 0) wait_counters().count(Rung::pause, paused_);
  if (turns_ > spins_) trace::note_wait(pausing_since_);
}

}  // namespace ulfm
