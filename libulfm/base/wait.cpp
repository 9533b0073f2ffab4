#include "base/wait.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace ulfm {

WaitCounters& wait_counters() noexcept {
  static WaitCounters counters;
  return counters;
}

int usable_cores() noexcept {
  // A launcher binds each process to a core of its own, so one's own mask says little about what the job may use.
  // The launcher's own mask does: it is the parent, and unbound.
  int cores = 1;
  for (const pid_t pid : {pid_t{0}, getppid()}) {
    cpu_set_t set;
    if (sched_getaffinity(pid, sizeof set, &set) == 0) cores = std::max(cores, CPU_COUNT(&set));
  }
  return cores;
}

WaitPolicy WaitPolicy::for_processes(int processes) noexcept {
  WaitPolicy policy;
  if (processes > usable_cores()) {
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

bool Waiter::slow_step() noexcept {
  if (turns_ <= policy_->spins + policy_->pauses) {
    cpu_pause();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (yielding_since_ == std::chrono::steady_clock::time_point{}) yielding_since_ = now;
  if (now - yielding_since_ >= policy_->yield_for) return true;
  yield_now();
  return false;
}

void Waiter::flush() noexcept {
  if (turns_ == 0) return;
  const std::uint32_t spins = std::min(turns_, policy_->spins);
  wait_counters().count(Rung::spin, spins);
  if (turns_ > spins) wait_counters().count(Rung::pause, std::min(turns_ - spins, policy_->pauses));
}

}  // namespace ulfm
