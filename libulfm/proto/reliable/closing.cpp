// The end of a port: it goes when everything it sent has been acknowledged and nobody needs its answers.
#include <algorithm>
#include <cstdio>

#include "base/virtual_time.hpp"
#include "base/wait.hpp"
#include "proto/reliable/port.hpp"

namespace ulfm::reliable {

bool ReliablePort::all_settled() const noexcept {
  return std::all_of(senders_.begin(), senders_.end(), [](const auto& s) {
    return s.second->settled() && (!s.second->bye_pending || s.second->said_bye);
  });
}

// A sender may still wait for our last acknowledgement, as long as its transport has not said goodbye.
bool ReliablePort::answers_awaited() const noexcept {
  return std::any_of(incoming_.begin(), incoming_.end(), [](const auto& i) { return i && i->has_stream; });
}

void ReliablePort::rest(nanoseconds until) {
  VirtualTime* time = VirtualTime::of_process();
  if (time == nullptr) return yield_now();
  const nanoseconds left = until - settings().clock->now();
  const auto moment = time->now() + static_cast<std::uint64_t>(std::max<std::int64_t>(left.count(), 1)) * 1000;
  (void)time->wait(until == kForever ? kNoMoment : moment, VirtualTime::Patience::only_arrivals);
}

void ReliablePort::close() {
  Clock& clock = *settings().clock;
  {
    std::lock_guard lock(lock_);
    closing_ = true;
    Frame frame;
    heard_at_ = clock.now();
    for (const auto& incoming : incoming_)
      if (incoming) incoming->stopped = true;
    for (; !ready_.empty(); give_back(frame)) {
      frame = ready_.pop();
      --incoming_[frame.origin]->queued;
    }
  }
  // Each sender gives up by itself, so this ends. It yields: what it waits for are acknowledgements, which come at once
  // or not before something is sent again, and those above who would sleep have gone.
  for (;;) {
    std::lock_guard lock(lock_);
    absorb();
    flush_acks();
    const nanoseconds now = clock.now();
    service(now);
    if (all_settled() && (!answers_awaited() || now - heard_at_ >= settings().part_quiet)) break;
    rest(answers_awaited() ? std::min(deadline_, heard_at_ + settings().part_quiet) : deadline_);
  }
  std::lock_guard lock(lock_);
  // No layer above is left to notify.
  for (const std::string& sentence : given_up_) std::fprintf(stderr, "ulfm: %s\n", sentence.c_str());
  for (auto& [key, peer] : peers_)
    if (peer->back) (void)peer->back->bye();
  for (const auto& incoming : incoming_)
    if (incoming) incoming->release_all([this](const Frame& frame) { give_back(frame); });
  incoming_.clear();
  for (auto& [key, peer] : peers_) {
    peer->incoming.clear();
    peer->back.reset();
  }
  inlet_.reset();
}

}  // namespace ulfm::reliable
