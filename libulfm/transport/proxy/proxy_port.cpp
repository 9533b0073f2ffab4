#include "transport/proxy/proxy_port.hpp"

#include <algorithm>
#include <utility>

#include "base/own_thread.hpp"

namespace ulfm::proxy {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kLookAfter{100};                               // dead senders, an interconnect that is broken
constexpr microseconds kFirstReaderNap{200}, kMostReaderNap{10'000};  // while its process takes nothing

}  // namespace

Result<std::unique_ptr<ProxyPort>> ProxyPort::begin(std::uint16_t number, std::unique_ptr<Inlet> inlet,
                                                    std::unique_ptr<Outlet> down, const WaitPolicy& policy) {
  std::unique_ptr<ProxyPort> port(new ProxyPort(number, std::move(inlet), std::move(down), policy));
  auto started = start_own_thread("of a port", [p = port.get()] { p->serve(); });
  if (!started) return fail(started.error());
  port->thread_ = std::move(*started);
  return port;
}

ProxyPort::ProxyPort(std::uint16_t number, std::unique_ptr<Inlet> inlet, std::unique_ptr<Outlet> down,
                     const WaitPolicy& policy)
    : number_(number), inlet_(std::move(inlet)), down_(std::move(down)), policy_(policy) {
  if (!policy_.has_own_core()) inlet_->wake_source().expect_many_sleeps();
}

ProxyPort::~ProxyPort() {
  stop_.store(true);
  inlet_->wake_source().ring();
  if (thread_.joinable()) thread_.join();
  if (has_frame_) inlet_->release(frame_);
  (void)down_->bye();
}

void ProxyPort::serve() {
  Waiter waiter(policy_);
  while (!stop_.load()) {
    if (step()) {
      waiter.reset();
    } else if (blocked_ || waiter.step()) {
      look_after();
      rest();
    }
  }
}

// Takes the next frame, or goes on with the one that found no room.
bool ProxyPort::step() {
  std::lock_guard lock(lock_);
  if (!has_frame_) has_frame_ = inlet_->next(frame_);
  if (!has_frame_) return false;
  ProxyHead head{ProxyCall::arrived,  static_cast<std::uint8_t>(frame_.kind), number_, frame_.origin, 0,
                 frame_.header_length};
  const iovec pieces[] = {{const_cast<std::byte*>(frame_.header), frame_.header_length},
                          {const_cast<std::byte*>(frame_.data), frame_.length}};
  Gather data(std::span(pieces, 2));
  blocked_ = (frame_.fresh && !send_origin(frame_.origin)) ||
             !down_->push(Kind::first, bytes_of(head), data, std::size_t{frame_.header_length} + frame_.length);
  if (blocked_) return false;
  sent_.fetch_add(1, std::memory_order_release);
  inlet_->release(frame_);
  has_frame_ = false;
  nap_ = kFirstReaderNap;
  return true;
}

// Who it is comes before its first frame.
bool ProxyPort::send_origin(std::uint32_t index) {
  const OriginInfo info = inlet_->origin(index);
  const ProxyOrigin origin{info.port, static_cast<std::uint16_t>(info.card.size()), info.process.number};
  Bytes body;
  append(body, bytes_of(origin));
  append(body, bytes_of(info.card));
  append(body, info.hello);
  ProxyHead head{ProxyCall::origin};
  head.id = index;
  if (!say(*down_, head, body)) return false;
  frame_.fresh = false;
  return true;
}

void ProxyPort::look_after() {
  if (Clock::now() < look_after_at_) return;
  look_after_at_ = Clock::now() + kLookAfter;
  std::lock_guard lock(lock_);
  if (has_frame_) return;                              // what has arrived is reported first
  (void)notify(ProxyCall::dead, inlet_->find_dead());  // it is found again until the process drops it
  if (broken_ < 0) broken_ = inlet_->take_broken();
  if (notify(ProxyCall::broken, broken_)) broken_ = -1;
  if (const std::string why = inlet_->why_broken(); !why.empty() && over_.empty())
    if (say(*down_, {ProxyCall::over}, bytes_of(why))) over_ = why;
}

// False when there is no room to say it now.
bool ProxyPort::notify(ProxyCall what, std::int64_t origin) {
  ProxyHead head{what};
  head.id = static_cast<std::uint32_t>(origin);
  if (origin < 0 || notified_.count(head.id) != 0) return true;
  if (!say(*down_, head, {})) return false;
  notified_.insert(head.id);
  return true;
}

void ProxyPort::rest() {
  WakeSource& source = inlet_->wake_source();
  std::chrono::nanoseconds limit = std::min<std::chrono::nanoseconds>(policy_.park_limit, kLookAfter);
  bool something = false;
  {
    std::lock_guard lock(lock_);
    source.arm();
    if (blocked_) {
      limit = nap_ = std::clamp(nap_ * 2, kFirstReaderNap, kMostReaderNap);
    } else {
      something = inlet_->has_frame();
      limit = std::min(limit, inlet_->next_deadline());
    }
  }
  if (!something && !stop_.load() && limit.count() > 0) (void)source.sleep(limit);
  source.cancel();
}

void ProxyPort::drop_origin(std::uint32_t index) {
  std::lock_guard lock(lock_);
  inlet_->drop_origin(index);
  notified_.erase(index);
}

bool ProxyPort::is_busy() {
  std::lock_guard lock(lock_);
  return has_frame_ || inlet_->has_frame();
}

}  // namespace ulfm::proxy
