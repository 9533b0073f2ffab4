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
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO;
    sigaction(signal, &action, nullptr);
  }
  const pid_t child = fork();
  if (child < 0) fail(kInstallation, fmt::format("starting {}: {}", command.front(), std::strerror(errno)));
  if (child == 0) become_command(command, self);
  g_mpiexec = child;
  return wait_for(child);
}

}  // namespace ulfmrun
