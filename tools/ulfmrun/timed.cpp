#include "timed.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "fabric/engine/clock.hpp"
#include "fabric/engine/time.hpp"
#include "failure.hpp"

namespace ulfmrun {
namespace {

volatile sig_atomic_t g_mpiexec = 0;

// mpiexec ends the job in good order, and the report comes after that.
void pass_on(int signal) {
  if (g_mpiexec > 0) kill(g_mpiexec, signal);
}

[[noreturn]] void become_mpiexec(const std::vector<std::string>& command, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kInstallation);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "ulfmrun: %s: %s\n", argv[0], std::strerror(errno));
  _exit(kInstallation);
}

void write_times(const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  if (file == nullptr || std::fclose(file) != 0 || !written)
    fail(kInstallation, "--times " + path + ": " + std::strerror(errno));
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kInstallation;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void check_time(const CommandLine& line, const ulfm::Config& settings) {
  if (line.times && !line.time) fail(kUsage, "--times writes where virtual time went; add --time virtual");
  if (!line.time) return;
  const std::string& transport = settings.text("TRANSPORT");
  if (ulfm::fabric::model_of_transport(transport) == nullptr)
    fail(kUsage, "--time: transport " + transport.substr(0, transport.find(',')) +
                     " moves messages in the host's time; virtual time goes with an emulated interconnect, such as "
                     "--transport xswitch");
  if (settings.text("ENGINE") == "process")
    fail(kUsage, "ULFM_ENGINE=process moves the network in the host's time; leave it out with --time virtual");
  if (settings.number("CONTROL") != 0)
    fail(kUsage, "ULFM_CONTROL: a control channel works in the host's time; leave it out with --time virtual");
  const auto time = ulfm::fabric::parse_time(*line.time);
  if (!time) fail(kUsage, "--time: " + time.error().what);
}

int run_timed(ulfm::fabric::FabricHost& host, const std::vector<std::string>& command, const std::string& times) {
  const auto began = std::chrono::steady_clock::now();
  const pid_t self = getpid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction action {};
    action.sa_handler = pass_on;
    sigaction(signal, &action, nullptr);
  }
  const pid_t child = fork();
  if (child < 0) fail(kInstallation, std::string("starting mpiexec: ") + std::strerror(errno));
  if (child == 0) become_mpiexec(command, self);
  g_mpiexec = child;
  const int code = wait_for(child);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::fputs(ulfm::fabric::time_report(host.arena(), seconds).c_str(), stderr);
  if (times.empty()) return code;
  auto model = host.kind().attach(host.arena().model(), host.arena().sizes().model_bytes);
  if (!model) fail(kInstallation, model.error().what);
  write_times(times, ulfm::fabric::time_json(host.arena(), **model, seconds));
  return code;
}

}  // namespace ulfmrun
