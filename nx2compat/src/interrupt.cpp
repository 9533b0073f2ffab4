#include "interrupt.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <ulfm/interrupt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
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
  // Whom the handlers served gets the core, where it is shared: a node that draws from a counter of its own would
  // have drawn all of it before the others had their turn.
  if (work_(asked)) (void)ulfm_give_way(port_);
  depth_.store(0, std::memory_order_seq_cst);  // pairs with ask()
  while (work_if_asked()) {
  }
}

void Interrupt::note_signal(bool rung) noexcept {
  if (!rung) return;
  rung_.store(true, std::memory_order_relaxed);
  asked_.store(true, std::memory_order_seq_cst);
}

// From the helper, or from the sender of a message itself: that one has noted nothing here.
void Interrupt::on_signal(int, siginfo_t* from, void* context) {
  Interrupt* self = installed_;
  if (self == nullptr || !pthread_equal(pthread_self(), self->program_)) return;
  const bool rung = from->si_pid != getpid();
  self->note_signal(rung);
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

bool Interrupt::start(ulfm_port port, std::function<bool(bool)> work) {
  if (active_) return true;
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
  if (start_helper()) return true;
  end_watch();
  return false;
}

// The helper takes no signals: they are for the program.
bool Interrupt::start_helper() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    helper_ = std::thread([this] { help(); });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return helper_.joinable();
}

void Interrupt::end_watch() {
  (void)ulfm_watch_interrupts(port_, 0);
  (void)ulfm_watch_end(port_);
  if (helper_.joinable()) helper_.join();
  program_code::release();
  active_ = false;
}

void Interrupt::stop() {
  if (!helper_.joinable()) return;
  stopping_.store(true, std::memory_order_seq_cst);
  wanted_.fetch_add(1, std::memory_order_seq_cst);
  wanted_.notify_all();
  end_watch();
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

// ---- the program sleeps
// ---------------------------------------------------------------------------------------------

namespace {

constexpr timespec kSlice{0, 1'000'000};      // between two looks where nothing tells of a signal
constexpr timespec kStretch{0, 100'000'000};  // a clock that may be set is looked at again after this

bool earlier(const timespec& a, const timespec& b) noexcept {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/// Our signal and those that the program handles are blocked. Those are let in while the sleep waits and nowhere else,
/// so that none is handled without ending it; ours can be read meanwhile.
class QuietSleep {
 public:
  explicit QuietSleep(bool reads) {
    sigset_t handled;
    sigemptyset(&handled);
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action {};
      if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
          !is_fault(number))
        sigaddset(&handled, number);
    }
    sigaddset(&handled, kSignal);
    pthread_sigmask(SIG_BLOCK, &handled, &before_);
    while_waiting_ = before_;
    sigaddset(&while_waiting_, kSignal);
    if (!reads) return;
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, kSignal);
    descriptor_ = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~QuietSleep() {
    if (descriptor_ >= 0) close(descriptor_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  QuietSleep(const QuietSleep&) = delete;
  QuietSleep& operator=(const QuietSleep&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  /// Our signal came (1), the time has passed (0), or another signal was handled (-1).
  int wait(const timespec& time) {
    pollfd signals{descriptor_, POLLIN, 0};
    return ppoll(&signals, 1, &time, &while_waiting_);  // of a descriptor below 0 nothing is told
  }

 private:
  static bool is_fault(int number) {
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
           number == SIGABRT;
  }
  sigset_t before_{}, while_waiting_{};
  int descriptor_ = -1;
};

}  // namespace

bool Interrupt::sleeps_here() noexcept {
  return installed_ != nullptr && installed_->active_ && pthread_equal(pthread_self(), installed_->program_);
}

timespec Interrupt::time_left(clockid_t clock, const timespec& end) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  if (!earlier(now, end)) return {};
  timespec left{end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
  if (left.tv_nsec < 0) --left.tv_sec, left.tv_nsec += 1'000'000'000;
  return left;
}

// The signals that came, which are read from there, and what is to be done.
void Interrupt::work_in_sleep(int signals) {
  signalfd_siginfo from{};
  while (signals >= 0 && read(signals, &from, sizeof from) == sizeof from)
    note_signal(static_cast<pid_t>(from.ssi_pid) != getpid());
  work_outside();
}

// A handler of ours that sleeps lets no other run. Nor does a library that may hold a lock: there the signal stays
// until the end, and does then what it always does.
int Interrupt::sleep(clockid_t clock, const timespec& end, void* caller) {
  Interrupt& self = *installed_;
  const int error = errno;
  const bool works = self.depth_.load(std::memory_order_relaxed) == 0 && program_code::may_interrupt_caller(caller);
  QuietSleep quiet(works);
  const bool blind = works && quiet.descriptor() < 0;
  for (;;) {
    if (works) self.work_in_sleep(quiet.descriptor());
    timespec time = time_left(clock, end);
    errno = error;
    if (time.tv_sec == 0 && time.tv_nsec == 0) return 0;
    if (clock != CLOCK_MONOTONIC) time = std::min(time, kStretch, earlier);
    if (blind) time = std::min(time, kSlice, earlier);
    if (quiet.wait(time) < 0) return EINTR;
  }
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
