#include "interrupt.hpp"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace nx2 {
namespace {

constexpr int kSignal = SIGURG;  // ignored by programs that do not handle it, so one that comes late does no harm
constexpr long kFirstRetry = 20'000, kLastRetry = 1'000'000;  // ns
constexpr std::int64_t kSleep = 20'000'000;                   // ns: a look now and then costs nothing

// ---- where the program may be interrupted
// ---------------------------------------------------------------------------

struct Range {
  std::uintptr_t begin, end;
  bool contains(std::uintptr_t at) const { return at >= begin && at < end; }
};

/// Code of the program and of libraries that call us, and functions of the C library that only wait.
std::vector<Range> g_program_code, g_waiting_calls;

/// It calls us, so it is a part of the program. Any other library, an allocator or a BLAS as well as the C library, may
/// hold a lock or keep a list half changed between two instructions, and a handler that calls it again would never end.
bool calls_us(const dl_phdr_info& object) {
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i)
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
      entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  if (entry == nullptr) return false;
  ElfW(Addr) names = 0;
  for (const ElfW(Dyn)* e = entry; e->d_tag != DT_NULL; ++e)
    if (e->d_tag == DT_STRTAB) names = e->d_un.d_ptr;
  if (names < object.dlpi_addr) names += object.dlpi_addr;  // not relocated, as some loaders leave it
  for (const ElfW(Dyn)* e = entry; names != 0 && e->d_tag != DT_NULL; ++e)
    if (e->d_tag == DT_NEEDED && std::strncmp(reinterpret_cast<const char*>(names + e->d_un.d_val), "libnx2.", 7) == 0)
      return true;
  return false;
}

// The first object is the program itself.
int note_code(dl_phdr_info* object, std::size_t, void* seen) {
  const bool program = !std::exchange(*static_cast<bool*>(seen), true);
  if (!program && !calls_us(*object)) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    g_program_code.push_back({begin, begin + part.p_memsz});
  }
  return 0;
}

void note_waiting_calls() {
  for (const char* name :
       {"clock_nanosleep", "nanosleep", "pause", "poll", "select", "read", "wait4", "waitpid", "sched_yield"}) {
    void* const at = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    const ElfW(Sym)* symbol = nullptr;
    if (at == nullptr ||
        dladdr1(at, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) == 0 ||
        symbol == nullptr)
      continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    g_waiting_calls.push_back({begin, begin + symbol->st_size});
  }
}

std::uintptr_t interrupted_at(const void* context) {
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine->gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine->pc;
#else
#error "where a signal found the program is not known for this processor"
#endif
}

bool may_interrupt(const void* context) {
  const std::uintptr_t at = interrupted_at(context);
  const auto contains = [at](const Range& range) { return range.contains(at); };
  return std::any_of(g_program_code.begin(), g_program_code.end(), contains) ||
         std::any_of(g_waiting_calls.begin(), g_waiting_calls.end(), contains);
}

void nap(long nanoseconds) {
  const timespec time{0, nanoseconds};
  nanosleep(&time, nullptr);
}

}  // namespace

Interrupt* Interrupt::installed_ = nullptr;

// ---- the program's thread
// -------------------------------------------------------------------------------------------

// True when there was something to do. The program is outside of the library.
bool Interrupt::work_if_asked() noexcept {
  if (!asked_.exchange(false, std::memory_order_seq_cst)) return false;
  depth_.store(1, std::memory_order_relaxed);
  work_(true);
  // Pairs with ask(): either that sees the 0, or the next look here sees that it asked.
  depth_.store(0, std::memory_order_seq_cst);
  return true;
}

void Interrupt::leave_slowly() noexcept {
  const int depth = depth_.load(std::memory_order_relaxed);
  if (depth > 1) return leave();
  work_(asked_.exchange(false, std::memory_order_seq_cst));
  depth_.store(0, std::memory_order_seq_cst);  // pairs with ask()
  while (work_if_asked()) {
  }
}

void Interrupt::on_signal(int, siginfo_t*, void* context) {
  Interrupt* self = installed_;
  if (self == nullptr || !pthread_equal(pthread_self(), self->program_)) return;
  if (self->depth_.load(std::memory_order_relaxed) != 0 || !may_interrupt(context)) return;
  const int error = errno;
  while (self->work_if_asked()) {
  }
  errno = error;
}

void Interrupt::start(ulfm_port port, std::function<void(bool)> work) {
  if (active_) return;
  port_ = port;
  work_ = std::move(work);
  program_ = pthread_self();
  if (g_program_code.empty()) {
    bool seen = false;
    dl_iterate_phdr(note_code, &seen);
    note_waiting_calls();
  }
  installed_ = this;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(kSignal, &action, nullptr);
  active_ = true;
  stopping_ = false;
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
  (void)ulfm_watch_end(port_);
  helper_.join();
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
