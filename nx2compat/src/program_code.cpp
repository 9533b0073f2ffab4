#include "program_code.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

namespace nx2::program_code {
namespace {

struct Range {
  std::uintptr_t begin, end;
  bool contains(std::uintptr_t at) const { return at >= begin && at < end; }
};

/// Code of the program and of libraries that call us; functions of the C library that only wait, and those that set
/// what watch_return() needs.
std::vector<Range> g_program, g_waiting, g_signals;

OnReturn g_on_return = nullptr;
pthread_t g_thread{};
pid_t g_process = 0;
struct sigaction g_before {};
bool g_can_watch = false;
/// The code may not be executed. Any thread may find that, so it is atomic; it publishes nothing.
std::atomic<bool> g_taken{false};

bool in(const std::vector<Range>& ranges, std::uintptr_t at) noexcept {
  return std::any_of(ranges.begin(), ranges.end(), [at](const Range& range) { return range.contains(at); });
}

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
    if ((part.p_flags & PF_W) != 0) g_can_watch = false;
    const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    g_program.push_back({begin & ~(page - 1), (begin + part.p_memsz + page - 1) & ~(page - 1)});
  }
  return 0;
}

void note_functions(std::vector<Range>& ranges, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (void* const at : {dlsym(RTLD_DEFAULT, name), dlsym(RTLD_NEXT, name)}) {  // ours, and what it stands before
      Dl_info info;
      const ElfW(Sym)* symbol = nullptr;
      if (at == nullptr ||
          dladdr1(at, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) == 0 ||
          symbol == nullptr)
        continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(at);
      ranges.push_back({begin, begin + symbol->st_size});
    }
  }
}

std::uintptr_t interrupted_at(const void* context) noexcept {
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine->gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine->pc;
#else
#error "where a signal found the program is not known for this processor"
#endif
}

// ---- whom the program was called by -----------------------------------------------------------------------------

/// A walk up the stack from where the signal came, through at most so many calls.
struct Walk {
  std::uintptr_t interrupted;
  int left = 200;
  bool started = false, in_program = false, in_library = false, may = true;
};

_Unwind_Reason_Code visit(_Unwind_Context* frame, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  std::uintptr_t at = _Unwind_GetIP(frame);
  if (!walk.started) {
    if (at != walk.interrupted) return _URC_NO_REASON;  // the signal handler
    walk.started = true;
  } else {
    --at;  // behind a call
  }
  if (in(g_program, at)) {
    // A library under this that the program called, and that called the program. The C library calls main(), too, but
    // what calls the C library there is the first function of all.
    if (walk.in_library && _Unwind_GetRegionStart(frame) != getauxval(AT_ENTRY)) walk.may = false;
    walk.in_program = true;
  } else if (walk.in_program) {
    walk.in_library = true;
  } else if (!in(g_waiting, at)) {
    walk.may = false;
  }
  return walk.may && --walk.left > 0 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// ---- until the program is back ----------------------------------------------------------------------------------

bool protect(int rights) noexcept {
  bool done = true;
  for (const Range& range : g_program)
    done &= mprotect(reinterpret_cast<void*>(range.begin), range.end - range.begin, rights) == 0;
  return done;
}

// SIGSEGV. Not ours: the handler from before gets it, because the instruction is executed again.
void on_fault(int, siginfo_t* info, void* context) {
  const std::uintptr_t at = interrupted_at(context);
  if (reinterpret_cast<std::uintptr_t>(info->si_addr) != at || !in(g_program, at)) {
    sigaction(SIGSEGV, &g_before, nullptr);
    return;
  }
  const int error = errno;
  returned();
  // Another thread's call, or that of a child, has made room for everybody; the helper tries again.
  if (pthread_equal(pthread_self(), g_thread) && getpid() == g_process && may_interrupt(context)) g_on_return();
  errno = error;
}

/// Stack overflows are told on another stack: a program that wants that keeps its handler.
bool install() noexcept {
  if (sigaction(SIGSEGV, nullptr, &g_before) != 0 || (g_before.sa_flags & SA_ONSTACK) != 0) return false;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;  // a handler of the program's that fails is not ours
  sigaddset(&action.sa_mask, SIGURG);
  return sigaction(SIGSEGV, &action, nullptr) == 0;
}

bool is_installed() noexcept {
  struct sigaction now {};
  return sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_sigaction == on_fault;
}

}  // namespace

void find(OnReturn on_return) noexcept {
  g_on_return = on_return;
  g_thread = pthread_self();
  g_process = getpid();
  if (g_program.empty()) {
    bool seen = false;
    g_can_watch = true;
    dl_iterate_phdr(note_code, &seen);
    note_functions(g_waiting, {"_gfortran_sleep_i4_sub", "pause", "poll", "select", "read", "wait", "wait4", "waitpid",
                               "sched_yield"});
    note_functions(g_signals, {"sigaction", "signal", "sigprocmask", "pthread_sigmask", "sigset", "sigblock",
                               "sigsetmask", "sigsuspend", "mprotect"});
    // Systems that forbid code to be made executable say so now.
    g_can_watch = g_can_watch && protect(PROT_READ | PROT_EXEC);
  }
  if (g_can_watch && !is_installed()) g_can_watch = install();
}

static bool may_interrupt_at(std::uintptr_t place) noexcept {
  Walk walk{place};
  if (!in(g_program, place) && !in(g_waiting, place)) return false;
  _Unwind_Backtrace(visit, &walk);
  return walk.may && walk.in_program;
}

bool may_interrupt(const void* context) noexcept { return may_interrupt_at(interrupted_at(context)); }

bool may_interrupt_caller(const void* caller) noexcept {
  return may_interrupt_at(reinterpret_cast<std::uintptr_t>(caller));
}

void watch_return(const void* context) noexcept {
  const auto* interrupted = static_cast<const ucontext_t*>(context);
  const std::uintptr_t at = interrupted_at(context);
  if (!g_can_watch || in(g_program, at) || in(g_signals, at) || sigismember(&interrupted->uc_sigmask, SIGSEGV) == 1 ||
      !is_installed())
    return;
  g_taken.store(true, std::memory_order_relaxed);
  if (!protect(PROT_READ)) returned();
}

void returned() noexcept {
  if (g_taken.exchange(false, std::memory_order_relaxed)) (void)protect(PROT_READ | PROT_EXEC);
}

void release() noexcept {
  returned();
  if (g_can_watch && is_installed()) sigaction(SIGSEGV, &g_before, nullptr);
}

}  // namespace nx2::program_code
