#include "fabric/engine/process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/wait.hpp"
#include "fabric/engine/engine.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {
namespace {

struct Watched {
  pid_t pid;
  std::uint64_t started;
};

void sleep_until_rung(Engine& engine, const WaitPolicy& policy) {
  Doorbell& bell = engine.arena().header().engine_bell;
  bell.arm();
  if (!engine.has_work()) bell.sleep(std::min<std::chrono::nanoseconds>(policy.park_limit, engine.quiet_for()));
  bell.cancel();
}

[[noreturn]] void serve(Engine& engine, const Watched& job) {
  const WaitPolicy policy = WaitPolicy::for_processes(static_cast<int>(engine.arena().sizes().processes) + 1);
  Waiter waiter(policy);
  for (;;) {
    if (engine.has_work()) {
      engine.step();
      waiter.reset();
    } else if (waiter.step()) {
      if (!is_alive(job.pid, job.started)) std::_Exit(0);
      sleep_until_rung(engine, policy);
    }
  }
}

// Nothing of the job's terminal or pipes stays open here: who reads them must see their end.
void detach_streams() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
}

}  // namespace

Result<void> start_engine_process(FabricHost& host) {
  const Watched job{getpid(), start_time(getpid())};
  auto engine = Engine::over(Arena::attach(host.arena().address()));
  if (!engine) return fail(engine.error());
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) return fail_errno("a pipe to the engine process");
  const pid_t between = fork();
  if (between < 0) return fail_errno("starting the engine process");
  if (between == 0) {
    const pid_t child = fork();
    if (child != 0) {
      (void)!write(told[1], &child, sizeof child);
      std::_Exit(0);
    }
    setsid();
    close(told[0]);
    close(told[1]);
    detach_streams();
    prctl(PR_SET_NAME, "ulfm-engine");
    serve(**engine, job);
  }
  close(told[1]);
  pid_t child = -1;
  const ssize_t got = read(told[0], &child, sizeof child);
  close(told[0]);
  waitpid(between, nullptr, 0);
  if (got != sizeof child || child < 0) return fail(Errc::system, "the engine process did not start");
  ArenaHeader& header = host.arena().header();
  header.engine_started = start_time(child);
  header.engine_pid = child;
  return {};
}

}  // namespace ulfm::fabric
