#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine.hpp"
#include "timed.hpp"

namespace nx2 {

// The program's buffer is copied only when its receiver has not asked for the message for about as long as
// the copy takes: then waiting and copying together cost at most twice the better of the two.
static std::chrono::nanoseconds patience_for(std::size_t size) { return std::chrono::nanoseconds(5'000 + size / 8); }

// ---- one message
// ----------------------------------------------------------------------------------------------------

// Whether the place can be sent to. A cube may have loaded another program there since: that one starts with
// all its buffers.
Channel::Reach NxEngine::reach(std::int32_t node) {
  Peer& peer = peers_[static_cast<std::size_t>(node)];
  const Channel::Reach reach = channel_.reach(node);
  if (const std::uint32_t use = channel_.use(node); use != peer.use) {
    peer.use = use;
    peer.left = false;
    peer.lost_since.reset();
    peer.buffers = tuning_.buffers;
    peer.owed = peer.kept = 0;
  }
  return reach == Channel::Reach::there && peer.left ? Channel::Reach::absent : reach;
}

Channel::Sent NxEngine::transmit(std::int32_t node, Header header, const void* data, std::size_t size, bool goes_on) {
  Peer& peer = peers_[static_cast<std::size_t>(node)];
  if (const Channel::Reach found = reach(node); found != Channel::Reach::there)
    return found == Channel::Reach::absent ? Channel::Sent::lost : Channel::Sent::no_room;
  header.source = own_number_;
  header.buffers = static_cast<std::uint8_t>(peer.owed);
  peer.address = channel_.address(node);
  const bool is_own = header.kind == Kind::message || header.kind == Kind::data;
  const TimedCharge charge(goes_on ? ULFM_TIME_GOES_ON : is_own ? ULFM_TIME_MESSAGE : ULFM_TIME_SYSTEM);
  const Channel::Sent sent = channel_.send(peer.address, header, data, size);
  if (sent != Channel::Sent::gone) return sent;
  peer.owed = 0;
  peer.contacted = true;
  peer.open = channel_.addresses_stay();
  ++moved_;
  return sent;
}

NxEngine::Held NxEngine::copy_of(const Header& header, const void* data, std::size_t size) {
  Bytes copy = allocate(size);
  if (!copy) end_of_job("csend", EQMEM);
  if (size != 0) std::memcpy(copy.get(), data, size);
  return {header, size, std::move(copy)};
}

// A message that needs one of the destination's short buffers. Those of a sender go in order. Global
// operations need none: they have few messages on their way at a time, and must get past a program's that
// nobody receives.
void NxEngine::send_short(std::int32_t node, Header header, const void* data, std::size_t size) {
  if (header.type >= kFirstSystemType) return send_free(node, header, data, size);
  Peer& peer = peers_[static_cast<std::size_t>(node)];
  if (peer.held.empty() && outbox_.empty() && peer.buffers > tuning_.data_buffers) {
    const Channel::Sent sent = transmit(node, header, data, size);
    if (sent == Channel::Sent::gone) --peer.buffers;
    if (sent == Channel::Sent::lost) lose(node);
    if (sent != Channel::Sent::no_room) return;
  }
  peer.held.push_back(copy_of(header, data, size));
  ++held_;
}

// A message that needs no short buffer.
void NxEngine::send_free(std::int32_t node, const Header& header, const void* data, std::size_t size) {
  if (outbox_.empty()) {
    const Channel::Sent sent = transmit(node, header, data, size);
    if (sent == Channel::Sent::lost) lose(node);
    if (sent != Channel::Sent::no_room) return;
  }
  outbox_.push_back({node, copy_of(header, data, size)});
}

// A message of the engine's own, of which the other side keeps nothing.
void NxEngine::control(std::int32_t node, Kind kind, std::uint32_t first, std::uint32_t second) {
  send_free(node, {0, kind, 0, static_cast<std::int32_t>(first), static_cast<std::int32_t>(second), 0}, nullptr, 0);
}

// ---- starting
// -------------------------------------------------------------------------------------------------------

void NxEngine::start_long(Request* request, const Header& header, std::int32_t node, const std::byte* data,
                          std::size_t size, const std::shared_ptr<std::byte[]>& kept) {
  if (outgoing_free_.empty()) {
    outgoing_free_.push_back(static_cast<std::uint32_t>(outgoing_.size()));
    outgoing_.emplace_back().id = outgoing_free_.back();
  }
  Outgoing& outgoing = outgoing_[outgoing_free_.back()];
  outgoing_free_.pop_back();
  ++outgoing_count_;
  const std::uint32_t id = outgoing.id;
  outgoing = Outgoing{};
  outgoing.id = id;
  outgoing.node = node;
  outgoing.data = data;
  outgoing.count = size;
  outgoing.kept = kept;
  outgoing.request = request;
  outgoing.in_use = true;
  if (request != nullptr) ++request->pending;
  const ProxyBody body{size, number_of(id), 0};
  Header proxy = header;
  proxy.kind = Kind::proxy;
  send_short(node, proxy, &body, sizeof body);
}

void NxEngine::start_one(Request* request, const Envelope& to, std::int32_t node, const std::byte* data,
                         std::size_t size, const std::shared_ptr<std::byte[]>& kept) {
  const Header header{own_number_, Kind::message, 0, to.type, ptype, to.ptype};
  if (node == channel_.self()) {
    ++moved_;
    return take_message(header, data, size);
  }
  if (size <= tuning_.short_limit) return send_short(node, header, data, size);
  start_long(request, header, node, data, size, kept);
}

// All nodes but the sender's own process; with another process type than the sender's, the sender's node too.
template <typename Visit>
void NxEngine::for_destinations(const Envelope& to, Visit visit) {
  if (to.node >= 0) return visit(to.node);
  for (std::int32_t node = 0; node < channel_.nodes(); ++node)
    if (node != channel_.self() || (to.ptype != ptype && to.ptype != kAny)) visit(node);
}

// One message to all other nodes, which the network copies. False, with nothing done, when it has to go to each by
// itself: the network does not, one of the nodes has gone, or has no buffer for it now.
bool NxEngine::send_to_all(const Envelope& to, const void* data, std::size_t size) {
  if (size > tuning_.to_all || channel_.nodes() < 3 || !channel_.addresses_stay() || held_ != 0 || !outbox_.empty())
    return false;
  const bool needs_buffers = to.type < kFirstSystemType;
  const auto others = [&](auto visit) {
    for (std::int32_t node = 0; node < channel_.nodes(); ++node)
      if (node != channel_.self() && !visit(node, peers_[static_cast<std::size_t>(node)])) return false;
    return true;
  };
  if (!others([&](std::int32_t node, const Peer& peer) {
        return reach(node) == Channel::Reach::there && (!needs_buffers || peer.buffers > tuning_.data_buffers);
      }))
    return false;
  const Header header{own_number_, Kind::message, 0, to.type, ptype, to.ptype};
  if (channel_.send_to_all(header, data, size) != Channel::Sent::gone) return false;
  others([&](std::int32_t node, Peer& peer) {
    peer.address = channel_.address(node);
    peer.contacted = peer.open = true;
    if (needs_buffers) --peer.buffers;
    return true;
  });
  ++moved_;
  return true;
}

void NxEngine::start_send(Request& request, const Envelope& to, const void* data, std::size_t size) {
  request.is_receive = false;
  request.result = {to.type, to.node, to.ptype, static_cast<long>(size)};
  request.pending = 1;  // so that it is not complete before all parts have been started
  const bool gone = to.node < 0 && send_to_all(to, data, size);
  for_destinations(to, [&](std::int32_t node) {
    if (gone && node != channel_.self()) return;
    start_one(&request, to, node, static_cast<const std::byte*>(data), size, nullptr);
  });
  push();
  if (--request.pending == 0) complete(request);
}

Outcome NxEngine::send(const Envelope& to, const void* data, std::size_t size) {
  if (size <= tuning_.short_limit && to.node >= 0) {
    start_one(nullptr, to, to.node, static_cast<const std::byte*>(data), size, nullptr);
    return {};
  }
  Request request;
  start_send(request, to, data, size);
  settle_send(request);
  return {};
}

void NxEngine::settle_send(Request& request) {
  const auto patience = patience_for(static_cast<std::size_t>(request.result.count));
  auto since = job_time();
  while (!request.done()) {
    const std::uint64_t before = moved_;
    step(5'000);
    run_handlers();
    if (moved_ != before) since = job_time();
    else if (job_time() - since > patience && detach_send(request)) break;
  }
}

Outcome NxEngine::send_list(const Envelope& to, const std::vector<std::int32_t>& nodes, const void* data,
                            std::size_t size) {
  Request request;
  request.is_receive = false;
  for (const std::int32_t node : nodes)
    start_one(&request, to, node, static_cast<const std::byte*>(data), size, nullptr);
  push();
  if (!request.done() && !detach_send(request)) wait(request);
  return {};
}

bool NxEngine::detach_send(Request& request) {
  std::shared_ptr<std::byte[]> kept;
  for (Outgoing& outgoing : outgoing_) {
    if (!outgoing.in_use || outgoing.request != &request) continue;
    if (!kept) {
      kept.reset(new (std::nothrow) std::byte[outgoing.count]);
      if (!kept) return false;
      std::memcpy(kept.get(), outgoing.data, outgoing.count);
    }
    outgoing.kept = kept;
    outgoing.data = kept.get();
    outgoing.request = nullptr;
    --request.pending;
  }
  if (request.pending == 0) complete(request);
  return true;
}

// ---- moving on
// ------------------------------------------------------------------------------------------------------

void NxEngine::end_outgoing(Outgoing& outgoing) {
  outgoing.unlink();
  outgoing.in_use = false;
  outgoing.kept.reset();
  outgoing_free_.push_back(outgoing.id);
  --outgoing_count_;
  if (Request* request = std::exchange(outgoing.request, nullptr); request != nullptr && --request->pending == 0)
    complete(*request);
}

// The third trip, as far as there are buffers and room. False when it got stuck.
bool NxEngine::pump(Outgoing& outgoing) {
  Peer& peer = peers_[static_cast<std::size_t>(outgoing.node)];
  while (outgoing.sent < outgoing.count) {
    if (peer.buffers == 0) return false;
    const std::size_t size = std::min(tuning_.data_piece, outgoing.count - outgoing.sent);
    const Header header{0, Kind::data, 0, static_cast<std::int32_t>(outgoing.receiver_id), 0, 0};
    const Channel::Sent sent = transmit(outgoing.node, header, outgoing.data + outgoing.sent, size, outgoing.sent != 0);
    if (sent == Channel::Sent::no_room) return false;
    if (sent == Channel::Sent::lost) break;
    --peer.buffers;
    outgoing.sent += size;
  }
  end_outgoing(outgoing);
  return true;
}

void NxEngine::flush_outbox() {
  while (!outbox_.empty()) {
    const auto& [node_of_first, message] = outbox_.front();
    const std::int32_t node = node_of_first;
    const Channel::Sent sent = transmit(node, message.header, message.bytes.get(), message.size);
    if (sent == Channel::Sent::no_room) return;
    outbox_.pop_front();
    if (sent == Channel::Sent::lost) lose(node);
  }
}

void NxEngine::flush_held() {
  for (std::size_t node = 0; node < peers_.size(); ++node) {
    Peer& peer = peers_[node];
    while (!peer.held.empty() && peer.buffers > tuning_.data_buffers) {
      const Held& first = peer.held.front();
      const Channel::Sent sent = transmit(static_cast<std::int32_t>(node), first.header, first.bytes.get(), first.size);
      if (sent == Channel::Sent::no_room) break;
      if (sent == Channel::Sent::lost) {
        lose(static_cast<std::int32_t>(node));
        break;
      }
      --peer.buffers;
      peer.held.pop_front();
      --held_;
    }
  }
}

// Everything that can go now.
void NxEngine::push_all() {
  if (!outbox_.empty()) flush_outbox();
  if (held_ != 0 && outbox_.empty()) flush_held();
  for (Outgoing* outgoing = streams_.first(); outgoing != nullptr;) {
    Outgoing* next = streams_.next(*outgoing);
    pump(*outgoing);
    outgoing = next;
  }
}

void NxEngine::abandon(std::int32_t node) {
  Peer& peer = peers_[static_cast<std::size_t>(node)];
  peer.left = true;
  peer.open = false;
  held_ -= peer.held.size();
  peer.held.clear();
  for (Outgoing& outgoing : outgoing_)
    if (outgoing.in_use && outgoing.node == node) end_outgoing(outgoing);
}

// Its process has ended, or its host does not answer any more: silent_node() tells the two apart. Without its host
// program a node on another host has nobody to end it.
void NxEngine::lose(std::int32_t node) {
  Peer& peer = peers_[static_cast<std::size_t>(node)];
  const Cube& cube = channel_.cube();
  const bool is_news = !peer.left && !peer.lost_since;
  if (is_news) peer.lost_since = std::chrono::steady_clock::now();
  abandon(node);
  if (is_news && !closing_ && cube.exists() && cube.is_copy() && node == cube.host()) end_all(1);
}

// ---- the end
// --------------------------------------------------------------------------------------------------------

void NxEngine::send_kill() {
  channel_.wait_for_nobody_new();
  for (std::int32_t node = 0; node < channel_.nodes(); ++node)
    if (node != channel_.self()) control(node, Kind::kill);
}

bool NxEngine::everybody_left() const {
  for (std::int32_t node = 0; node < channel_.nodes(); ++node)
    if (node != channel_.self() && !peers_[static_cast<std::size_t>(node)].left) return false;
  return true;
}

void NxEngine::finish() {
  closing_ = true;
  channel_.wait_for_nobody_new();
  flush(Selector{});
  // What was sent is delivered before this node ends. It does not wait for a node that has ended without a goodbye.
  while (!killed_ && (outgoing_count_ != 0 || held_ != 0 || !outbox_.empty())) {
    if (wait_for([&] { return killed_ || (outgoing_count_ == 0 && held_ == 0 && outbox_.empty()); }, 100)) break;
    for (Outgoing& outgoing : outgoing_)
      if (outgoing.in_use && outbox_.empty()) control(outgoing.node, Kind::ping);
  }
  for (std::size_t node = 0; node < peers_.size(); ++node)
    if (peers_[node].contacted && !peers_[node].left) control(static_cast<std::int32_t>(node), Kind::bye, own_use_);
  wait_for([&] { return outbox_.empty(); }, 1000);
}

}  // namespace nx2
