#include "fabric/engine/discovery.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "base/wait.hpp"
#include "job/abstract_name.hpp"
#include "job/control/socket.hpp"
#include "job/daemon.hpp"
#include "job/launcher.hpp"

namespace ulfm::fabric {
namespace {

using control::Fd;
using Clock = std::chrono::steady_clock;

constexpr const char* kHolder = "ulfm_hostd";
constexpr int kMostWaiting = 4096;             // processes that have not been answered yet
constexpr std::chrono::seconds kAnswerIn{60};  // of a holder that makes the largest arena on a loaded host
constexpr std::chrono::seconds kNameFor{10};   // between taking the name and listening
constexpr int kMostHolders = 3;                // that end without an answer
constexpr std::size_t kMostAnswer = 65536;

std::string no_launcher() {
  return "an emulated interconnect is made for a job: start the program with ulfmrun or mpiexec";
}

// The process that spawned this one has the interconnect of the job, but on another host.
std::string spawned_elsewhere() {
  return "a process that is spawned on another host does not find the emulated interconnect of its job: start the job "
         "with ulfmrun";
}

// With the user's number: jobs of others have names of their own.
AbstractName name_of(const std::string& job) { return AbstractName(fmt::format("ulfm-arena.{}.{}", geteuid(), job)); }

Result<Fd> make_socket() {
  Fd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made) return fail_errno("a socket to find the emulated interconnect of this job");
  return made;
}

// ---- starting the holder --------------------------------------------------------------------------------------------

std::string folder_of(const std::string& file) {
  char whole[PATH_MAX];
  if (realpath(file.c_str(), whole) == nullptr) return "";
  const std::string path = whole;
  return path.substr(0, path.rfind('/'));
}

// Beside the library, as an installation has them, and Debian's packages; beside the launcher, for a program that has
// the library in itself.
Result<std::string> folder_of_programs(const Launcher& launcher) {
  Dl_info info{};
  std::vector<std::string> folders;
  if (dladdr(reinterpret_cast<const void*>(&folder_of_programs), &info) != 0 && info.dli_fname != nullptr)
    if (const std::string own = folder_of(info.dli_fname); !own.empty())
      folders = {fmt::format("{}/../bin", own), fmt::format("{}/../ulfm/bin", own), fmt::format("{}/../../bin", own),
                 own};
  if (launcher.pid > 0) folders.push_back(folder_of(fmt::format("/proc/{}/exe", launcher.pid)));
  for (const std::string& folder : folders)
    if (access(fmt::format("{}/{}", folder, kHolder).c_str(), X_OK) == 0) return folder;
  return fail(
      Errc::unavailable,
      fmt::format("the first process of a job starts {}, which holds its emulated interconnect; {}: install all "
                  "of ULFM, or start the job with ulfmrun",
                  kHolder,
                  folders.empty() ? "it is not installed" : fmt::format("there is none in {}", folders.front())));
}

Result<void> start_holder(const Fd& listener, const Launcher& launcher) {
  auto folder = folder_of_programs(launcher);
  if (!folder) return fail(folder.error());
  const char* size = std::getenv("PMI_SIZE");
  return start_daemon(fmt::format("{}/{}", *folder, kHolder),
                      {kHolder, "hold", size != nullptr ? size : "1", fmt::format("{}", launcher.pid),
                       fmt::format("{}", launcher.started)},
                      listener.get(), -1);
}

// Takes the name. From now on a process that connects waits, and so does one that finds the name taken. Empty when
// another process has it.
Result<Fd> take_name(const AbstractName& name) {
  auto listener = make_socket();
  if (!listener) return listener;
  if (bind(listener->get(), name.get(), name.length()) != 0) {
    if (errno == EADDRINUSE) return Fd();
    return fail_errno("taking a name for the emulated interconnect of this job");
  }
  if (listen(listener->get(), kMostWaiting) != 0) return fail_errno("listening for the processes of this job");
  return listener;
}

// ---- asking ---------------------------------------------------------------------------------------------------------

// Connected to whoever listens under that name; empty when nobody does.
Result<Fd> find_holder(const AbstractName& name) {
  auto made = make_socket();
  if (!made) return made;
  int rc = 0;
  do rc = connect(made->get(), name.get(), name.length());
  while (rc != 0 && errno == EINTR);
  if (rc != 0 && errno == ECONNREFUSED) return Fd();
  if (rc != 0) return fail_errno("asking for the emulated interconnect of this job");
  if (!control::is_same_user(*made, control::SocketKind::unix_socket))
    return fail(Errc::unavailable, "another user listens under the name of this job's emulated interconnect");
  return made;
}

// What the holder says; nothing when it has ended without a word.
Result<std::optional<std::string>> read_answer(const Fd& holder) {
  const auto until = Clock::now() + kAnswerIn;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd one{holder.get(), POLLIN, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::max<long>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0)
      return fail(Errc::unavailable,
                  fmt::format("the holder of this job's emulated interconnect ({}) has not answered for {} s", kHolder,
                              kAnswerIn.count()));
    std::string text(kMostAnswer, '\0');
    const ssize_t got = recv(holder.get(), text.data(), text.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::optional<std::string>{};
    text.resize(static_cast<std::size_t>(got));
    return std::optional(std::move(text));
  }
}

/// Where the arena is, or why there is none, and the connection by which the holder notices the end of this process.
struct Discovery {
  Fd tie;
  Result<ArenaAddress> arena;
};

Result<Discovery> find_arena() {
  auto launcher = launcher_of_this_process();
  if (!launcher) return fail(Errc::unavailable, no_launcher());
  const AbstractName name = name_of(launcher->job);
  auto until = Clock::now() + kNameFor;
  for (int ended = 0; ended < kMostHolders;) {
    auto holder = find_holder(name);
    if (!holder) return fail(holder.error());
    if (*holder) {
      auto answer = read_answer(*holder);
      if (!answer) return fail(answer.error());
      if (*answer && (*answer)->starts_with("-"))
        return Discovery{std::move(*holder), fail(Errc::invalid, (*answer)->substr(1))};
      if (*answer) return Discovery{std::move(*holder), decode_arena_address(std::string_view(**answer).substr(1))};
      ++ended;
      until = Clock::now() + kNameFor;
      continue;
    }
    auto listener = take_name(name);
    if (!listener) return fail(listener.error());
    if (*listener && std::getenv("PMI_SPAWNED") != nullptr) return fail(Errc::unavailable, spawned_elsewhere());
    if (*listener) {
      if (auto ok = start_holder(*listener, *launcher); !ok) return fail(ok.error());
    } else if (Clock::now() > until) {
      return fail(Errc::unavailable,
                  "another process has begun to make the emulated interconnect of this job, and "
                  "does not go on");
    } else {
      yield_now();
    }
  }
  return fail(Errc::unavailable, fmt::format("the holder of this job's emulated interconnect ({}) ends without a word "
                                             "each time it is started; start the job with ulfmrun",
                                             kHolder));
}

}  // namespace

namespace {

// Kept until the process ends, and not ended by destructors, which run before that.
const Result<Discovery>& discovery_of_this_process() {
  static std::mutex lock;
  static std::optional<Result<Discovery>>& found = *new std::optional<Result<Discovery>>;
  std::lock_guard guard(lock);
  if (!found) found.emplace(find_arena());
  return *found;
}

bool is_started_by_ulfmrun() {
  const char* text = std::getenv("ULFM_FABRIC");
  return text != nullptr && *text != '\0';
}

}  // namespace

Result<FabricArena> arena_of_this_job() {
  if (is_started_by_ulfmrun()) return FabricArena::of_this_job();
  const Result<Discovery>& found = discovery_of_this_process();
  if (!found) return fail(found.error());
  if (!found->arena) return fail(found->arena.error());
  return FabricArena::attach(*found->arena);
}

Result<std::string> door_of_holder() {
  const Result<Discovery>& found = discovery_of_this_process();
  if (!found) return fail(found.error());
  if (!found->arena) return fail(found->arena.error());
  if (send(found->tie.get(), "d", 1, MSG_NOSIGNAL) != 1) return fail_errno("asking for a way from other hosts");
  auto answer = read_answer(found->tie);
  if (!answer) return fail(answer.error());
  if (*answer && (*answer)->starts_with("+")) return (*answer)->substr(1);
  return fail(Errc::unavailable, *answer ? (*answer)->substr(1) : fmt::format("{} has ended", kHolder));
}

void wait_to_complain() {
  if (is_started_by_ulfmrun()) return;
  const Result<Discovery>& found = discovery_of_this_process();
  if (!found || found->arena || send(found->tie.get(), "?", 1, MSG_NOSIGNAL) != 1) return;
  (void)read_answer(found->tie);
}

}  // namespace ulfm::fabric
