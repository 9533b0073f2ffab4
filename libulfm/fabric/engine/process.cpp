#include "fabric/engine/process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "base/wait.hpp"
#include "fabric/engine/engine.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {
namespace {

struct Watched {
  pid_t pid;
  std::uint64_t started;
};

void sleep_until_rung(FabricEngine& engine, const WaitPolicy& policy) {
  Doorbell& bell = engine.arena().header().engine_bell;
  bell.arm();
  if (!engine.has_work())
    bell.sleep(std::min<std::chrono::nanoseconds>(policy.park_limit, engine.next_deadline()), {},
               [&] { return engine.has_work(); });
  bell.cancel();
}

[[noreturn]] void serve(FabricEngine& engine, const Watched& job) {
  const WaitPolicy policy = WaitPolicy::for_processes(static_cast<int>(engine.arena().sizes().processes) + 1);
  Waiter waiter(policy);
  if (!policy.has_own_core()) engine.arena().header().engine_bell.expect_many_sleeps();
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

// The job's terminal and pipes are closed here, so that their readers see the end of file.
void detach_streams() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
}

[[noreturn]] void become_program(const char* name, const std::string& path, FabricHost& host, const Watched& job) {
  const std::string arena = encode(host.arena().address()), pid = fmt::format("{}", job.pid),
                    began = fmt::format("{}", job.started);
  execl(path.c_str(), name, arena.c_str(), pid.c_str(), began.c_str(), nullptr);
  std::_Exit(127);
}

// ---- the keeper -----------------------------------------------------------------------------------------------------

using Clock = std::chrono::steady_clock;
constexpr auto kAtOnce = std::chrono::milliseconds(50);
constexpr int kMostAtOnce = 20;  // processes that die at once, one after the other, before the keeper gives up

[[noreturn]] void move_anew(const KeeperTask& task) {
  auto engine = FabricEngine::over(FabricArena::attach(task.arena));
  if (!engine) std::_Exit(1);
  ArenaHeader& header = (*engine)->arena().header();
  header.engine_started.store(start_time(getpid()), std::memory_order_relaxed);
  header.engine_pid.store(getpid(), std::memory_order_relaxed);
  prctl(PR_SET_NAME, task.name.c_str());
  if (!(*engine)->resume()) std::_Exit(1);
  serve(**engine, {task.job, task.job_started});
}

// Processes that wait for the interconnect find this in why_broken().
void give_up(const KeeperTask& task) {
  if (auto arena = FabricArena::attach(task.arena))
    arena->header().broken.store(kEngineProcess + 1, std::memory_order_relaxed);
}

}  // namespace

int keep_engine(const KeeperTask& task) {
  detach_streams();
  prctl(PR_SET_NAME, "hostd-keeper");
  for (int at_once = 0; at_once < kMostAtOnce;) {
    const auto begun = Clock::now();
    const pid_t child = fork();
    if (child == 0) move_anew(task);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) break;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    if (!is_alive(task.job, task.job_started)) return 0;
    at_once = Clock::now() - begun < kAtOnce ? at_once + 1 : 0;
  }
  give_up(task);
  return 1;
}

Result<void> start_engine_process(FabricHost& host, const std::string& folder) {
  const Watched job{getpid(), start_time(getpid())};
  auto engine = FabricEngine::over(FabricArena::attach(host.arena().address()));
  if (!engine) return fail(engine.error());
  const char* program = host.kind().program;
  const std::string path = program != nullptr ? fmt::format("{}/{}", folder, program) : "";
  if (program != nullptr && access(path.c_str(), X_OK) != 0) return fail_errno(fmt::format("starting {}", path));
  int pid_pipe[2];
  if (pipe2(pid_pipe, O_CLOEXEC) != 0) return fail_errno("a pipe to the engine process");
  const pid_t between = fork();
  if (between < 0) return fail_errno("starting the engine process");
  if (between == 0) {
    const pid_t child = fork();
    if (child != 0) {
      (void)!write(pid_pipe[1], &child, sizeof child);
      std::_Exit(0);
    }
    setsid();
    close(pid_pipe[0]);
    close(pid_pipe[1]);
    if (program != nullptr) become_program(program, path, host, job);
    detach_streams();
    prctl(PR_SET_NAME, "ulfm-engine");
    serve(**engine, job);
  }
  close(pid_pipe[1]);
  pid_t child = -1;
  const ssize_t got = read(pid_pipe[0], &child, sizeof child);
  close(pid_pipe[0]);
  waitpid(between, nullptr, 0);
  if (got != sizeof child || child < 0) return fail(Errc::system, "the engine process did not start");
  ArenaHeader& header = host.arena().header();
  if (program != nullptr) {
    header.keeper_started = start_time(child);
    header.keeper_pid = child;
    // Until the program has said which process it is. The one that does may have been quicker.
    std::int32_t nobody = 0;
    header.engine_pid.compare_exchange_strong(nobody, child, std::memory_order_relaxed);
    std::uint64_t never = 0;
    header.engine_started.compare_exchange_strong(never, header.keeper_started, std::memory_order_relaxed);
  } else {
    header.engine_started.store(start_time(child), std::memory_order_relaxed);
    header.engine_pid.store(child, std::memory_order_relaxed);
  }
  return {};
}

}  // namespace ulfm::fabric
