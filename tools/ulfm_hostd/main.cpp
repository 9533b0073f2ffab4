// ulfm_hostd ARENA PID STARTED: the PC host of a job over boards, as a process. ulfmrun starts it; see ulfm-pcie(7).
// ulfm_hostd hold PROCESSES PID STARTED: holds the interconnect of a job that mpiexec has started; the job's first
// process starts it.
// ulfm_hostd door ARENA FRAME PID STARTED, ulfm_hostd proxy ARENA RANK FRAME PID STARTED: for the processes of a job
// that are on other hosts than its interconnect.
#include <sys/socket.h>
#include <ulfm/ulfm.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/standard_streams.hpp"
#include "fabric/engine/discovery.hpp"
#include "fabric/engine/process.hpp"
#include "transport/proxy/door.hpp"
#include "transport/proxy/proxy.hpp"

namespace {

template <typename Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

constexpr const char* kHelp =
    "usage: ulfm_hostd ARENA PID STARTED | hold PROCESSES PID STARTED |\n"
    "       door ARENA FRAME PID STARTED | proxy ARENA RANK FRAME PID STARTED | --help | --version\n"
    "Moves the messages of an emulated interconnect as a process of its own: the PC host of boards, for example.\n"
    "With hold it makes the interconnect of a job that mpiexec has started, and holds it for the processes.\n"
    "With door and proxy it stands for processes that are on other hosts than the interconnect.\n"
    "ulfmrun or a job's first process starts it, and it ends with the job; nobody else needs to.\n"
    "Example: ULFM_ENGINE=process ulfmrun --transport pcie -n 4 ./hello\n"
    "Exit code: 0 when the job has ended, 1 when the interconnect is not there, 2 for a wrong command line.\n"
    "Manual: ulfm_hostd(1), ulfm-pcie(7).\n";

int run_holder(char** words) {
  ulfm::fabric::HolderTask task;
  task.listener = STDIN_FILENO;
  int listens = 0;
  socklen_t length = sizeof listens;
  if (!read(words[0], task.processes) || !read(words[1], task.launcher) || !read(words[2], task.launcher_started) ||
      getsockopt(STDIN_FILENO, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) {
    std::fputs("ulfm_hostd: the first process of a job starts it with hold; see ulfm_hostd --help\n", stderr);
    return 2;
  }
  task.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  task.open_door = [&task](const ulfm::fabric::FabricArena& arena) -> ulfm::Result<std::string> {
    auto door = ulfm::proxy::start_door(arena, task.programs, {});
    if (!door) return ulfm::fail(door.error());
    return encode(*door);
  };
  return ulfm::fabric::serve_arena(task);
}

int door(char** words) {
  ulfm::proxy::DoorTask task{words[0], 0, 0, 0};
  if (ulfm::fabric::decode_arena_address(words[0]) && read(words[1], task.frame) && read(words[2], task.job) &&
      read(words[3], task.job_started))
    return ulfm::proxy::serve_door(task);
  std::fputs("ulfm_hostd: ulfmrun starts it with door; see ulfm_hostd --help\n", stderr);
  return 2;
}

int proxy(char** words) {
  ulfm::proxy::ProxyTask task;
  const auto arena = ulfm::fabric::decode_arena_address(words[0]);
  if (arena && read(words[1], task.rank) && read(words[2], task.frame) && read(words[3], task.job) &&
      read(words[4], task.job_started)) {
    task.arena = *arena;
    return ulfm::proxy::serve_proxy(task);
  }
  std::fputs("ulfm_hostd: the door of a job starts it with proxy; see ulfm_hostd --help\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  ulfm::fabric::KeeperTask task{"ulfm_hostd", {}, 0, 0};
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") return std::fputs(kHelp, stdout) < 0;
  if (first == "--version") return std::printf("ulfm_hostd %s\n", ulfm_version()) < 0;
  if (first == "hold" && argc == 5) return run_holder(argv + 2);
  if (first == "door" && argc == 6) return door(argv + 2);
  if (first == "proxy" && argc == 7) return proxy(argv + 2);
  if (argc != 4 || !read(argv[2], task.job) || !read(argv[3], task.job_started)) {
    std::fputs("ulfm_hostd: ulfmrun starts it, with the arena of a job; see ulfm_hostd --help\n", stderr);
    return 2;
  }
  const auto arena = ulfm::fabric::decode_arena_address(argv[1]);
  if (!arena) {
    std::fprintf(stderr, "ulfm_hostd: %s\n", arena.error().what.c_str());
    return 2;
  }
  task.arena = *arena;
  return ulfm::fabric::keep_engine(task);
}
