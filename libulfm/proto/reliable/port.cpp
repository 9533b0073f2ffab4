#include "proto/reliable/port.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace ulfm::reliable {

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

std::string ReliablePort::why_broken() {
  std::lock_guard lock(lock_);
  return inlet_->why_broken();
}

void ReliablePort::use_counters(PortCounters& counters) {
  std::lock_guard lock(lock_);
  inlet_->use_counters(counters);
}

bool ReliablePort::take_given_up(Error& error) {
  std::lock_guard lock(lock_);
  if (given_up_.empty()) return false;
  error = {Errc::peer_failed, std::move(given_up_.front())};
  given_up_.pop_front();
  return true;
}

// ---- sending --------------------------------------------------------------------------------------------------------

Result<Sender*> ReliablePort::connect(std::string_view card, std::uint16_t to, std::span<const std::byte> hello,
                                      PortCounters& counters) {
  std::lock_guard lock(lock_);
  if (closing_) return fail(Errc::closed, fmt::format("port {} is being closed", number_));
  auto outlet = common_->under->connect(card, to, number_, hello, counters);
  if (!outlet) return fail(outlet.error());
  const std::uint32_t stream = common_->next_stream.fetch_add(1, std::memory_order_relaxed);
  Peer& destination = peer(card, to);
  destination.no_way_until = {};
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
  unsettled_ = true;  // absorb() has looked at the timers, and what goes now needs one
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
    unsettled_ = true;     // as in push()
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

void ReliablePort::drop_sender(std::uint32_t stream) {
  const auto it = senders_.find(stream);
  for (auto& [key, peer] : peers_)
    if (std::erase(peer->senders, it->second.get()) != 0) {
      senders_.erase(it);
      return drop_peer_if_idle(*peer);
    }
}

}  // namespace ulfm::reliable
