// What is to be done later: frames sent again, acknowledgements that have waited, connections that nobody uses.
#include <algorithm>

#include "proto/reliable/port.hpp"

namespace ulfm::reliable {

// A turn in which nothing came.
void ReliablePort::idle() {
  since_idle_ = 0;
  if (!unsettled_ && deadline_ == kForever) return;
  const nanoseconds now = looked_at_ = settings().clock->now();
  if (unsettled_ || now >= deadline_) service(now);
}

nanoseconds ReliablePort::next_deadline() {
  std::lock_guard lock(lock_);
  flush_acks();
  const nanoseconds now = looked_at_ = settings().clock->now();
  service(now);
  const nanoseconds own = deadline_ == kForever ? kForever : std::max(deadline_ - now, nanoseconds(0));
  return std::min(own, inlet_->next_deadline());
}

void ReliablePort::service(nanoseconds now) {
  unsettled_ = false;
  const nanoseconds senders = service_senders(now);
  deadline_ = std::min(senders, service_incoming(now));
}

nanoseconds ReliablePort::service_senders(nanoseconds now) {
  nanoseconds deadline = kForever;
  for (auto it = senders_.begin(); it != senders_.end();) {
    Sender& sender = *it->second;
    deadline = std::min(deadline, sender.service(now));
    if (sender.state() == Sender::State::given_up)
      if (std::string sentence = sender.take_sentence(); !sentence.empty()) given_up_.push_back(std::move(sentence));
    ++it;
    if (!sender.orphan || !sender.settled()) continue;
    if (finish(sender)) drop_sender(sender.stream());
    else deadline = std::min(deadline, now + kTryAgain);
  }
  return deadline;
}

// A settled connection that nobody uses any more: says what is left to say. True when that is done.
bool ReliablePort::finish(Sender& sender) {
  if (sender.state() != Sender::State::open) return true;
  if (sender.bye_pending && !sender.said_bye) {
    Gather none;
    sender.said_bye = sender.push(Payload::bye, {}, none, 0);
    unsettled_ |= sender.said_bye;
    return false;
  }
  return !sender.said_bye || sender.under().bye() || sender.under().port_closed();
}

nanoseconds ReliablePort::service_incoming(nanoseconds now) {
  nanoseconds deadline = kForever;
  for (std::uint32_t i = 0; i < incoming_.size(); ++i) {
    if (!incoming_[i]) continue;
    Incoming& incoming = *incoming_[i];
    if (now < incoming.peer.no_way_until) {
      if (incoming.ack_pending()) deadline = std::min(deadline, incoming.peer.no_way_until);
    } else if (incoming.ack_pending()) {
      if (incoming.ack_at.count() == 0) incoming.ack_at = now + settings().ack_delay;
      if (incoming.ack_now || now >= incoming.ack_at) acknowledge(incoming);
      if (incoming.ack_pending())
        deadline = std::min(deadline, std::max(incoming.ack_at, incoming.ack_now ? now + kTryAgain : now));
    }
    if (!incoming.forgotten) continue;
    if (incoming.forgotten_at.count() == 0) incoming.forgotten_at = now + settings().give_up;
    if (now >= incoming.forgotten_at) abandon(i);
    else deadline = std::min(deadline, incoming.forgotten_at);
  }
  return deadline;
}

void ReliablePort::keepalive() {
  const std::uint32_t polls = polls_.load(std::memory_order_relaxed);
  if (std::exchange(polls_seen_, polls) != polls) return;
  std::lock_guard lock(lock_);
  absorb();
  if (!ready_.empty() || !given_up_.empty()) inlet_->wake_source().ring();
}

}  // namespace ulfm::reliable
