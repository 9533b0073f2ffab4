#include "port/port.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "base/copy.hpp"
#include "base/counted.hpp"
#include "base/virtual_time.hpp"

#include "port/node.hpp"

namespace ulfm {
namespace {

// In good order: who died has not closed it.
bool is_closed(const Outlet& outlet) { return outlet.port_closed() && !outlet.has_broken(); }

}  // namespace

PortCore::PortCore(Node& node, std::uint16_t number, std::unique_ptr<Inlet> inlet, std::uint32_t depth,
                   std::uint32_t slot_bytes, std::size_t cache_limit)
    : node_(node),
      number_(number),
      inlet_(std::move(inlet)),
      depth_(depth),
      send_(depth),
      receive_(depth),
      cache_(cache_limit) {
  for (SendBuffer& buffer : send_) buffer.capacity = slot_bytes;  // memory comes with the first use
  inlet_->use_counters(counters_);
}

// send_byes() has ended the trees. What the application holds goes with its port, and its room to whoever sent it.
PortCore::~PortCore() {
  give_back_spent();
  for (ReceiveBuffer& buffer : receive_)
    if (buffer.tag.valid() && buffer.in_slot) inlet_->release(buffer.frame);
}

// ---- application: sending -------------------------------------------------------------------------------------------

Result<std::span<std::byte>> PortCore::compose(std::size_t size) {
  if (std::byte* bytes = try_compose(size)) return std::span(bytes, size);
  if (composing_)
    return fail(Errc::busy, fmt::format("port {}: a message is being composed; post or discard it", number_));
  SendBuffer& buffer = send_[compose_at_];
  if (buffer.tag.valid()) {
    node_.drive();
    if (buffer.tag.valid())
      return fail(Errc::full,
                  fmt::format("port {}: no send buffer is free; {} on the way", number_, counted(depth_, "message")));
  }
  if (!buffer.bytes || buffer.capacity < size) {
    const std::size_t capacity = std::max(size, buffer.capacity);
    HeapBytes bytes = allocate_bytes(capacity);
    if (!bytes)
      return fail(Errc::no_memory,
                  fmt::format("port {}: no memory for a message of {}", number_, counted(size, "byte")));
    buffer.bytes = std::move(bytes);
    buffer.capacity = capacity;
  }
  buffer.size = size;
  composing_ = true;
  return std::span(buffer.bytes.get(), size);
}

Result<void> PortCore::post(PortAddress to) {
  if (!composing_) return fail(Errc::invalid, fmt::format("port {}: nothing has been composed to post", number_));
  if (to.key() != posted_key_) {
    if (auto ok = node_.connect(*this, to); !ok) return ok;
    posted_key_ = to.key();
  }
  give(to);
  return {};
}

// Hands the composed message to the interface.
void PortCore::give(PortAddress to) noexcept {
  SendBuffer& buffer = send_[compose_at_];
  composing_ = false;
  counters_.sent_messages.add();
  counters_.sent_bytes.add(buffer.size);
  const iovec piece{buffer.bytes.get(), buffer.size};
  Gather data(std::span(&piece, 1));
  if (node_.send_at_once(*this, to, data, buffer.size)) return;  // and the next message has this buffer, which is warm
  buffer.to = to;
  hand_over(buffer);
  // Perhaps this message has found nobody: then the next one's post is to say so.
  if (failure_count_.load(std::memory_order_relaxed) != 0) posted_key_ = ~std::uint64_t{0};
}

bool PortCore::send_pieces(PortAddress to, std::span<const iovec> pieces, std::size_t size) {
  if (composing_) return false;
  if (to.key() != posted_key_) {
    if (!node_.connect(*this, to)) return false;
    posted_key_ = to.key();
  }
  Gather data(pieces);
  if (!node_.send_at_once(*this, to, data, size)) return false;
  counters_.sent_messages.add();
  counters_.sent_bytes.add(size);
  return true;
}

void PortCore::hand_over(SendBuffer& buffer) noexcept {
  buffer.tag.set();
  ++given_;
  compose_at_ = compose_at_ + 1 == depth_ ? 0 : compose_at_ + 1;
  node_.serve(*this);
}

Result<void> PortCore::discard() {
  if (!composing_) return fail(Errc::invalid, fmt::format("port {}: nothing is being composed", number_));
  composing_ = false;
  return {};
}

// ---- interface: sending ---------------------------------------------------------------------------------------------

Result<void> PortCore::connect(PortAddress to) {
  if (outlets_.count(to.key()) != 0) return {};
  if (outlets_.size() >= sweep_at_) drop_closed_outlets();
  const std::string card = node_.card_of(to.process);
  if (card.empty()) return fail(Errc::invalid, fmt::format("no process {} is known here", to.process));
  auto outlet = node_.transport().connect(card, to.port, number_, {}, counters_);
  if (!outlet) return fail(outlet.error());
  outlets_.emplace(to.key(), std::move(*outlet));
  return {};
}

Result<void> PortCore::connect(std::span<const PortAddress> all) {
  for (const PortAddress& one : all)
    if (auto ok = connect(one); !ok) return ok;
  return {};
}

// Each outlet maps a port's memory, and nobody posts to a process that has gone. The sweep costs system calls, so it
// runs when there are twice as many outlets as the last sweep has left.
void PortCore::drop_closed_outlets() {
  std::erase_if(outlets_, [this](const auto& one) { return one.first != last_key_ && !one.second->peer_listening(); });
  sweep_at_ = std::max(kFirstSweep, 2 * outlets_.size());
}

// The outlet to an address, made anew when the port there was closed since; nullptr, and why, when there is none.
Outlet* PortCore::outlet_for(PortAddress to, Error* why) {
  const std::uint64_t key = to.key();
  if (key == last_key_ && !last_outlet_->port_closed()) return last_outlet_;
  last_key_ = ~std::uint64_t{0};
  auto it = outlets_.find(key);
  std::string lost;
  if (it != outlets_.end() && it->second->port_closed()) {
    if (it->second->has_broken())
      lost =
          fmt::format("the connection to {}, port {}, has ended before its time; the last messages to it may be lost",
                      it->second->peer().text(), to.port);
    if (it->second->cut_off())
      note_failure(Errc::peer_failed,
                   fmt::format("{} has cut off what port {} sent to its port {}; the last messages may be lost",
                               it->second->peer().text(), number_, to.port));
    outlets_.erase(it);
    it = outlets_.end();
  }
  if (it == outlets_.end()) {
    if (auto ok = connect(to); !ok) {
      if (why != nullptr) *why = ok.error();
      return nullptr;
    }
    // It lives. Of one that does not, the error tells.
    if (!lost.empty()) note_failure(Errc::peer_failed, std::move(lost));
    it = outlets_.find(key);
  }
  last_key_ = key;
  last_outlet_ = it->second.get();
  return last_outlet_;
}

void PortCore::undeliverable(const SendBuffer& buffer, PortAddress to, const std::string& why) {
  note_failure(Errc::peer_failed, fmt::format("a message of {} from port {} to port {} is lost: {}",
                                              counted(buffer.size, "byte"), number_, to.port, why));
  outlets_.erase(to.key());
  last_key_ = ~std::uint64_t{0};
}

bool PortCore::send_at_once(PortAddress to, Gather& data, std::size_t size) {
  if (posted != 0) return false;
  Outlet* outlet = outlet_for(to);
  return outlet != nullptr && (size <= kLeastFrame || size <= outlet->max_frame(kMessageHeader)) &&
         push_whole(*outlet, data, size);
}

bool PortCore::transmit() {
  SendBuffer& buffer = send_[transmit_at_];
  if (!transmit_any(buffer)) return false;
  buffer.tag.clear();
  transmit_at_ = transmit_at_ + 1 == depth_ ? 0 : transmit_at_ + 1;
  gone_.store(gone_.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // pairs with all_sent()
  return true;
}

[[gnu::noinline]] bool PortCore::transmit_any(SendBuffer& buffer) {
  if (!(buffer.group ? transmit_group(buffer) : transmit_one(buffer))) return false;
  sending_ = false;
  buffer.group.reset();
  if (buffer.capacity > (std::size_t{1} << 20)) buffer.bytes.reset();  // no hoarding of what one large message took
  if (!buffer.bytes) buffer.capacity = 0;
  return true;
}

bool PortCore::transmit_one(SendBuffer& buffer) {
  if (!sending_) {
    sender_ = FrameSender(buffer.bytes.get(), buffer.size);
    sending_ = true;
    stalled_since_ = {};
    if (Error why; outlet_for(buffer.to, &why) == nullptr) undeliverable(buffer, buffer.to, why.what);
  }
  if (last_key_ == buffer.to.key() && !sender_.advance(*last_outlet_)) {
    if (!time_to_look() || last_outlet_->peer_listening()) return false;
    undeliverable(buffer, buffer.to, fmt::format("{} died or closed its port", last_outlet_->peer().text()));
  }
  return true;
}

// There has been no room for a while, and the destinations have not been looked at meanwhile.
bool PortCore::time_to_look() {
  const auto now = std::chrono::steady_clock::now();
  if (stalled_since_ == std::chrono::steady_clock::time_point{}) stalled_since_ = now;
  if (now - stalled_since_ < kLookAfter) return false;
  stalled_since_ = now;
  return true;
}

bool PortCore::send_byes() {
  for (const GroupPlace& place : groups_)
    if (place.group && place.group->tree) ended_trees_.push_back(place.group->tree);
  groups_.clear();
  passing_trees_.clear();
  for (Origin& origin : origins_)
    if (origin.tree) ended_trees_.push_back(std::move(origin.tree));
  last_key_ = ~std::uint64_t{0};
  std::erase_if(ended_trees_, [](const std::shared_ptr<Tree>& tree) { return tree->say_byes(); });
  std::erase_if(outlets_, [](const auto& one) { return one.second->bye() || !one.second->peer_listening(); });
  return outlets_.empty() && ended_trees_.empty();
}

// ---- application: receiving -----------------------------------------------------------------------------------------

// There is one: fewer are held than there are.
PortCore::ReceiveBuffer& PortCore::free_receive_buffer() noexcept {
  while (receive_[receive_at_].tag.valid()) receive_at_ = receive_at_ + 1 == depth_ ? 0 : receive_at_ + 1;
  return receive_[receive_at_];
}

// What the free receive buffer holds now.
inline void PortCore::hand_out(Arrival& arrival, std::span<const std::byte> bytes, PortAddress source) noexcept {
  ReceiveBuffer& buffer = receive_[receive_at_];
  buffer.tag.set();
  ++held_;
  ++buffer.use;
  arrival = {bytes, source, std::uint64_t{buffer.use} << 32 | receive_at_};
  counters_.received_messages.add();
  counters_.received_bytes.add(bytes.size());
}

void PortCore::hand_out(Arrival& arrival, CachedMessage&& whole) noexcept {
  ReceiveBuffer& buffer = receive_[receive_at_];
  buffer.in_slot = false;
  buffer.heap = std::move(whole.bytes);
  hand_out(arrival, {buffer.heap.get(), whole.size}, whole.source);
}

bool PortCore::poll(Arrival& arrival) {
  give_back_spent();
  if (held_ == depth_ || !cache_.empty() || has_much_to_pass_on()) [[unlikely]]
    return poll_cache(arrival);
  ReceiveBuffer& buffer = free_receive_buffer();
  const Frame& frame = buffer.frame;
  if (!inlet_->next(buffer.frame)) {
    fail_broken_origins();
    return false;
  }
  if (frame.fresh || frame.shared_room || !origins_[frame.origin].reader.is_whole(frame)) [[unlikely]]
    return poll_on(arrival, buffer);
  ++frames_received_;
  buffer.in_slot = true;
  hand_out(arrival, {frame.data, frame.length}, origins_[frame.origin].source);
  return true;
}

// From a frame that is not simply a message of a known sender in a place of its own.
[[gnu::noinline]] bool PortCore::poll_on(Arrival& arrival, ReceiveBuffer& buffer) {
  Frame& frame = buffer.frame;
  CachedMessage whole;
  Taken taken = take_frame(frame, whole);
  if (taken == Taken::nothing) taken = take_message(frame, whole);
  if (taken == Taken::nothing) return false;
  if (taken == Taken::in_place && !(frame.shared_room && take_out(frame, whole))) {
    buffer.in_slot = true;
    hand_out(arrival, {frame.data, frame.length}, origins_[frame.origin].source);
  } else {
    hand_out(arrival, std::move(whole));
  }
  return true;
}

// With every receive buffer in use, or messages that came while they were.
[[gnu::noinline]] bool PortCore::poll_cache(Arrival& arrival) {
  if (held_ == depth_) {
    absorb();
    return false;
  }
  if (cache_.empty()) return false;
  (void)free_receive_buffer();
  hand_out(arrival, cache_.take());
  counters_.cache_hits.add();
  return true;
}

Result<void> PortCore::release(std::uint64_t handle) {
  if (!try_release(handle)) return fail(Errc::stale, fmt::format("port {}: this message was released before", number_));
  return {};
}

// From the slot that all senders share into a buffer of the port, so that holding the message holds up nobody. False
// without memory; then it stays where it is.
bool PortCore::take_out(const Frame& frame, CachedMessage& whole) {
  HeapBytes copy = allocate_bytes(frame.length);
  if (!copy) return false;
  copy_bytes(copy.get(), frame.data, frame.length);
  whole = {std::move(copy), frame.length, origins_[frame.origin].source};
  inlet_->release(frame);
  return true;
}

void PortCore::absorb() {
  give_back_spent();
  for (;;) {
    // Without room the arrivals stay where they are, and their senders wait.
    if (!cache_.has_room(inlet_->max_frame()) || has_much_to_pass_on()) return;
    Frame frame;
    CachedMessage whole;
    const Taken taken = take_message(frame, whole);
    if (taken == Taken::nothing) return;
    if (taken == Taken::in_place) {
      const bool added = cache_.add({frame.data, frame.length}, origins_[frame.origin].source);
      inlet_->release(frame);
      if (!added) return note_failure(Errc::no_memory, "no memory to keep an arrived message; it is lost");
    } else {
      cache_.add(std::move(whole));
    }
    counters_.cache_in.add();
    if (cache_.bytes() > counters_.cache_bytes_peak.get())
      counters_.cache_bytes_peak.add(cache_.bytes() - counters_.cache_bytes_peak.get());
  }
}

// What a frame makes of its sender's message. A frame that is not a message of its own has been released after this.
inline PortCore::Taken PortCore::take_frame(const Frame& frame, CachedMessage& whole) {
  ++frames_received_;
  if (frame.fresh) [[unlikely]]
    on_connect(frame);
  if (frame.kind == Kind::bye) [[unlikely]] {
    take_bye(frame);
    return Taken::nothing;
  }
  const FrameReader::Step step = origins_[frame.origin].reader.step(frame);
  const bool of_tree = origins_[frame.origin].reader.meaning() != Meaning::message;
  if (step == FrameReader::Step::whole) [[likely]]
    return of_tree ? take_of_tree(frame, whole) : Taken::in_place;
  const std::uint32_t origin = frame.origin;
  if (!assemble(frame, step, whole)) return Taken::nothing;
  return of_tree ? take_branch(origin, whole) : Taken::assembled;
}

// Takes frames until a message is complete: in place, which is the one frame, or assembled from several.
PortCore::Taken PortCore::take_message(Frame& frame, CachedMessage& whole) {
  while (inlet_->next(frame))
    if (const Taken taken = take_frame(frame, whole); taken != Taken::nothing) return taken;
  fail_broken_origins();
  return Taken::nothing;
}

void PortCore::fail_broken_origins() {
  for (std::int64_t broken = inlet_->take_broken(); broken >= 0; broken = inlet_->take_broken())
    fail_origin(static_cast<std::uint32_t>(broken), "wrote bytes that are no frame and was cut off");
}

void PortCore::take_bye(const Frame& frame) {
  inlet_->release(frame);
  inlet_->drop_origin(frame.origin);
  drop_tree(origins_[frame.origin]);
  origins_[frame.origin].connected = false;
}

void PortCore::on_connect(const Frame& frame) {
  if (frame.origin >= origins_.size()) origins_.resize(frame.origin + 1);
  const OriginInfo info = inlet_->origin(frame.origin);
  Origin& origin = origins_[frame.origin];
  drop_tree(origin);
  origin = Origin{};
  origin.connected = true;
  if (auto process = node_.process_of_card(info.card)) origin.source = {*process, info.port};
}

void PortCore::begin_message(const Frame& frame, Origin& origin) {
  origin.partial = allocate_bytes(origin.reader.total());
  if (!origin.partial) {
    note_failure(Errc::no_memory, fmt::format("no memory for a message of {} from port {} of {}; it is lost",
                                              counted(origin.reader.total(), "byte"), origin.source.port,
                                              inlet_->origin(frame.origin).process.text()));
    origin.losing = true;
    return;
  }
  std::memcpy(origin.partial.get(), frame.data, frame.length);
}

// A frame that is not a message of its own; it is released. True when it completes one, which then is in `whole`.
bool PortCore::assemble(const Frame& frame, FrameReader::Step step, CachedMessage& whole) {
  Origin& origin = origins_[frame.origin];
  const bool good = step != FrameReader::Step::broken;
  if (step == FrameReader::Step::begins) begin_message(frame, origin);
  else if (good && !origin.losing) std::memcpy(origin.partial.get() + origin.reader.offset(), frame.data, frame.length);
  inlet_->release(frame);
  if (!good) {
    fail_origin(frame.origin, "sent frames that make no message");
    return false;
  }
  if (step != FrameReader::Step::completes || std::exchange(origin.losing, false)) return false;
  whole = {std::move(origin.partial), origin.reader.total(), origin.source};
  return true;
}

void PortCore::fail_origin(std::uint32_t index, const std::string& why) {
  const OriginInfo info = inlet_->origin(index);
  note_failure(Errc::peer_failed, fmt::format("{}, port {}, {}", info.process.text(), info.port, why));
  if (index < origins_.size()) origins_[index].partial.reset(), drop_tree(origins_[index]);
  inlet_->drop_origin(index);
}

std::string PortCore::stall_lines(const std::string& who, bool sends) {
  const std::string port = fmt::format("port {}", number_);
  std::string text = fmt::format("{}{}: received {}, posted {}, holds {} of {}, message cache {}\n", who, port,
                                 counted(counters_.received_messages.get(), "message"), counters_.sent_messages.get(),
                                 held_, counted(depth_, "receive buffer"), counted(cache_.bytes(), "byte"));
  if (sends && posted != 0) {
    const SendBuffer& oldest = send_[transmit_at_];
    const auto it = outlets_.find(oldest.to.key());
    text += fmt::format("{}{}: {} waiting to be sent, the first of {} to {}{}\n", who, port, counted(posted, "message"),
                        counted(oldest.size, "byte"),
                        oldest.group ? fmt::format("a group of {}", counted(oldest.group->members.size(), "port"))
                                     : fmt::format("port {}", oldest.to.port),
                        oldest.group ? ""
                        : it == outlets_.end()
                            ? ", which is closed"
                            : fmt::format(" of {}{}", it->second->peer().text(),
                                          it->second->peer_listening() ? ", which runs and does not read"
                                                                       : ", which has ended or closed it"));
  }
  for (std::uint32_t i = 0; i < origins_.size(); ++i) {
    const OriginInfo from = inlet_->origin(i);
    if (!origins_[i].connected || !from.process) continue;
    text += fmt::format("{}{}: hears from {}, port {}", who, port, from.process.text(), from.port);
    if (origins_[i].partial)
      text += fmt::format(", of whose message {} of {} came so far", origins_[i].reader.received(),
                          counted(origins_[i].reader.total(), "byte"));
    text += "\n";
  }
  return text;
}

void PortCore::look_for_dead() {
  if (std::string why = inlet_->why_broken(); !why.empty())
    return note_failure(Errc::peer_failed, std::move(why));  // of the others nothing is to be learnt any more
  for (Error error; inlet_->take_given_up(error);) note_failure(error.code, std::move(error.what));
  const std::int64_t dead = inlet_->find_dead();
  const ProcessId sender = dead >= 0 ? inlet_->origin(static_cast<std::uint32_t>(dead)).process : ProcessId{};
  if (dead >= 0) fail_origin(static_cast<std::uint32_t>(dead), "died");
  node_.dispose_if_idle([&] {
    if (sender) drop_outlets_to(sender);
    else find_dead_receiver();
  });
}

// Of who has died and has sent nothing, no origin tells. In virtual time a death wakes once: then all are looked at.
void PortCore::find_dead_receiver() {
  const std::size_t looks =
      VirtualTime::of_process() != nullptr ? outlets_.size() : std::min<std::size_t>(1, outlets_.size());
  for (std::size_t i = 0; i < looks; ++i) {
    look_at_ = look_at_ + 1 < outlets_.size() ? look_at_ + 1 : 0;
    const auto& [key, outlet] = *std::next(outlets_.begin(), static_cast<std::ptrdiff_t>(look_at_));
    // What closes its port and ends, in this order, has not died.
    if (is_sending_by(outlet) || !outlet->is_near() || is_closed(*outlet) || outlet->peer_listening() ||
        is_closed(*outlet))
      continue;
    const ProcessId who = outlet->peer();
    bool is_sender = false;  // then it will be told of as one
    for (std::uint32_t k = 0; k < origins_.size(); ++k)
      is_sender = is_sender || (origins_[k].connected && inlet_->origin(k).process == who);
    if (is_sender) continue;
    note_failure(Errc::peer_failed,
                 fmt::format("{}, port {}, {}", who.text(), key & 0xFFFF,
                             outlet->has_broken() ? "died, or closed the port without reading all" : "died"));
    return drop_outlets_to(who);
  }
}

// Whoever sends a message finds by itself that it does not arrive, and says so.
bool PortCore::is_sending_by(const std::shared_ptr<Outlet>& outlet) const {
  if (!sending_) return false;
  const auto& group = send_[transmit_at_].group;
  return group ? std::ranges::find(group->outlets, outlet) != group->outlets.end() : outlet.get() == last_outlet_;
}

void PortCore::drop_outlets_to(ProcessId who) {
  std::erase_if(outlets_, [&](const auto& one) {
    return !is_sending_by(one.second) && one.second->peer() == who && !one.second->peer_listening();
  });
  if (!sending_) last_key_ = ~std::uint64_t{0};
}

void PortCore::look_for_dead_at(std::chrono::steady_clock::time_point now) {
  constexpr std::chrono::milliseconds kEvery{20};
  if (now - looked_for_dead_ < kEvery) return;
  looked_for_dead_ = now;
  look_for_dead();
}

void PortCore::note_failure(Errc code, std::string what) {
  std::lock_guard lock(failures_lock_);
  failures_.push_back({code, std::move(what)});
  failure_count_.fetch_add(1, std::memory_order_release);
}

bool PortCore::take_failure(Error& error) {
  if (failure_count_.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard lock(failures_lock_);
  error = std::move(failures_.front());
  failures_.pop_front();
  failure_count_.fetch_sub(1, std::memory_order_relaxed);
  posted_key_ = ~std::uint64_t{0};  // the next post looks whether its destination is still there
  return true;
}

}  // namespace ulfm
