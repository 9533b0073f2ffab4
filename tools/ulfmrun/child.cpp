#include "child.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "base/argv.hpp"
#include "failure.hpp"

namespace ulfmrun {
namespace {

volatile sig_atomic_t g_mpiexec = 0;

// mpiexec ends the job in good order, and the report comes after that. What a terminal sends it has got already.
void pass_on(int signal, siginfo_t* from, void*) {
  if (g_mpiexec > 0 && from->si_code != SI_KERNEL) kill(g_mpiexec, signal);
}

/// Signals that go on to mpiexec, all but those that this process was started to ignore, as under nohup. They wait
/// until there is one.
class PassedSignals {
 public:
  PassedSignals() {
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      struct sigaction action {};
      if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
      sigaddset(&held_, signal);
    }
    sigprocmask(SIG_BLOCK, &held_, &before_);
    set(pass_on);
  }
  void release() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  /// In mpiexec's process, which they end as any other.
  void leave() const {
    set(nullptr);
    release();
  }

 private:
  void set(void (*handler)(int, siginfo_t*, void*)) const {
    for (int signal = 1; signal < SIGRTMIN; ++signal) {
      if (sigismember(&held_, signal) != 1) continue;
      struct sigaction action {};
      if (handler != nullptr) action.sa_sigaction = handler, action.sa_flags = SA_SIGINFO;
      else action.sa_handler = SIG_DFL;
      sigaction(signal, &action, nullptr);
    }
  }
  sigset_t before_{}, held_{};
};

[[noreturn]] void become_command(const std::vector<std::string>& command, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kInstallation);
  std::vector<char*> argv = ulfm::argv_of(command);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "ulfmrun: %s: %s\n", argv[0], std::strerror(errno));
  _exit(kInstallation);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kInstallation;
  if (!WIFEXITED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

}  // namespace

int run_child(const std::vector<std::string>& command) {
  const pid_t self = getpid();
  const PassedSignals signals;
  const pid_t child = fork();
  if (child < 0) fail(kInstallation, fmt::format("starting {}: {}", command.front(), std::strerror(errno)));
  if (child == 0) {
    signals.leave();
    become_command(command, self);
  }
  g_mpiexec = child;
  signals.release();
  return wait_for(child);
}

}  // namespace ulfmrun
