#include "interrupt.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <ulfm/interrupt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "program_code.hpp"

namespace nx2 {
namespace {

constexpr int kSignal = SIGURG;  // ignored by programs that do not handle it, so one that comes late does no harm
constexpr long kFirstRetry = 20'000, kLastRetry = 1'000'000;  // ns
constexpr std::int64_t kSleep = 20'000'000;                   // ns: a look now and then costs nothing

void nap(long nanoseconds) {
  const timespec time{0, nanoseconds};
  nanosleep(&time, nullptr);
}

}  // namespace

Interrupt* Interrupt::installed_ = nullptr;

// ---- the program's thread
// -------------------------------------------------------------------------------------------

// Who rings does so once after each beginning. The look comes behind it, so nothing is missed.
void Interrupt::watch_again() noexcept {
  if (rung_.exchange(false, std::memory_order_relaxed)) (void)ulfm_watch_begin(port_);
}

// True when there was something to do. The program is outside of the library.
bool Interrupt::work_if_asked() noexcept {
  if (!asked_.exchange(false, std::memory_order_seq_cst)) return false;
  depth_.store(1, std::memory_order_relaxed);
  watch_again();
  work_(true);
  // Pairs with ask(): either that sees the 0, or the next look here sees that it asked.
  depth_.store(0, std::memory_order_seq_cst);
  return true;
}

void Interrupt::leave_slowly() noexcept {
  const int depth = depth_.load(std::memory_order_relaxed);
  if (depth > 1) return leave();
  program_code::returned();  // a library that the program called has called us
  const bool asked = asked_.exchange(false, std::memory_order_seq_cst);
  if (asked) watch_again();
  work_(asked);
  depth_.store(0, std::memory_order_seq_cst);  // pairs with ask()
  while (work_if_asked()) {
  }
}

// From the helper, or from the sender of a message itself: that one has noted nothing here.
void Interrupt::on_signal(int, siginfo_t* from, void* context) {
  Interrupt* self = installed_;
  if (self == nullptr || !pthread_equal(pthread_self(), self->program_)) return;
  const bool rung = from->si_pid != getpid();
  if (rung) {
    self->rung_.store(true, std::memory_order_relaxed);
    self->asked_.store(true, std::memory_order_seq_cst);
  }
  if (self->depth_.load(std::memory_order_relaxed) != 0) return;
  const int error = errno;
  if (program_code::may_interrupt(context)) {
    work_outside();
  } else if (self->asked_.load(std::memory_order_relaxed)) {
    program_code::watch_return(context);
    if (rung) (void)ulfm_watch_end(self->port_);  // the helper tries again, should that not be enough
  }
  errno = error;
}

// The program is in its own code: it came back from a library, or the signal found it there.
void Interrupt::work_outside() {
  program_code::returned();
  while (installed_->depth_.load(std::memory_order_relaxed) == 0 && installed_->work_if_asked()) {
  }
}

void Interrupt::start(ulfm_port port, std::function<void(bool)> work) {
  if (active_) return;
  port_ = port;
  work_ = std::move(work);
  program_ = pthread_self();
  installed_ = this;
  program_code::find(work_outside);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(kSignal, &action, nullptr);
  active_ = true;
  stopping_ = false;
  (void)ulfm_watch_interrupts(port_, gettid());
  // The helper takes no signals: they are for the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  helper_ = std::thread([this] { help(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Interrupt::stop() {
  if (!helper_.joinable()) return;
  stopping_.store(true, std::memory_order_seq_cst);
  wanted_.fetch_add(1, std::memory_order_seq_cst);
  wanted_.notify_all();
  (void)ulfm_watch_interrupts(port_, 0);
  (void)ulfm_watch_end(port_);
  helper_.join();
  program_code::release();
  active_ = false;
}

void Interrupt::forget() noexcept {
  if (helper_.joinable()) helper_.detach();
  active_ = false;
}

void Interrupt::want(bool wanted) noexcept {
  const bool before = wanted_.load(std::memory_order_relaxed) != 0;
  if (before == wanted) return;
  wanted_.store(wanted ? 1 : 0, std::memory_order_seq_cst);
  if (wanted) wanted_.notify_all();
}

// ---- the helper thread
// ----------------------------------------------------------------------------------------------

// Until the program has looked: it may be inside of the library, or where it must not be interrupted.
void Interrupt::ask() {
  asked_.store(true, std::memory_order_seq_cst);
  for (long pause = kFirstRetry; asked_.load(std::memory_order_seq_cst) && !stopping_.load();) {
    if (depth_.load(std::memory_order_seq_cst) == 0) pthread_kill(program_, kSignal);
    nap(pause);
    pause = std::min(pause * 2, kLastRetry);
  }
}

void Interrupt::help() {
  prctl(PR_SET_TIMERSLACK, 1000);  // ns; naps of 20 us take 70 otherwise
  while (!stopping_.load()) {
    if (wanted_.load(std::memory_order_seq_cst) == 0) {
      wanted_.wait(0);
      continue;
    }
    // Announced first: what came before is seen by the look that follows, what comes later ends the sleep.
    if (ulfm_watch_begin(port_) < 0) return;
    ask();
    (void)ulfm_watch_wait(port_, kSleep);
  }
}

}  // namespace nx2
