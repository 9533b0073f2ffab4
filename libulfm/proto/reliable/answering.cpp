// Acknowledgements: with a frame that goes that way anyhow, or, when they are due, with one of their own.
#include "base/gone.hpp"
#include "proto/reliable/port.hpp"

namespace ulfm::reliable {

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
  if (settings().clock->now() < peer.no_way_until) return nullptr;
  const auto began = std::chrono::steady_clock::now();
  auto outlet = common_->under->connect(peer.card, peer.number, number_, {}, back_counters_);
  if (!outlet) {
    // Whoever closed its port or ended needs no answer; a frame of a new connection tries again. Another one may be
    // reached later. To find that out must not be most of what this port does.
    const Errc why = outlet.error().code;
    const bool is_in_vain = tells_of_one_gone(why) || why == Errc::closed;
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
    peer.no_way_until = is_in_vain ? kForever : settings().clock->now() + 4 * took + kTryAgain;
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
    if (incoming && incoming->ack_pending()) acknowledge(*incoming);
}

}  // namespace ulfm::reliable
