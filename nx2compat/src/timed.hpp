// Jobs in virtual time: the clock hears of each call (ulfm-time(7)).
#pragma once

#include <ulfm/ulfm.h>

#include <chrono>

namespace nx2 {

/// The job runs in virtual time. Set when this process becomes a node, before its first call is over.
inline constinit bool timed_job = false;
inline bool is_timed() noexcept { return timed_job; }

/// Of the time that the job keeps.
inline std::chrono::nanoseconds job_time() noexcept {
  return is_timed() ? std::chrono::nanoseconds(ulfm_time_now())
                    : std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::steady_clock::now().time_since_epoch());
}

/// A call of the program: its own computing ends here and goes on behind it.
class TimedCall {
 public:
  explicit TimedCall(const char* name) noexcept {
    if (is_timed()) [[unlikely]]
      ulfm_time_enter(name);
  }
  ~TimedCall() {
    if (is_timed()) [[unlikely]]
      ulfm_time_leave();
  }
  TimedCall(const TimedCall&) = delete;
  TimedCall& operator=(const TimedCall&) = delete;
};

/// What the messages sent until its end cost in software: the program's own, or the system's.
class TimedCharge {
 public:
  explicit TimedCharge(int what) noexcept {
    if (is_timed()) [[unlikely]]
      ulfm_time_charge(what);
  }
  ~TimedCharge() {
    if (is_timed()) [[unlikely]]
      ulfm_time_charge(ULFM_TIME_MESSAGE);
  }
  TimedCharge(const TimedCharge&) = delete;
  TimedCharge& operator=(const TimedCharge&) = delete;
};

}  // namespace nx2
