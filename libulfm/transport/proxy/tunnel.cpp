#include "transport/proxy/tunnel.hpp"

#include <unistd.h>

#include <algorithm>

#include <fmt/core.h>

#include "transport/tcp/tcp.hpp"

namespace ulfm::proxy {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kNap{50};
constexpr std::chrono::seconds kProxyIn{30};  // that the door starts, on a loaded host
constexpr std::size_t kMostHead = 255;        // bytes of a frame's header

}  // namespace

Result<std::unique_ptr<Tunnel>> Tunnel::create(const Config& config, const DoorAddress& door, std::uint32_t rank) {
  std::unique_ptr<Tunnel> tunnel(new Tunnel);
  auto carrier = make_carrier(config, door.frame);
  if (!carrier) return fail(carrier.error());
  tunnel->carrier_ = std::move(*carrier);
  tunnel->stall_seconds_ = config.number("STALL_REPORT");
  tunnel->rank_ = rank;
  auto replies = tunnel->carrier_->open(kReplies, {});
  if (!replies) return fail(replies.error());
  tunnel->replies_ = std::move(*replies);
  auto card = tunnel->ask_door(door, rank);
  if (!card) return fail(std::move(card.error()).within("the host of this job's interconnect"));
  auto up = tunnel->carrier_->connect(*card, kRequests, kReplies, {}, tunnel->counters_);
  if (!up) return fail(std::move(up.error()).within("the proxy of this process"));
  tunnel->up_ = std::move(*up);
  if (auto ok = tunnel->join(); !ok) return fail(ok.error());
  return tunnel;
}

// The door starts a proxy, and says where that is.
Result<std::string> Tunnel::ask_door(const DoorAddress& door, std::uint32_t rank) {
  auto out = carrier_->connect(door.card, kRequests, kReplies, {}, counters_);
  if (!out) return fail(out.error());
  ProxyHead head{ProxyCall::ask};
  head.number = rank;
  const auto until = Clock::now() + kProxyIn;
  for (bool said = false; Clock::now() < until && (*out)->peer_listening();) {
    said = said || say(**out, head, {});
    look();
    if (!answer_.whole) {
      sleep(kNap);
      continue;
    }
    (void)(*out)->bye();
    if (answer_.number != 0) return fail(error_of(answer_.number), text_of(answer_.body));
    return text_of(answer_.body);
  }
  if (!(*out)->peer_listening())
    return fail(Errc::peer_failed, fmt::format("{}, which starts proxies, has ended", (*out)->peer().text()));
  return fail(Errc::unavailable, fmt::format("no proxy has been started in {} s", kProxyIn.count()));
}

Result<void> Tunnel::join() {
  auto answer = call({ProxyCall::join}, {});
  if (!answer) return fail(answer.error());
  std::span<const std::byte> rest = *answer;
  if (!take(rest, place_) || place_.slot_bytes == 0) return fail(Errc::protocol, "the proxy's answer makes no sense");
  place_.model[sizeof place_.model - 1] = 0;
  card_ = text_of(rest);
  return {};
}

std::string Tunnel::why_gone() const {
  return fmt::format("the proxy of this process on the interconnect's host ({}) has ended, or its host does not answer",
                     up_->peer().text());
}

// ---- asking ---------------------------------------------------------------------------------------------------------

// Not in the job's table, which only ranks of ulfmrun's host have: a proxy is of a rank elsewhere.
void Tunnel::report_stall(StallWatch& watch, StallWatch::Clock::time_point since) const {
  const auto now = StallWatch::Clock::now();
  if (!watch.due(since, now)) return;
  write_stall_report(
      fmt::format("ulfm: stall rank {} (process {}): waits since {} for its proxy on the interconnect's "
                  "host ({}), which exists and does not answer\n",
                  rank_, getpid(), stall_time(now - since), up_->peer().text()));
}

Result<Bytes> Tunnel::call(ProxyHead question, std::span<const std::byte> body) {
  std::lock_guard one_at_a_time(call_lock_);
  StallWatch watch(stall_seconds_);
  const auto since = StallWatch::Clock::now();
  {
    std::lock_guard lock(down_lock_);
    question.id = ++questions_;
    answer_ = {question.id, 0, {}, false};
  }
  for (bool said = false;;) {
    if (!said) {
      std::lock_guard lock(up_lock_);
      said = say(*up_, question, body);
    }
    look();
    {
      std::lock_guard lock(down_lock_);
      if (answer_.whole) {
        if (answer_.number != 0) return fail(error_of(answer_.number), text_of(answer_.body));
        return std::move(answer_.body);
      }
    }
    if (!is_alive()) return fail(Errc::peer_failed, why_gone());
    report_stall(watch, since);
    sleep(said ? kNap : milliseconds(1));
  }
}

void Tunnel::notify(const ProxyHead& head, std::span<const std::byte> body) {
  StallWatch watch(stall_seconds_);
  for (const auto since = StallWatch::Clock::now();;) {
    {
      std::lock_guard lock(up_lock_);
      if (say(*up_, head, body)) return;
    }
    if (!is_alive()) return;
    report_stall(watch, since);
    look();
    sleep(milliseconds(1));
  }
}

// A header that does not fit behind ours goes in front of the data, where it is read just the same.
bool Tunnel::push(const ProxyHead& head, std::span<const std::byte> header, Gather& data, std::size_t length) {
  std::byte both[kMostHead];
  std::memcpy(both, &head, sizeof head);
  if (sizeof head + header.size() <= sizeof both) {
    copy_bytes(both + sizeof head, header.data(), header.size());
    std::lock_guard lock(up_lock_);
    return up_->push(Kind::first, {both, sizeof head + header.size()}, data, length);
  }
  Bytes whole(header.begin(), header.end());
  whole.resize(header.size() + length);
  Gather rest = data;  // moved on only when the frame goes
  rest.copy(whole.data() + header.size(), length);
  {
    std::lock_guard lock(up_lock_);
    if (!say(*up_, head, whole)) return false;
  }
  data = rest;
  return true;
}

void Tunnel::sleep(milliseconds limit) {
  bool something = false;
  {
    std::lock_guard lock(down_lock_);
    replies_->wake_source().arm();
    something = replies_->has_frame();
  }
  if (!something) (void)replies_->wake_source().sleep(limit);
  replies_->wake_source().cancel();
}

// ---- what comes -----------------------------------------------------------------------------------------------------

void Tunnel::look() {
  std::lock_guard lock(down_lock_);
  replies_->wake_source().cancel();  // what was rung is seen now, and would end all sleeps at other ports
  for (Frame frame; replies_->next(frame);) {
    ProxyHead head;
    std::span<const std::byte> body;
    if (read(frame, head, body)) take_in(head, body);
    const bool bye = frame.kind == Kind::bye;
    replies_->release(frame);
    if (bye) replies_->drop_origin(frame.origin);
  }
}

void Tunnel::take_in(const ProxyHead& head, std::span<const std::byte> body) {
  if (head.what == ProxyCall::answer || head.what == ProxyCall::proxy) {
    if (head.id != answer_.id || answer_.whole) return;
    answer_.number = head.number;
    append(answer_.body, body);
    answer_.whole = head.port == 0;
    return;
  }
  const auto found = sendings_.find(head.id);
  if (found == sendings_.end()) return;
  Sending& sending = *found->second;
  if (head.what == ProxyCall::credit) sending.credits.fetch_add(head.number, std::memory_order_relaxed);
  if (head.what != ProxyCall::closed) return;
  sending.cut_off.store(head.number != 0, std::memory_order_relaxed);
  sending.closed.store(true, std::memory_order_relaxed);
}

std::uint32_t Tunnel::add(const std::shared_ptr<Sending>& sending) {
  std::lock_guard lock(down_lock_);
  sendings_.emplace(next_, sending);
  return next_++;
}

void Tunnel::remove(std::uint32_t number) {
  std::lock_guard lock(down_lock_);
  sendings_.erase(number);
}

}  // namespace ulfm::proxy
