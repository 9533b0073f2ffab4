#include "transport/proxy/proxy.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <deque>
#include <map>

#include <fmt/core.h>

#include "fabric/engine/engine.hpp"
#include "job/daemon.hpp"
#include "job/liveness.hpp"
#include "transport/emulated/transport.hpp"
#include "transport/hosts/silence.hpp"
#include "transport/proxy/proxy_port.hpp"
#include "transport/tcp/tcp.hpp"

namespace ulfm::proxy {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFirstWordIn{60};  // of the process, after which nobody is meant to come
constexpr milliseconds kSleep{50};
constexpr microseconds kFirstRoomNap{200}, kMostRoomNap{5000};  // while the interconnect has no room
constexpr std::size_t kAnswerPiece = 16 * 1024;
constexpr int kBurst = 64;  // requests between two looks at what waits for room

// A proxy has no core to itself: it works for a process that is elsewhere. What it waits for wakes it.
WaitPolicy waits_of_proxy() {
  WaitPolicy policy;
  policy.spins = 2;
  policy.pauses = 0;
  policy.yield_for = std::chrono::nanoseconds(0);
  return policy;
}

/// A virtual connection of the process, and what waits for room there.
struct Sent {
  explicit Sent(std::unique_ptr<Outlet> made) : outlet(std::move(made)) {}
  struct Waiting {
    ProxyHead head;
    Bytes body;
  };
  std::unique_ptr<Outlet> outlet;
  std::deque<Waiting> waiting;
  std::uint32_t owed = 0;  // credits
  bool ending = false;     // nothing more will come
  bool notified = false;   // that the port there is closed
};

class Proxy {
 public:
  Proxy(std::unique_ptr<Transport> place, std::unique_ptr<Transport> carrier, std::unique_ptr<Inlet> requests,
        const ProxyPlace& facts, const ProxyTask& task)
      : place_(std::move(place)),
        carrier_(std::move(carrier)),
        requests_(std::move(requests)),
        facts_(facts),
        task_(task),
        policy_(waits_of_proxy()) {}

  int serve() {
    Waiter waiter(policy_);
    while (!is_over()) {
      if (step()) waiter.reset();
      else if (waiter.step()) rest();
    }
    return finish();
  }

 private:
  bool step() {
    bool any = false;
    Frame frame;
    for (int i = 0; i < kBurst && requests_->next(frame); ++i, any = true) {
      ProxyHead head;
      std::span<const std::byte> body;
      if (read(frame, head, body)) take_in(frame, head, body);
      requests_->release(frame);
    }
    for (auto it = sent_.begin(); it != sent_.end();) {
      any = go_on(it->first, it->second) || any;
      const bool over = it->second.ending && it->second.waiting.empty();
      it = over ? sent_.erase(it) : std::next(it);
    }
    while (!answers_.empty() && down_ && say(*down_, answers_.front().head, answers_.front().body)) {
      answers_.pop_front();
      any = true;
    }
    if (any) nap_ = kFirstRoomNap;
    return any;
  }

  // The process has left, and all it sent has gone.
  bool is_over() {
    if (leaving_) {
      bool waits = false;
      for (const auto& [number, one] : sent_) waits = waits || !one.waiting.empty();
      return !waits || Clock::now() > leaving_until_;
    }
    // One that failed before its first word does not come any more.
    if (!down_ && (!ulfm::is_alive(task_.job, task_.job_started) || Clock::now() > began_ + kFirstWordIn)) _exit(1);
    return false;
  }

  int finish() {
    ports_ = {};
    sent_.clear();
    place_.reset();
    answer(leave_, {}, {});
    for (const auto until = Clock::now() + hosts::kDrainFor; !answers_.empty() && Clock::now() < until;)
      if (!step()) rest();
    return 0;
  }

  // When the process has died, this one ends as it is: those on the interconnect see that nobody said good-bye.
  void rest() {
    bool blocked = !answers_.empty();
    for (auto& [number, one] : sent_) {
      blocked = blocked || !one.waiting.empty();
      notify_closed(number, one);
    }
    WakeSource& source = requests_->wake_source();
    source.arm();
    if (!requests_->has_frame()) {
      if (blocked) nap_ = std::clamp(nap_ * 2, kFirstRoomNap, kMostRoomNap);
      (void)source.sleep(blocked ? std::chrono::nanoseconds(nap_) : std::chrono::nanoseconds(kSleep));
    }
    source.cancel();
    if (requests_->find_dead() >= 0) _exit(1);
  }

  // ---- what the process wants ----

  void take_in(const Frame& frame, const ProxyHead& head, std::span<const std::byte> body) {
    if (!down_) {
      process_card_ = requests_->origin(frame.origin).card;
      auto down = carrier_->connect(process_card_, kReplies, kRequests, {}, counters_);
      if (!down) _exit(1);
      down_ = std::move(*down);
    }
    switch (head.what) {
      case ProxyCall::join: return answer(head, {}, joined());
      case ProxyCall::open: return open(head);
      case ProxyCall::close: ports_[head.port % ports_.size()].reset(); return answer(head, {}, {});
      case ProxyCall::connect: return connect(head, body);
      case ProxyCall::listening: return listening(head);
      case ProxyCall::card_of: return answer(head, {}, as_bytes(place_->card_of(text_of(body), head.number)));
      case ProxyCall::statistics: return answer(head, {}, as_bytes(place_->shared_statistics()));
      case ProxyCall::leave:
        leave_ = head;
        leaving_ = true;
        leaving_until_ = Clock::now() + hosts::kDrainFor;
        return;
      case ProxyCall::introduce: return introduce(head, body);
      case ProxyCall::frame: return queue(head, body);
      case ProxyCall::end:
        if (const auto found = sent_.find(head.id); found != sent_.end()) found->second.ending = true;
        return;
      case ProxyCall::drop:
        if (head.port < ports_.size() && ports_[head.port]) ports_[head.port]->drop_origin(head.id);
        return;
      default: return;
    }
  }

  static Bytes as_bytes(const std::string& text) {
    const auto bytes = bytes_of(text);
    return {bytes.begin(), bytes.end()};
  }

  Bytes joined() const {
    Bytes body;
    append(body, bytes_of(facts_));
    append(body, bytes_of(place_->card()));
    return body;
  }

  // In pieces, the last of which says so.
  void answer(const ProxyHead& question, const Error& error, Bytes body) {
    if (error.code != Errc::ok) body = as_bytes(error.what);
    std::span<const std::byte> rest = body;
    do {
      const std::size_t length = std::min(rest.size(), kAnswerPiece);
      ProxyHead head{ProxyCall::answer};
      head.id = question.id;
      head.number = number_of(error.code);
      head.port = length < rest.size() ? 1 : 0;
      answers_.push_back({head, Bytes(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length))});
      rest = rest.subspan(length);
    } while (!rest.empty());
  }

  void open(const ProxyHead& head) {
    auto inlet = place_->open(head.port, {});
    if (!inlet) return answer(head, inlet.error(), {});
    auto down = carrier_->connect(process_card_, head.port, kRequests, {}, counters_);
    if (!down) return answer(head, down.error(), {});
    auto port = ProxyPort::begin(head.port, std::move(*inlet), std::move(*down), policy_);
    if (!port) return answer(head, port.error(), {});
    ports_[head.port] = std::move(*port);
    answer(head, {}, {});
  }

  void connect(const ProxyHead& head, std::span<const std::byte> body) {
    ProxyDestination to{};
    std::string card;
    if (!take(body, to) || !take(body, to.card, card)) return answer(head, {Errc::protocol, "half a question"}, {});
    auto outlet = place_->connect(card, to.port, head.port, body, counters_);
    if (!outlet) return answer(head, outlet.error(), {});
    const std::int32_t pid = (*outlet)->peer().number;
    sent_.insert_or_assign(head.number, Sent(std::move(*outlet)));
    const auto bytes = bytes_of(pid);
    answer(head, {}, {bytes.begin(), bytes.end()});
  }

  // What has come from there is still to be had, as long as it has not been sent on.
  void listening(const ProxyHead& head) {
    const auto found = sent_.find(head.number);
    bool listens = found != sent_.end() && found->second.outlet->peer_listening();
    Bytes body{std::byte{0}};
    for (const auto& port : ports_) {
      if (!port) continue;
      listens = listens || port->is_busy();
      append(body, bytes_of(port->count()));
    }
    if (listens) body.front() = std::byte{1};
    answer(head, {}, std::move(body));
  }

  void introduce(const ProxyHead& head, std::span<const std::byte> body) {
    std::string card;
    if (take(body, head.port, card)) place_->introduce(text_of(body), head.number, card);
  }

  // ---- what it sends ----

  void queue(const ProxyHead& head, std::span<const std::byte> body) {
    const auto found = sent_.find(head.id);
    // A slot of the arena has no more room, and what lies behind it is somebody else's.
    if (found == sent_.end() || head.header > body.size() || head.header > 255 ||
        body.size() > found->second.outlet->max_frame(0))
      return;
    Sent& to = found->second;
    if (to.waiting.empty() && push(to, head, body)) return pay(head.id, to);
    to.waiting.push_back({head, Bytes(body.begin(), body.end())});
  }

  static bool push(Sent& to, const ProxyHead& head, std::span<const std::byte> body) {
    if (Kind{head.kind} == Kind::bye) return to.outlet->bye();
    const auto rest = body.subspan(head.header);
    const iovec piece{const_cast<std::byte*>(rest.data()), rest.size()};
    Gather data(std::span(&piece, 1));
    return to.outlet->push(Kind{head.kind}, body.first(head.header), data, rest.size());
  }

  bool go_on(std::uint32_t number, Sent& to) {
    bool any = false;
    while (!to.waiting.empty() && push(to, to.waiting.front().head, to.waiting.front().body)) {
      to.waiting.pop_front();
      pay(number, to);
      any = true;
    }
    // Nobody will ever take it, and nobody misses it.
    if (!to.waiting.empty() && to.ending && !to.outlet->peer_listening()) to.waiting.clear();
    return any;
  }

  // In heaps: the process has others meanwhile.
  void pay(std::uint32_t number, Sent& to) {
    notify_closed(number, to);
    if (++to.owed < kCredits / 2) return;
    ProxyHead head{ProxyCall::credit};
    head.id = number;
    head.number = std::exchange(to.owed, 0);
    answers_.push_back({head, {}});
  }

  void notify_closed(std::uint32_t number, Sent& to) {
    if (to.notified || !to.outlet->port_closed()) return;
    to.notified = true;
    ProxyHead head{ProxyCall::closed};
    head.id = number;
    head.number = to.outlet->cut_off() ? 1 : 0;
    answers_.push_back({head, {}});
  }

  PortCounters counters_;  // the process has its own
  std::unique_ptr<Transport> place_, carrier_;
  std::unique_ptr<Inlet> requests_;
  std::unique_ptr<Outlet> down_;
  ProxyPlace facts_;
  const ProxyTask& task_;
  WaitPolicy policy_;
  std::string process_card_;
  std::array<std::unique_ptr<ProxyPort>, kPortsPerProcess> ports_;
  std::map<std::uint32_t, Sent> sent_;
  std::deque<Sent::Waiting> answers_;
  microseconds nap_ = kFirstRoomNap;
  bool leaving_ = false;
  ProxyHead leave_;
  Clock::time_point began_ = Clock::now(), leaving_until_{};
};

Result<std::unique_ptr<Proxy>> make(const ProxyTask& task, std::string& card) {
  auto config = Config::load();
  if (!config) return fail(config.error());
  auto carrier = make_carrier(*config, task.frame);
  if (!carrier) return fail(carrier.error());
  auto requests = (*carrier)->open(kRequests, {});
  if (!requests) return fail(requests.error());
  auto engine = fabric::FabricEngine::join_as(fabric::FabricArena::attach(task.arena), task.rank);
  if (!engine) return fail(engine.error());
  ProxyPlace facts{};
  std::snprintf(facts.model, sizeof facts.model, "%s", (*engine)->arena().header().model);
  facts.slot_bytes = (*engine)->arena().sizes().slot_bytes;
  facts.multicast = (*engine)->model().multicast() != nullptr ? 1 : 0;
  facts.pid = getpid();
  card = (*carrier)->card();
  return std::make_unique<Proxy>(emulated::on(std::move(*engine)), std::move(*carrier), std::move(*requests), facts,
                                 task);
}

}  // namespace

int serve_proxy(const ProxyTask& task) {
  prctl(PR_SET_NAME, "ulfm-proxy");
  std::string card;
  auto proxy = make(task, card);
  answer_starter(proxy ? fmt::format("+{}", card) : fmt::format("-{}", proxy.error().what));
  return proxy ? (*proxy)->serve() : 1;
}

}  // namespace ulfm::proxy
