#include "transport/proxy/door.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <list>

#include <fmt/core.h>

#include "job/daemon.hpp"
#include "job/liveness.hpp"
#include "transport/proxy/wire.hpp"
#include "transport/tcp/tcp.hpp"

namespace ulfm::proxy {
namespace {

using control::Fd;
using std::chrono::milliseconds;

constexpr const char* kProgram = "ulfm_hostd";
constexpr milliseconds kWhileStarting{2}, kIdle{500};

// What it prints is read from the pipe.
Result<Fd> start(const std::string& path, const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno(fmt::format("a pipe to {}", path));
  Fd out(ends[0]), in(ends[1]);
  if (auto ok = start_daemon(path, words, -1, in.get()); !ok) return fail(ok.error());
  return out;
}

// More of what a program has printed; false at the end of it.
bool read_more(const Fd& pipe, std::string& text) {
  char part[1024];
  const ssize_t got = ::read(pipe.get(), part, sizeof part);
  if (got > 0) text.append(part, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

// The card that a program has printed.
Result<std::string> card_in(std::string text, const std::string& program) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.starts_with("+")) return text.substr(1);
  if (text.starts_with("-")) return fail(Errc::unavailable, text.substr(1));
  return fail(Errc::unavailable, fmt::format("{} has ended without a word", program));
}

std::string own_program() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return {path, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

class Door {
 public:
  Door(const DoorTask& task, std::unique_ptr<Transport> carrier, std::unique_ptr<Inlet> requests)
      : task_(task), program_(own_program()), carrier_(std::move(carrier)), requests_(std::move(requests)) {}

  void serve() {
    while (is_alive(task_.job, task_.job_started)) {
      while (requests_->next(frame_)) take_in();
      for (std::int64_t gone; (gone = requests_->find_dead()) >= 0;)
        requests_->drop_origin(static_cast<std::uint32_t>(gone));
      std::erase_if(starting_, [this](Starting& one) { return go_on(one); });
      WakeSource& source = requests_->wake_source();
      source.arm();
      if (!requests_->has_frame()) (void)source.sleep(starting_.empty() ? kIdle : kWhileStarting);
      source.cancel();
    }
  }

 private:
  /// A proxy whose card has not come.
  struct Starting {
    std::string process;  ///< card of whom it is for
    Fd output;
    std::string text;
    std::unique_ptr<Outlet> down;
  };

  void take_in() {
    ProxyHead head;
    std::span<const std::byte> body;
    if (read(frame_, head, body) && head.what == ProxyCall::ask) {
      Starting one{requests_->origin(frame_.origin).card, {}, {}, nullptr};
      auto output = start(
          program_, {kProgram, "proxy", task_.arena, fmt::format("{}", head.number), fmt::format("{}", task_.frame),
                     fmt::format("{}", task_.job), fmt::format("{}", task_.job_started)});
      if (output) one.output = std::move(*output);
      else one.text = fmt::format("-{}", output.error().what);
      starting_.push_back(std::move(one));
    }
    const bool bye = frame_.kind == Kind::bye;
    requests_->release(frame_);
    if (bye) requests_->drop_origin(frame_.origin);
  }

  // True when the process has its answer, or has gone.
  bool go_on(Starting& one) {
    pollfd poll_one{one.output.get(), POLLIN, 0};
    while (one.output && poll(&poll_one, 1, 0) > 0)
      if (!read_more(one.output, one.text)) one.output.reset();
    if (one.output) return false;
    if (!one.down) {
      auto down = carrier_->connect(one.process, kReplies, kRequests, {}, counters_);
      if (!down) return true;
      one.down = std::move(*down);
    }
    const auto card = card_in(one.text, program_);
    ProxyHead head{ProxyCall::proxy};
    head.number = card ? 0 : number_of(card.error().code);
    if (say(*one.down, head, bytes_of(card ? *card : card.error().what))) return (void)one.down->bye(), true;
    return !one.down->peer_listening();
  }

  const DoorTask& task_;
  std::string program_;
  PortCounters counters_;  // nobody asks for them
  std::unique_ptr<Transport> carrier_;
  std::unique_ptr<Inlet> requests_;
  Frame frame_;
  std::list<Starting> starting_;
};

Result<std::unique_ptr<Door>> make(const DoorTask& task, std::string& card) {
  auto config = Config::load();
  if (!config) return fail(config.error());
  auto carrier = make_carrier(*config, 0);
  if (!carrier) return fail(carrier.error());
  auto requests = (*carrier)->open(kRequests, {});
  if (!requests) return fail(requests.error());
  card = (*carrier)->card();
  return std::make_unique<Door>(task, std::move(*carrier), std::move(*requests));
}

}  // namespace

Result<DoorAddress> start_door(const fabric::FabricArena& arena, const std::string& programs,
                               const std::vector<std::pair<std::string, std::string>>& settings) {
  DoorAddress address;
  address.host = host_identity();
  address.frame = arena.sizes().slot_bytes + static_cast<std::uint32_t>(kBesides);
  for (std::uint32_t p = 0; p < arena.sizes().processes; ++p) address.nodes.push_back(arena.node_of_rank(p));
  for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
  const std::string path = fmt::format("{}/{}", programs, kProgram);
  if (access(path.c_str(), X_OK) != 0) return fail_errno(fmt::format("starting {}", path));
  auto output = start(path, {kProgram, "door", fabric::encode(arena.address()), fmt::format("{}", address.frame),
                             fmt::format("{}", getpid()), fmt::format("{}", start_time(getpid()))});
  if (!output) return fail(output.error());
  std::string text;
  while (read_more(*output, text)) {
  }
  auto card = card_in(text, path);
  if (!card) return fail(std::move(card.error()).within("a way for processes of other hosts"));
  address.card = std::move(*card);
  return address;
}

int serve_door(const DoorTask& task) {
  prctl(PR_SET_NAME, "ulfm-door");
  std::string card;
  auto door = make(task, card);
  answer_starter(door ? fmt::format("+{}", card) : fmt::format("-{}", door.error().what));
  if (!door) return 1;
  (*door)->serve();
  return 0;
}

}  // namespace ulfm::proxy
