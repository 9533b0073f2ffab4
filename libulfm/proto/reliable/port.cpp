#include "proto/reliable/port.hpp"

#include <algorithm>
#include <cstdio>

#include "base/virtual_time.hpp"
#include "base/wait.hpp"

namespace ulfm::reliable {
namespace {
constexpr std::uint32_t kTimersEvery = 64;  // frames taken in without an idle turn, and the time is looked at anyway
constexpr std::uint32_t kMostKeptInPlace = 4;
constexpr nanoseconds kTryAgain = 100us;  // what found no room
}  // namespace

// ---- a peer ---------------------------------------------------------------------------------------------------------

bool Peer::due(Ack& ack) {
  for (const Incoming* in : incoming)
    if (in->ack_pending()) {
      ack = port_.ack_of(*in);
      return true;
    }
  return false;
}

void Peer::gone(const Ack& ack) {
  for (Incoming* in : incoming)
    if (in->has_stream && in->stream == ack.stream) in->acknowledged(ack);
}

// ---- a port ---------------------------------------------------------------------------------------------------------

ReliablePort::ReliablePort(std::shared_ptr<Common> common, std::uint16_t number, std::unique_ptr<Inlet> inlet)
    : common_(std::move(common)), number_(number), inlet_(std::move(inlet)) {}

Peer& ReliablePort::peer(std::string_view card, std::uint16_t number) {
  auto& slot = peers_[{std::string(card), number}];
  if (!slot) slot = std::make_unique<Peer>(*this, card, number);
  return *slot;
}

void ReliablePort::drop_peer_if_idle(Peer& peer) {
  if (!peer.senders.empty() || !peer.incoming.empty()) return;
  if (peer.back) (void)peer.back->bye();
  peers_.erase({peer.card, peer.number});
}

// ---- receiving ------------------------------------------------------------------------------------------------------

bool ReliablePort::next(Frame& frame) {
  std::lock_guard lock(lock_);
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  while (ready_.empty())
    if (!take_frame()) {
      idle();
      if (ready_.empty()) return false;
    }
  hand_out(frame);
  return true;
}

// Takes one frame from the transport; false when there is none.
bool ReliablePort::take_frame() {
  Frame frame;
  if (!inlet_->next(frame)) return false;
  take_in(frame);
  if (++since_idle_ >= kTimersEvery) idle();
  return true;
}

// Takes everything. A transport may look in a part of its places at a time, so one miss does not say that all are
// empty.
void ReliablePort::absorb() {
  for (int misses = 0; misses < 2;) misses = take_frame() ? 0 : misses + 1;
  idle();
}

// What the frame is: damaged, an acknowledgement, a frame for those above, or a goodbye. It is released unless it goes
// up or has to wait.
void ReliablePort::take_in(const Frame& frame) {
  if (frame.fresh && frame.origin < incoming_.size() && incoming_[frame.origin]) drop_incoming(frame.origin);
  Incoming* incoming = frame.origin < incoming_.size() ? incoming_[frame.origin].get() : nullptr;
  if (incoming == nullptr) incoming = on_connect(frame.origin);
  if (closing_) heard_at_ = settings().clock->now();
  if (frame.kind == Kind::bye) {
    inlet_->release(frame);
    if (incoming == nullptr) return;
    incoming->parted = true;
    if (incoming->forgotten || !incoming->has_stream) abandon(frame.origin);
    return;
  }
  WireHeader wire;
  if (incoming == nullptr || !decode(frame, wire)) {
    inlet_->release(frame);
    count(counters().corrupted);
    return;
  }
  if (wire.has_ack)
    if (const auto sender = senders_.find(wire.ack.stream); sender != senders_.end())
      unsettled_ |= sender->second->take(wire.ack);
  if (wire.payload == Payload::none) {
    inlet_->release(frame);
    if (wire.probe && incoming->has_stream && incoming->stream == wire.stream) incoming->ack_now = true;
  } else {
    take_payload(frame, wire, *incoming);
  }
  if (incoming->ack_now) acknowledge(*incoming);
}

Incoming* ReliablePort::on_connect(std::uint32_t origin) {
  const OriginInfo info = inlet_->origin(origin);
  // One without a port could never be answered; such a sender does not speak this protocol.
  if (!info.process || info.port == kNoPort) return nullptr;
  if (origin >= incoming_.size()) incoming_.resize(origin + 1);
  Peer& from = peer(info.card, info.port);
  incoming_[origin] = std::make_unique<Incoming>(from);
  from.incoming.push_back(incoming_[origin].get());
  from.unreachable = false;
  return incoming_[origin].get();
}

void ReliablePort::take_payload(const Frame& whole, const WireHeader& wire, Incoming& incoming) {
  if (!incoming.has_stream) {
    incoming.has_stream = true;
    incoming.stream = wire.stream;
    share_out();
  }
  if (incoming.stream != wire.stream) return inlet_->release(whole);
  Frame frame = whole;
  const std::size_t own = wire.size();
  if (wire.header_in_data) {
    frame.header = frame.data;
    frame.data += wire.header;
    frame.length -= wire.header;
  } else {
    frame.header += own;
  }
  frame.header_length = wire.header;
  frame.kind = wire.payload == Payload::bye ? Kind::bye : wire.payload == Payload::more ? Kind::more : Kind::first;
  unsettled_ = true;
  ++incoming.unacked;
  switch (incoming.classify(wire, frame)) {
    case Verdict::deliver:
      deliver(frame, incoming);
      if (wire.probe || wire.payload == Payload::bye || incoming.unacked >= settings().ack_every ||
          incoming.runs_short(share_))
        incoming.ack_now = true;
      return;
    case Verdict::keep:
      incoming.ack_now = true;  // the sender learns of the gap
      return keep(frame, wire, incoming);
    case Verdict::duplicate:
      incoming.ack_now = true;  // our answer was lost, perhaps
      count(counters().duplicates);
      return inlet_->release(whole);
    case Verdict::drop: return inlet_->release(whole);
  }
}

void ReliablePort::keep(Frame frame, const WireHeader& wire, Incoming& incoming) {
  // Where it is, if it may stay there: the frame it waits for needs room in the transport too.
  if (frame.shared_room || incoming.kept_in_place >= kMostKeptInPlace) {
    const Frame original = frame;
    const bool copied = pool_.copy(frame);
    inlet_->release(original);
    if (!copied) return;  // without memory it comes again
  } else {
    ++incoming.kept_in_place;
  }
  incoming.keep(wire.number, frame);
  count(counters().kept);
}

// The frame and those kept behind it go up.
void ReliablePort::deliver(const Frame& first, Incoming& incoming) {
  Frame frame = first;
  do {
    count(counters().delivered);
    if (frame.kind == Kind::bye) incoming.said_bye = true;
    if (incoming.forgotten || closing_) {
      give_back(frame);
      continue;
    }
    ++incoming.queued;
    ready_.push(frame);
  } while (incoming.follow(frame));
  if (!incoming.keeps()) incoming.kept_in_place = 0;
}

void ReliablePort::give_back(const Frame& frame) {
  if (frame.source == kDecoratorSource) pool_.release(frame);
  else inlet_->release(frame);
}

// The oldest ready frame, for those above. Of one origin they may hold half a share in the transport's memory, so that
// it always has room to go on; the others are copies.
void ReliablePort::hand_out(Frame& frame) {
  frame = ready_.pop();
  Incoming& incoming = *incoming_[frame.origin];
  --incoming.queued;
  frame.fresh = !std::exchange(incoming.met, true);
  if (frame.source != kDecoratorSource && !frame.shared_room) {
    const Frame original = frame;
    if (incoming.in_place >= share_ / 2 && pool_.copy(frame)) inlet_->release(original);
    else ++incoming.in_place;
  }
  if (incoming.runs_short(share_)) acknowledge(incoming);
}

void ReliablePort::release(const Frame& frame) {
  std::lock_guard lock(lock_);
  if (frame.source == kDecoratorSource) return pool_.release(frame);
  const bool counted = !frame.shared_room;
  inlet_->release(frame);
  if (!counted || frame.origin >= incoming_.size() || !incoming_[frame.origin]) return;
  Incoming& incoming = *incoming_[frame.origin];
  if (incoming.in_place != 0) --incoming.in_place;
  if (incoming.runs_short(share_)) acknowledge(incoming);
}

bool ReliablePort::spin(std::uint32_t turns) {
  for (; turns != 0; --turns) {
    std::lock_guard lock(lock_);  // for one look: others send meanwhile
    if (!ready_.empty() || inlet_->spin(1)) return true;
  }
  return false;
}

OriginInfo ReliablePort::origin(std::uint32_t index) {
  std::lock_guard lock(lock_);
  return is_shown(index) ? inlet_->origin(index) : OriginInfo{};
}

// Those above know the origin and have not forgotten it.
bool ReliablePort::is_shown(std::uint32_t index) const noexcept {
  return index < incoming_.size() && incoming_[index] && incoming_[index]->met && !incoming_[index]->forgotten;
}

void ReliablePort::drop_origin(std::uint32_t index) {
  std::lock_guard lock(lock_);
  if (!is_shown(index)) return;
  if (!incoming_[index]->said_bye || incoming_[index]->parted) return abandon(index);
  // It may not know yet that its goodbye has arrived. The transport's goodbye will say that it does.
  incoming_[index]->forgotten = true;
  unsettled_ = true;
  share_out();
}

// Drops an origin, here and in the transport.
void ReliablePort::abandon(std::uint32_t index) {
  if (index < incoming_.size() && incoming_[index]) drop_incoming(index);
  inlet_->drop_origin(index);
}

void ReliablePort::drop_incoming(std::uint32_t index) {
  Incoming& incoming = *incoming_[index];
  incoming.release_all([this](const Frame& frame) { give_back(frame); });
  for (std::size_t i = ready_.size(); i != 0; --i) {
    const Frame frame = ready_.pop();
    if (frame.origin == index) give_back(frame);
    else ready_.push(frame);
  }
  Peer& from = incoming.peer;
  std::erase(from.incoming, &incoming);
  incoming_[index].reset();
  drop_peer_if_idle(from);
  share_out();
}

// A port promises so many frames to all its senders together, which share alike.
void ReliablePort::share_out() {
  std::uint32_t streams = 0;
  for (const auto& incoming : incoming_)
    if (incoming && incoming->has_stream && !incoming->forgotten) ++streams;
  share_ = std::clamp(settings().promised / std::max(streams, 1u), kLeastShare, kMostWindow);
}

bool ReliablePort::has_frame() {
  std::lock_guard lock(lock_);
  return !ready_.empty() || inlet_->has_frame();
}

std::int64_t ReliablePort::find_dead() {
  std::lock_guard lock(lock_);
  const std::int64_t dead = inlet_->find_dead();
  if (dead < 0) return dead;
  const auto index = static_cast<std::uint32_t>(dead);
  const bool known = index < incoming_.size() && incoming_[index];
  if (known && incoming_[index]->queued != 0) return -1;  // what it sent is read first
  if (is_shown(index)) return dead;
  abandon(index);
  return -1;
}

std::int64_t ReliablePort::take_broken() {
  std::lock_guard lock(lock_);
  const std::int64_t broken = inlet_->take_broken();
  if (broken < 0) return broken;
  const auto index = static_cast<std::uint32_t>(broken);
  if (is_shown(index)) return broken;
  abandon(index);
  return -1;
}

std::string ReliablePort::why_broken() {
  std::lock_guard lock(lock_);
  return inlet_->why_broken();
}

std::uint64_t ReliablePort::lanes_granted() {
  std::lock_guard lock(lock_);
  return inlet_->lanes_granted();
}

// ---- answering ------------------------------------------------------------------------------------------------------

// Sends an acknowledgement by itself. Without a way or without room it stays unacked.
void ReliablePort::acknowledge(Incoming& incoming) {
  incoming.ack_now = true;
  unsettled_ = true;
  const Ack ack = ack_of(incoming);
  Outlet* way = way_back(incoming.peer);
  if (way == nullptr) return;
  if (send_ack(*way, ack)) incoming.acknowledged(ack);
}

Outlet* ReliablePort::way_back(Peer& peer) {
  for (Sender* sender : peer.senders)
    if (sender->state() == Sender::State::open) return &sender->under();
  if (peer.back && !peer.back->port_closed()) return peer.back.get();
  if (peer.unreachable) return nullptr;
  auto outlet = common_->under->connect(peer.card, peer.number, number_, {}, back_counters_);
  if (!outlet) {
    // Whoever closed its port or ended needs no answer. A frame of a new connection tries again.
    peer.unreachable = outlet.error().code != Errc::full && outlet.error().code != Errc::no_memory;
    return nullptr;
  }
  peer.back = std::move(*outlet);
  return peer.back.get();
}

bool ReliablePort::send_ack(Outlet& outlet, const Ack& ack) {
  WireHeader wire;
  wire.has_ack = true;
  wire.ack = ack;
  std::byte header[kWireMost];
  encode(wire, 0, header);
  Gather none;
  if (!outlet.push(Kind::more, std::span(header, wire.size()), none, 0)) return false;  // begins no message
  count(counters().acks);
  return true;
}

// Before a sleep: what is unacked goes out now, for nobody will look at the time.
void ReliablePort::flush_acks() {
  for (const auto& incoming : incoming_)
    if (incoming && incoming->ack_pending() && !incoming->peer.unreachable) acknowledge(*incoming);
}

nanoseconds ReliablePort::next_deadline() {
  std::lock_guard lock(lock_);
  flush_acks();
  const nanoseconds now = settings().clock->now();
  service(now);
  const nanoseconds own = deadline_ == kForever ? kForever : std::max(deadline_ - now, nanoseconds(0));
  return std::min(own, inlet_->next_deadline());
}

bool ReliablePort::take_given_up(Error& error) {
  std::lock_guard lock(lock_);
  if (given_up_.empty()) return false;
  error = {Errc::peer_failed, std::move(given_up_.front())};
  given_up_.pop_front();
  return true;
}

// ---- time -----------------------------------------------------------------------------------------------------------

// A turn in which nothing came.
void ReliablePort::idle() {
  since_idle_ = 0;
  if (!unsettled_ && deadline_ == kForever) return;
  const nanoseconds now = settings().clock->now();
  if (unsettled_ || now >= deadline_) service(now);
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

void ReliablePort::drop_sender(std::uint32_t stream) {
  const auto it = senders_.find(stream);
  for (auto& [key, peer] : peers_)
    if (std::erase(peer->senders, it->second.get()) != 0) {
      senders_.erase(it);
      return drop_peer_if_idle(*peer);
    }
}

nanoseconds ReliablePort::service_incoming(nanoseconds now) {
  nanoseconds deadline = kForever;
  for (std::uint32_t i = 0; i < incoming_.size(); ++i) {
    if (!incoming_[i]) continue;
    Incoming& incoming = *incoming_[i];
    if (incoming.ack_pending() && !incoming.peer.unreachable) {
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

// ---- sending --------------------------------------------------------------------------------------------------------

Result<Sender*> ReliablePort::connect(std::string_view card, std::uint16_t to, std::span<const std::byte> hello,
                                      PortCounters& counters) {
  std::lock_guard lock(lock_);
  if (closing_) return fail(Errc::closed, "port " + std::to_string(number_) + " is being closed");
  auto outlet = common_->under->connect(card, to, number_, hello, counters);
  if (!outlet) return fail(outlet.error());
  const std::uint32_t stream = common_->next_stream.fetch_add(1, std::memory_order_relaxed);
  Peer& destination = peer(card, to);
  destination.unreachable = false;
  auto sender = std::make_unique<Sender>(std::move(*outlet), stream, to, settings(), common_->counters, destination);
  destination.senders.push_back(sender.get());
  return (senders_[stream] = std::move(sender)).get();
}

bool ReliablePort::push(Sender& sender, Payload payload, std::span<const std::byte> header, Gather& data,
                        std::size_t length) {
  std::lock_guard lock(lock_);
  unsettled_ = true;
  if (sender.push(payload, header, data, length)) return true;
  // Room comes from acknowledgements, and those above need not poll while they wait for it.
  if (inlet_) absorb();
  return sender.push(payload, header, data, length);
}

// Each keeps the frame under a number of its own, so that one that loses it gets it again and nobody else does.
bool ReliablePort::stage_all(std::span<Sender* const> senders, Payload payload, const Headers& headers, Gather& data,
                             std::size_t length, std::span<const std::uint32_t> who) {
  const Gather untouched = data;
  for (std::size_t i = 0; i < who.size(); ++i) {
    Gather again = untouched;
    if (senders[who[i]]->stage(payload, headers.of(who[i]), again, length)) continue;
    while (i != 0) senders[who[--i]]->unstage();
    return false;
  }
  return true;
}

bool ReliablePort::push_many(std::span<Sender* const> senders, Multicast& under, Payload payload,
                             const Headers& headers, Gather& data, std::size_t length, std::vector<std::uint32_t>& who,
                             bool patient) {
  std::lock_guard lock(lock_);
  unsettled_ = true;
  const auto has_none = [&](std::uint32_t member) { return !senders[member]->has_room(); };
  if (std::any_of(who.begin(), who.end(), has_none)) {
    if (inlet_) absorb();  // room comes from acknowledgements
    if (patient && std::any_of(who.begin(), who.end(), has_none)) return false;
  }
  std::vector<std::uint32_t> ready, late;
  for (const std::uint32_t member : who) (has_none(member) ? late : ready).push_back(member);
  if (ready.empty() || !stage_all(senders, payload, headers, data, length, ready)) return false;
  const std::size_t stride = kWireLeast + headers.length;
  std::vector<std::byte> wires(senders.size() * stride);
  for (const std::uint32_t member : ready) senders[member]->write_header(wires.data() + member * stride);
  std::vector<std::uint32_t> singles = ready;
  // For a transport at a machine's pace, as in Sender::emit().
  const Kind kind = payload == Payload::first ? Kind::first : Kind::more;
  if (!under.push(kind, {wires.data(), stride, stride}, data, length, singles)) {
    for (const std::uint32_t member : ready) senders[member]->unstage();
    return false;
  }
  for (const std::uint32_t member : ready) {
    Sender& sender = *senders[member];
    const bool single = std::find(singles.begin(), singles.end(), member) != singles.end();
    if (!single || sender.transmit_staged()) {
      sender.commit();
      continue;
    }
    sender.unstage();
    late.push_back(member);
  }
  who = std::move(late);
  return true;
}

bool ReliablePort::bye(Sender& sender) {
  if (sender.said_bye) return true;
  Gather none;
  if (!push(sender, Payload::bye, {}, none, 0)) {
    std::lock_guard lock(lock_);
    sender.bye_pending = sender.state() == Sender::State::open;
    return !sender.bye_pending;
  }
  std::lock_guard lock(lock_);
  sender.said_bye = true;
  return true;
}

void ReliablePort::leave(Sender& sender) {
  std::lock_guard lock(lock_);
  sender.orphan = true;
  unsettled_ = true;
  if (!inlet_) drop_sender(sender.stream());
}

// ---- closing --------------------------------------------------------------------------------------------------------

bool ReliablePort::all_settled() const noexcept {
  return std::all_of(senders_.begin(), senders_.end(), [](const auto& s) {
    return s.second->settled() && (!s.second->bye_pending || s.second->said_bye);
  });
}

// Somebody who has sent to us may still wait for our last answer: all whose transport has not said goodbye.
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
    heard_at_ = clock.now();
    while (!ready_.empty()) give_back(ready_.pop());
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
  // Nobody above is left to be told.
  for (const std::string& sentence : given_up_) std::fprintf(stderr, "ulfm: %s\n", sentence.c_str());
  for (auto& [key, peer] : peers_)
    if (peer->back) (void)peer->back->bye();
  incoming_.clear();
  for (auto& [key, peer] : peers_) {
    peer->incoming.clear();
    peer->back.reset();
  }
  inlet_.reset();
}

}  // namespace ulfm::reliable
