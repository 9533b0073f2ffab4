#include "job/daemon.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/core.h>

#include "base/argv.hpp"
#include "base/standard_streams.hpp"
#include "job/control/socket.hpp"

namespace ulfm {
namespace {

// Between fork and exec only what a signal handler might do: the program may have threads.
[[noreturn]] void become(const char* path, char* const* argv, int input, int output, int null) {
  sigset_t none;
  sigemptyset(&none);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input < 0 ? null : input, STDIN_FILENO);
  dup2(output < 0 ? null : output, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0u, 0);
  execv(path, argv);
  _exit(127);
}

}  // namespace

Result<void> start_daemon(const std::string& path, const std::vector<std::string>& words, int input, int output) {
  std::vector<char*> argv = argv_of(words);
  const control::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail_errno("opening /dev/null");
  const pid_t between = fork();
  if (between == 0) {
    setsid();
    const pid_t daemon = fork();
    if (daemon == 0) become(path.c_str(), argv.data(), input, output, null.get());
    _exit(daemon < 0 ? 1 : 0);
  }
  if (between < 0) return fail_errno(fmt::format("starting {}", path));
  int status = 0;
  pid_t ended;
  do ended = waitpid(between, &status, 0);
  while (ended < 0 && errno == EINTR);
  // A program that ignores SIGCHLD has no status of its children; then nothing is known, and it is taken for well.
  if (ended == between && status != 0) {
    errno = EAGAIN;
    return fail_errno(fmt::format("starting {}", path));
  }
  return {};
}

void answer_starter(std::string line) {
  line += '\n';
  (void)!write(STDOUT_FILENO, line.data(), line.size());
  close(STDOUT_FILENO);
  reserve_standard_streams();
}

}  // namespace ulfm
