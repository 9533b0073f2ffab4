// Handlers interrupt the program: a helper thread sleeps until something arrives at the port and then
// interrupts the program's thread with a signal, in which messages are taken and handlers run.
//
// Nothing of this exists before the first hrecv() or hsend(). From then on the library is entered from two
// sides, the program and the signal, both on the program's thread; `depth_` says that the program is inside,
// and the signal then leaves the work to it. What the helper thread does is to sleep and to send signals.
//
// A handler must be free to call what the program calls, malloc() and printf() included, so it does not begin while
// the program is inside a library that does not call us (program_code.hpp). It begins when the program comes back from
// there; the helper tries again as well, every 20 us at first.
#pragma once

#include <ulfm/ulfm.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace nx2 {

class Interrupt {
 public:
  ~Interrupt() { stop(); }

  /// The program entered or left the library. Plain: no handler was ever set.
  void enter() noexcept { depth_.store(depth_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void leave() noexcept { depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed); }
  bool active() const noexcept { return active_; }
  /// leave() once there are handlers: does what came meanwhile.
  void leave_slowly() noexcept;

  /// From now on `work` is called when something arrives: by the signal, or by leave_slowly(). Its argument
  /// says whether something has arrived for certain, so that it must be found; its result, whether handlers ran. False
  /// when there can be no thread more.
  bool start(ulfm_port port, std::function<bool(bool)> work);
  void stop();
  /// There are requests with handlers; without any the helper sleeps.
  void want(bool wanted) noexcept;
  /// After fork(): the helper thread is not in the new process.
  void forget() noexcept;

  /// Whether this thread is one that messages interrupt.
  static bool sleeps_here() noexcept;
  /// Until that time of the clock (0), or until a signal that is not ours has been handled (EINTR). Handlers run
  /// meanwhile, if whoever `caller` returns to may be interrupted. Only where sleeps_here().
  static int sleep(clockid_t clock, const timespec& end, void* caller);
  /// 0 when it has passed.
  static timespec time_left(clockid_t clock, const timespec& end) noexcept;

 private:
  static void on_signal(int, siginfo_t*, void* context);
  static void work_outside();
  void note_signal(bool rung) noexcept;
  void work_in_sleep(int signals);
  bool work_if_asked() noexcept;
  void watch_again() noexcept;
  void help();
  bool start_helper();
  void end_watch();
  void ask();

  static Interrupt* installed_;
  // Written by the program's thread only, its signal handler included. The stores of 0 that end work pair with ask().
  std::atomic<int> depth_{0};
  bool active_ = false;
  /// Something may have arrived that nobody has looked at. ask() to the exchange of who looks: the look comes after
  /// the watch has begun.
  std::atomic<bool> asked_{false};
  /// A sender has interrupted the program, which ends the watch; written by the program's thread only.
  std::atomic<bool> rung_{false};
  std::atomic<bool> stopping_{false};     ///< stop() to the helper; set before `wanted_`, so that who wakes sees it
  std::atomic<std::uint32_t> wanted_{0};  ///< written by the program's thread; wakes help(), publishes no more
  std::function<bool(bool)> work_;
  ulfm_port port_ = 0;
  pthread_t program_{};
  std::thread helper_;
};

}  // namespace nx2
