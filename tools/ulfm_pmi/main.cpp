// ulfm_pmi: started by a launcher other than Hydra, a rank each; it gives the program what Hydra would.
//
// Slurm's pmi2 speaks PMI-1 too: then this becomes the program. With PMIx it stays and translates.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ulfm/ulfm.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/core.h>

#include "../common/command_line.hpp"
#include "base/standard_streams.hpp"
#include "launcher.hpp"
#include "server.hpp"

namespace {

constexpr int kCannotRun = 126;
pid_t child = -1;

int complain(const std::string& text, int code) {
  std::fprintf(stderr, "ulfm_pmi: %s\n", text.c_str());
  return code;
}

void put_in_front(const char* variable, const std::string& folder) {
  const char* before = std::getenv(variable);
  setenv(variable, (before == nullptr || *before == '\0' ? folder : fmt::format("{}:{}", folder, before)).c_str(), 1);
}

// As ulfmrun does: this installation's MPI library, and its netmod.
void prepare() {
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  put_in_front("LD_LIBRARY_PATH", prefix / "lib");
  setenv("MPIR_CVAR_NEMESIS_NETMOD", "ulfm", 1);
}

int run(char** command) {
  execvp(command[0], command);
  const int error = errno;
  return complain(fmt::format("{}: {}", command[0], std::strerror(error)), error == ENOENT ? 127 : kCannotRun);
}

void hand_on(int signal) {
  if (child > 0) kill(child, signal);
}

std::vector<int> handed_on() {
  std::vector<int> all = {SIGTERM,   SIGINT,  SIGHUP,  SIGUSR1, SIGUSR2, SIGCONT, SIGQUIT, SIGALRM,
                          SIGVTALRM, SIGPROF, SIGTSTP, SIGTTIN, SIGTTOU, SIGIO,   SIGPWR,  SIGXCPU};
  for (int one = SIGRTMIN; one <= SIGRTMAX; ++one) all.push_back(one);
  return all;
}

// What comes before there is a program waits for it. Who ends the job while it begins ends it.
class EarlySignals {
 public:
  EarlySignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int one : handed_on())
      if (one != SIGTERM && one != SIGINT && one != SIGHUP && one != SIGQUIT) sigaddset(&held, one);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  // Right before the program's process is made: what comes after that reaches it, too, where all are reached.
  void collect() { sigpending(&came_); }
  void release() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  void hand_to(pid_t program) const {
    for (const int one : handed_on())
      if (sigismember(&came_, one) == 1) kill(program, one);
  }

 private:
  sigset_t before_{}, came_{};
};

// A launcher that signals all processes of a rank has reached the program, too. This one is to outlive the program.
void settle_signals(const EarlySignals& early) {
  const bool reaches_all = std::getenv("SLURM_STEP_ID") != nullptr || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  for (const int one : handed_on()) signal(one, reaches_all ? SIG_IGN : hand_on);
  signal(SIGPIPE, SIG_IGN);
  if (reaches_all) early.hand_to(child);
  early.release();
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}, {}", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

// Somebody has ended the whole job, who knows that.
bool is_sent_by_user(int status) {
  return WIFSIGNALED(status) &&
         (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGHUP);
}

// As the program has ended, for the launcher's own words. No second core file.
int end_as(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit none{0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    (void)raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

int serve(char** command) {
  EarlySignals early;  // before the launcher's library makes threads, which have this one's mask
  auto launcher = pmi::join_pmix();
  if (!launcher) return complain(launcher.error().what, kCannotRun);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return complain(std::strerror(errno), kCannotRun);
  const pid_t self = getpid();
  early.collect();
  child = fork();
  if (child < 0) return complain(fmt::format("starting the program: {}", std::strerror(errno)), kCannotRun);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) return kCannotRun;
    const int fd = dup(ends[1]);  // not closed by exec
    for (const auto& [name, number] :
         {std::pair("PMI_FD", fd), std::pair("PMI_RANK", (*launcher)->rank()),
          std::pair("PMI_SIZE", (*launcher)->size()), std::pair("MPI_LOCALNRANKS", (*launcher)->local_size())})
      setenv(name, fmt::format("{}", number).c_str(), 1);
    early.release();
    _exit(run(command));
  }
  close(ends[1]);
  settle_signals(early);
  const int program = static_cast<int>(syscall(SYS_pidfd_open, child, 0));  // closed on exec
  pmi::Server server(ends[0], program, **launcher);
  server.serve();
  (void)shutdown(ends[0], SHUT_RDWR);  // it may still ask, and gets no answer
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool is_success = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!server.is_program_done()) {  // others would wait for it
    const std::string why =
        fmt::format("rank {} ended without MPI_Finalize: {}", (*launcher)->rank(), how_it_ended(status));
    if (!server.has_aborted() && !is_sent_by_user(status)) (void)complain(why, 1);
    (*launcher)->abort(is_success ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), why);
    (*launcher)->leave();
    return is_success ? 1 : end_as(status);
  }
  (*launcher)->leave();
  return end_as(status);
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  CLI::App app{"Runs a rank of a job that srun or another launcher starts", "ulfm_pmi"};
  std::vector<std::string> program;
  app.set_version_flag("--version", fmt::format("ulfm_pmi {}", ulfm_version()));
  app.add_option("PROGRAM", program, "the program and its arguments")->required();
  app.prefix_command();
  app.footer(
      "Example: srun --mpi=pmix -n 4 ulfm_pmi ./program\n"
      "Exit code: the program's; 2 for a wrong command line, 126 for a program that cannot run, 127 for one not "
      "found.\n"
      "Manual: ulfm_pmi(1).");
  // What follows the program is the program's, also when it looks like an option.
  const bool has_dashes = argc > 1 && std::strcmp(argv[1], "--") == 0;
  if (has_dashes) --argc, ++argv;
  const bool has_program = argc > 1 && (has_dashes || argv[1][0] != '-');
  if (!has_program) {
    const bool is_option = argc > 1 && !has_dashes;
    if (is_option)
      if (const auto code = tools::parse(app, 2, argv); code && *code == 0) return *code;  // --help and its kind
    return tools::complain(app, is_option ? fmt::format("there is no option {}", argv[1])
                                          : "a program is needed, as in: srun --mpi=pmix -n 4 ulfm_pmi ./program");
  }
  prepare();
  if (std::getenv("PMI_FD") != nullptr || std::getenv("PMI_PORT") != nullptr) return run(argv + 1);
  if (std::getenv("PMIX_NAMESPACE") != nullptr) return serve(argv + 1);
  return complain(
      "no launcher that speaks PMI started this: srun needs --mpi=pmi2 or --mpi=pmix (srun --mpi=list shows what it "
      "has); "
      "without a launcher take ulfmrun",
      tools::kUsage);
}
