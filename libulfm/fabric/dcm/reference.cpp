#include "fabric/dcm/reference.hpp"

#include <algorithm>
#include <numeric>

namespace ulfm::fabric::dcm {
namespace {

bool is_sink(std::uint32_t way) { return way >= kGateway; }

}  // namespace

Reference::Reference(std::uint32_t dimension, const Parameters& parameters)
    : parameters_(parameters),
      dimension_(dimension),
      routers_(1u << dimension),
      elements_(std::size_t{routers_} * kWays),
      outs_(std::size_t{routers_} * kWays),
      alive_(routers_, true) {
  for (std::uint32_t r = 0; r < routers_; ++r)
    for (std::uint32_t c = 0; c < dimension_; ++c) out_(r, c).wire.resize(parameters_.hop_cycles);
}

// The words of a message, made up from its name; the checksum makes their sum 0.
bool Reference::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins) {
  const std::uint32_t router = from % routers_, way = from < routers_ ? kNode : kGateway;
  if (from == to || is_down(router, way)) return false;
  if (messages_.size() <= frame) messages_.resize(frame + 1);
  Message message;
  message.from = from, message.to = to, message.begins = begins, message.active = true;
  message.probe = routing_probe(from, to, routers_);
  for (std::uint32_t i = 0; i < words_behind_probe(bytes); ++i)
    message.words.push_back(static_cast<std::uint16_t>(977 * frame + 31 * i + 1));
  const int sum = std::accumulate(message.words.begin(), message.words.end(), 0);
  message.words.push_back(static_cast<std::uint16_t>(-sum));
  messages_[frame] = std::move(message);
  in_(router, way).waiting.push_back(frame);
  ++messages_inside_;
  return true;
}

void Reference::stall(std::uint32_t end, std::uint64_t cycles) {
  out_(end % routers_, end < routers_ ? kNode : kGateway).stalled_until = now_ + cycles;
}

void Reference::step() {
  release_channels();
  for (std::uint32_t r = 0; r < routers_; ++r)
    for (std::uint32_t c = 0; c < dimension_; ++c) {
      std::deque<Nibble>& wire = out_(r ^ 1u << c, c).wire;
      in_(r, c).arrived = wire.front();
      wire.pop_front();
      arrive(r, c);
    }
  for (std::uint32_t r = 0; r < routers_; ++r)
    for (std::uint32_t way = 0; way < kWays; ++way) request(r, way);
  for (std::uint32_t r = 0; r < routers_; ++r) {
    start_message(r, kGateway);
    start_message(r, kNode);
  }
  for (std::uint32_t r = 0; r < routers_; ++r)
    for (std::uint32_t way = 0; way < kWays; ++way) arbitrate(r, way);
  for (std::uint32_t r = 0; r < routers_; ++r) {
    for (std::uint32_t c = 0; c < dimension_; ++c) send(r, c);
    send_within_router(r, kGateway);
    send_within_router(r, kNode);
  }
  for (std::uint32_t r = 0; r < routers_; ++r) {
    take(r, kGateway);
    take(r, kNode);
  }
  for (std::uint32_t r = 0; r < routers_; ++r)
    for (std::uint32_t way = 0; way < kWays; ++way) {
      const Element& in = in_(r, way);
      if (in.state == State::requesting) {
        ++out_(r, in.out).counters.blocked_cycles;
        if (in.asked == now_) ++out_(r, in.out).counters.blocked;
      }
      if (out_(r, way).holder) ++out_(r, way).counters.held_cycles;
    }
  ++now_;
}

void Reference::release_channels() {
  for (Out& out : outs_) {
    if (!out.release) continue;
    out.release = out.within = false;
    out.holder.reset();
  }
}

// 1. Arrival.

void Reference::arrive(std::uint32_t router, std::uint32_t channel) {
  Element& in = in_(router, channel);
  const Nibble& nibble = in.arrived;
  Out& back = out_(router, channel);
  if (nibble.first && back.holder && now_ >= back.valid_from) back.ready = nibble.rdy;
  if (nibble.kind == Kind::probe && nibble.last) {
    in.state = State::looking;
    in.frame = nibble.frame;
    in.probe = nibble.value;
    in.until = now_ + parameters_.route_cycles;
  }
  if (nibble.kind == Kind::word && nibble.last && in.state == State::connected && is_sink(in.out)) {
    put_word(out_(router, in.out), nibble);
    if (nibble.eom) in.state = State::idle;
  }
}

void Reference::put_word(Out& sink, const Nibble& word) {
  Message& message = messages_[word.frame];
  if (message.received >= message.words.size() || message.words[message.received] != word.value)
    wrong_ = "a word arrived that was not the next one sent";
  ++message.received;
  if (!word.eom) {
    if (++sink.fifo > parameters_.fifo_words) wrong_ = "a FIFO overflowed";
    ++sink.counters.words;
    return;
  }
  sink.ended = true;
  ++stripped_;
  ++message.stripped;
  const int sum = std::accumulate(message.words.begin(), message.words.end(), 0);
  if (message.received != message.words.size() || static_cast<std::uint16_t>(sum) != 0)
    wrong_ = "a checksum does not fit";
}

// 2. Request.

void Reference::start_message(std::uint32_t router, std::uint32_t source) {
  Element& in = in_(router, source);
  if (in.state != State::idle || in.waiting.empty()) return;
  in.frame = in.waiting.front();
  in.waiting.pop_front();
  in.state = State::looking;
  in.probe = messages_[in.frame].probe;
  in.until = now_ + (messages_[in.frame].begins ? parameters_.send_cycles : 0) + parameters_.dma_cycles +
             parameters_.route_cycles;
  in.words_sent = 0;
  in.nibble = 0;
}

void Reference::request(std::uint32_t router, std::uint32_t way) {
  Element& in = in_(router, way);
  if (in.state != State::looking || now_ < in.until) return;
  in.out = requested(in.probe, way);
  if (is_down(router, in.out)) return lose(in.frame);
  in.state = State::requesting;
  in.asked = now_;
}

// 3. Arbitration.

void Reference::arbitrate(std::uint32_t router, std::uint32_t way) {
  Out& out = out_(router, way);
  if (out.holder || out.dead_left != 0) return;
  std::uint32_t asking = 0;
  for (std::uint32_t i = 0; i < kWays; ++i)
    if (in_(router, i).state == State::requesting && in_(router, i).out == way) asking |= 1u << i;
  if ((asking & ~requesters(way)) != 0) wrong_ = "a routing element requests a way that it does not have";
  if (asking == 0) return;
  out.last = next_in_turn(asking, out.last);
  out.holder = out.last;
  Element& in = in_(router, out.last);
  in.state = State::connected;
  out.frame = in.frame;
  out.granted = now_;
  out.ready = out.within = false;
  ++out.counters.messages;
  Message& message = messages_[in.frame];
  if (out.last >= kGateway) {
    ++entered_;
    ++message.sent;
  }
  if (is_sink(way)) {
    out.valid_from = now_ + 1;
    ++out.counters.probes;
    ++out.counters.words;
    ++out.fifo;
    return;
  }
  out.probe_left = out.last >= kGateway ? kWordNibbles : kShortProbeNibbles;
  ++(out.last >= kGateway ? out.counters.probes : out.counters.short_probes);
  out.valid_from = now_ + out.probe_left + 2 * parameters_.hop_cycles;
}

// 4. Sending.

// The status of the message that comes in by that channel goes back on it.
bool Reference::send_status(std::uint32_t router, std::uint32_t channel) const {
  const Element& in = in_(router, channel);
  if (in.state != State::connected) return false;
  const Out& out = out_(router, in.out);
  return is_sink(in.out) ? out.accept : out.ready;
}

Reference::Nibble Reference::serialize(Element& source, bool ready) {
  Message& message = messages_[source.frame];
  if (source.nibble == 0) {
    if (!ready || source.words_sent == message.words.size()) return {};
    ++entered_;
    ++message.sent;
  }
  Nibble nibble{Kind::word,
                source.nibble == 0,
                source.nibble + 1 == kWordNibbles,
                false,
                source.words_sent + 1 == message.words.size(),
                message.words[source.words_sent],
                source.frame};
  source.nibble = (source.nibble + 1) % kWordNibbles;
  if (source.nibble == 0) ++source.words_sent;
  return nibble;
}

Reference::Nibble Reference::next_nibble(std::uint32_t router, std::uint32_t channel) {
  Out& out = out_(router, channel);
  if (out.dead_left != 0) {
    --out.dead_left;
    return {Kind::dead, false, out.dead_left == 0};
  }
  if (!out.holder || out.granted == now_) return {};
  Element& in = in_(router, *out.holder);
  if (out.probe_left != 0) {
    const bool whole = *out.holder >= kGateway;
    const bool first = out.probe_left == (whole ? kWordNibbles : kShortProbeNibbles);
    --out.probe_left;
    return {Kind::probe, first, out.probe_left == 0, false, false, in.probe, in.frame};
  }
  if (*out.holder >= kGateway) return serialize(in, out.ready);
  return in.arrived.kind == Kind::word ? in.arrived : Nibble{};
}

void Reference::send(std::uint32_t router, std::uint32_t channel) {
  Out& out = out_(router, channel);
  Nibble nibble = next_nibble(router, channel);
  nibble.rdy = nibble.first && send_status(router, channel);
  if (nibble.first && nibble.kind != Kind::status)
    out.word_left = nibble.kind == Kind::probe ? out.probe_left : kWordNibbles - 1;
  else if (out.word_left != 0) --out.word_left;
  if (nibble.kind == Kind::word && nibble.first) {
    out.within = true;
    ++out.counters.words;
  }
  if (nibble.kind == Kind::status && out.within) {
    out.within = false;
    ++out.counters.throttles;
  }
  out.wire.push_back(nibble);
  if (nibble.kind == Kind::word && nibble.last && nibble.eom) {
    out.release = true;
    in_(router, *out.holder).state = State::idle;
  }
}

// A message between the node and the gateway of one router meets no channel.
void Reference::send_within_router(std::uint32_t router, std::uint32_t sink) {
  Out& out = out_(router, sink);
  if (!out.holder || *out.holder < kGateway || out.granted == now_) return;
  Element& source = in_(router, *out.holder);
  if (source.state != State::connected || source.frame != out.frame) return;
  const Nibble nibble = serialize(source, out.accept);
  if (nibble.kind != Kind::word || !nibble.last) return;
  put_word(out, nibble);
  if (nibble.eom) source.state = State::idle;
}

// 5. Taking.

void Reference::take(std::uint32_t router, std::uint32_t way) {
  Out& out = out_(router, way);
  if (!out.holder) return;
  Message& message = messages_[out.frame];
  const bool awake = now_ >= out.stalled_until;
  if (awake && now_ % parameters_.dma_cycles == 0 && out.fifo >= 2) {
    out.fifo -= 2;
    left_ += 2;
    message.taken += 2;
  }
  if (!out.ended) {
    const bool stops = out.accept && out.fifo >= parameters_.stop_at;
    if (stops) ++out.counters.throttles;
    if (stops || (!out.accept && out.fifo <= parameters_.go_at)) out.accept = !out.accept;
    return;
  }
  if (out.done_at == 0 && awake && out.fifo == 0)
    out.done_at = now_ + (message.begins ? parameters_.receive_cycles : 0);
  if (out.done_at == 0 || now_ < out.done_at) return;
  endings_.push_back({out.frame, message.to, now_, true});
  message.active = false;
  --messages_inside_;
  out.holder.reset();
  out.accept = true;
  out.ended = false;
  out.done_at = 0;
}

// Faults.

bool Reference::is_down(std::uint32_t router, std::uint32_t way) const {
  if (!alive_[router] || out_(router, way).down) return true;
  return way < dimension_ && (!alive_[router ^ 1u << way] || out_(router ^ 1u << way, way).down);
}

void Reference::lose(FrameId frame) {
  Message& message = messages_[frame];
  for (Element& in : elements_) {
    std::erase(in.waiting, frame);
    if (in.state != State::idle && in.frame == frame) in.state = State::idle;
  }
  for (Out& out : outs_) {
    for (Nibble& nibble : out.wire)
      if ((nibble.kind == Kind::probe || nibble.kind == Kind::word) && nibble.frame == frame)
        nibble.kind = nibble.first ? Kind::status : Kind::dead;
    if (!out.holder || out.frame != frame) continue;
    out.dead_left = out.word_left;
    out.word_left = out.probe_left = 0;
    out.holder.reset();
    out.within = out.release = false;
    out.fifo = 0;
    out.accept = true;
    out.ended = false;
    out.done_at = 0;
    ++out.counters.lost;
  }
  lost_ += message.sent - message.taken - message.stripped;
  message.active = false;
  endings_.push_back({frame, message.from, now_, false});
  --messages_inside_;
}

// A message is at a channel as long as it holds it or has nibbles on it.
bool Reference::uses_what_is_down(FrameId frame) const {
  const Message& message = messages_[frame];
  if (is_down(message.from % routers_, message.from < routers_ ? kNode : kGateway)) {
    const Element& source = in_(message.from % routers_, message.from < routers_ ? kNode : kGateway);
    const bool waits = std::count(source.waiting.begin(), source.waiting.end(), frame) != 0;
    if (waits || (source.state != State::idle && source.frame == frame)) return true;
  }
  for (std::uint32_t r = 0; r < routers_; ++r)
    for (std::uint32_t way = 0; way < kWays; ++way) {
      const Element& in = in_(r, way);
      if (in.state == State::requesting && in.frame == frame && is_down(r, in.out)) return true;
      const Out& out = out_(r, way);
      if (!is_down(r, way)) continue;
      if (out.holder && out.frame == frame) return true;
      for (const Nibble& nibble : out.wire)
        if (nibble.kind == Kind::word && nibble.frame == frame) return true;
    }
  return false;
}

void Reference::lose_what_is_down() {
  for (FrameId frame = 0; frame < messages_.size(); ++frame)
    if (messages_[frame].active && uses_what_is_down(frame)) lose(frame);
}

void Reference::set_channel(std::uint32_t router, std::uint32_t way, bool up) {
  out_(router, way).down = !up;
  if (way < dimension_) out_(router ^ 1u << way, way).down = !up;
  if (!up) lose_what_is_down();
}

void Reference::set_router(std::uint32_t router, bool alive) {
  alive_[router] = alive;
  if (!alive) lose_what_is_down();
}

// Looking.

const char* Reference::state(std::uint32_t router, std::uint32_t in) const {
  constexpr const char* kNames[] = {"Idle", "Looking", "Requesting", "Connected"};
  return kNames[static_cast<std::size_t>(in_(router, in).state)];
}

WordBalance Reference::balance() const {
  WordBalance sum{entered_, left_, stripped_, lost_, 0};
  for (const Message& message : messages_)
    if (message.active) sum.present += message.sent - message.taken - message.stripped;
  return sum;
}

}  // namespace ulfm::fabric::dcm
