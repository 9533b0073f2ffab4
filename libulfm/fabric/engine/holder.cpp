// The holder of an arena; see discovery.hpp.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "base/config.hpp"
#include "fabric/engine/discovery.hpp"
#include "fabric/engine/process.hpp"
#include "job/control/socket.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {
namespace {

using control::Fd;
using Clock = std::chrono::steady_clock;

// One process reports the error, and then the launcher ends the others. If it does not, they report it too.
constexpr std::chrono::seconds kOthersAfter{3};
// The first process may need so long to connect: the one that started this holder, or a program that is run again.
constexpr std::chrono::seconds kFirstIn{10};
constexpr std::chrono::milliseconds kLook{500};  // whether the launcher lives, where the kernel does not tell

// How the user wrote a setting, when it was not by default.
std::string origin_of(const Config& settings, const char* row) {
  switch (settings.origin(row)) {
    case Origin::default_value: return "";
    case Origin::environment: return fmt::format("ULFM_{}: ", row);
    default: return fmt::format("{}: ", settings.where(row));
  }
}

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && std::string_view("1 yes Yes YES true True TRUE on On ON").find(text) != std::string::npos &&
         *text != '\0';
}

// The engine as a process where the settings ask for it, and where deaths are survived: a rank that dies while it moves
// the interconnect takes along what is on its way for everybody.
Result<FabricHost> make_host(const HolderTask& task) {
  auto settings = Config::load();
  if (!settings) return fail(settings.error());
  auto host = FabricHost::create(
      {settings->text("TRANSPORT"), settings->text("TOPOLOGY"), task.processes, settings->text("FAULT")});
  if (!host) {
    // Which of the two settings is wrong stands in the sentence, so the origin of both does.
    std::string origin = origin_of(*settings, "TRANSPORT");
    if (const std::string other = origin_of(*settings, "TOPOLOGY"); other != origin) origin += other;
    return fail(host.error().code, origin + host.error().what);
  }
  // Open across exec, for the engine process.
  if (auto ok = host->publish(); !ok) return fail(ok.error());
  if (settings->text("ENGINE") == "process" || is_set("MPIR_CVAR_ENABLE_FT"))
    if (auto ok = start_engine_process(*host, task.programs); !ok) return fail(ok.error());
  return host;
}

class Holder {
 public:
  Holder(const HolderTask& task, const Result<FabricHost>& host) : task_(task), host_(host), listener_(task.listener) {
    if (task.launcher > 0)
      launcher_.reset(static_cast<int>(syscall(SYS_pidfd_open, task.launcher, 0)));  // closed on exec
  }

  void serve(const std::string& answer) {
    while (!is_over()) {
      wait();
      take_new();
      hear();
      for (Tie& tie : ties_) {
        if (!tie.answered) tie.answered = reply(tie, answer);
        if (tie.wants_door && reply(tie, door())) tie.wants_door = false;
        if (tie.asks && (!said_ || Clock::now() > *said_ + kOthersAfter) && reply(tie, "!")) {
          tie.asks = false;
          if (!said_) said_ = Clock::now();
        }
      }
    }
  }

 private:
  struct Tie {
    Fd socket;
    bool answered = false;
    bool asks = false;  ///< whether it may say what is wrong
    bool wants_door = false;
  };

  bool is_over() const {
    if (!ties_.empty()) return false;
    if (task_.launcher > 0) return !is_alive(task_.launcher, task_.launcher_started);
    return any_ || Clock::now() > began_ + kFirstIn;
  }

  void wait() {
    polls_.clear();
    polls_.push_back({listener_.get(), POLLIN, 0});
    // Until it has ended: from then on it would always be readable.
    // One that ends now, after is_over() has asked, is not waited for without end.
    const bool is_watched = launcher_ && is_alive(task_.launcher, task_.launcher_started);
    if (is_watched) polls_.push_back({launcher_.get(), POLLIN, 0});
    for (const Tie& tie : ties_) polls_.push_back({tie.socket.get(), POLLIN, 0});
    (void)poll(polls_.data(), polls_.size(), is_watched && !said_ ? -1 : static_cast<int>(kLook.count()));
  }

  // Accepts every connection that waits.
  void take_new() {
    pollfd one{listener_.get(), POLLIN, 0};
    while (poll(&one, 1, 0) > 0) {
      Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      if (!control::is_same_user(socket, control::SocketKind::unix_socket)) continue;
      ties_.push_back({std::move(socket)});
      any_ = true;
    }
  }

  // A byte is a question, and everything else an end.
  void hear() {
    std::erase_if(ties_, [](Tie& tie) {
      char byte;
      const ssize_t got = recv(tie.socket.get(), &byte, 1, MSG_DONTWAIT);
      if (got > 0) (byte == 'd' ? tie.wants_door : tie.asks) = true;
      return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    });
  }

  // Opened once.
  const std::string& door() {
    if (!door_.empty()) return door_;
    auto address = host_ ? task_.open_door(host_->arena()) : fail(host_.error());
    return door_ = address ? fmt::format("+{}", *address) : fmt::format("-{}", address.error().what);
  }

  static bool reply(const Tie& tie, const std::string& text) {
    return send(tie.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  }

  const HolderTask& task_;
  const Result<FabricHost>& host_;
  std::string door_;
  Fd listener_, launcher_;
  std::vector<Tie> ties_;
  std::vector<pollfd> polls_;
  bool any_ = false;
  std::optional<Clock::time_point> said_;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace

int serve_arena(const HolderTask& task) {
  prctl(PR_SET_NAME, "ulfm-arena");
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
  auto host = make_host(task);
  // Relative paths have been read by now, and no file system is kept busy.
  (void)!chdir("/");
  const std::string answer =
      host ? fmt::format("+{}", encode(host->arena().address())) : fmt::format("-{}", host.error().what);
  Holder(task, host).serve(answer);
  return host ? 0 : 1;
}

}  // namespace ulfm::fabric
