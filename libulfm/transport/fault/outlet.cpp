#include "transport/fault/outlet.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace ulfm::fault {
namespace {

constexpr std::chrono::nanoseconds kTryAgain{100'000};  // a due frame that found no room

void count(std::atomic<std::uint64_t>& counter, std::uint64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);
}

}  // namespace

// ---- the outlets of a port ------------------------------------------------------------------------------------------

void PortOutlets::add(FaultOutlet& outlet) {
  std::lock_guard lock(lock_);
  outlets_.push_back(&outlet);
}

void PortOutlets::remove(FaultOutlet& outlet) {
  std::lock_guard lock(lock_);
  std::erase(outlets_, &outlet);
}

void PortOutlets::pump() {
  if (held.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(lock_);
  const auto now = clock_.now();
  for (FaultOutlet* outlet : outlets_) outlet->send_due(now);
}

std::chrono::nanoseconds PortOutlets::next_deadline() {
  if (held.load(std::memory_order_relaxed) == 0) return kForever;
  std::lock_guard lock(lock_);
  auto earliest = kForever;
  for (const FaultOutlet* outlet : outlets_) earliest = std::min(earliest, outlet->earliest());
  if (earliest == kForever) return kForever;
  return std::max(earliest - clock_.now(), std::chrono::nanoseconds(0));
}

// ---- one outlet -----------------------------------------------------------------------------------------------------

FaultOutlet::FaultOutlet(std::unique_ptr<Outlet> under, const FateSource& fates, const FaultPlan& plan,
                         std::shared_ptr<FaultCounters> counters, std::shared_ptr<PortOutlets> port)
    : ForwardingOutlet(std::move(under)),
      fates_(fates),
      cards_check_(plan.corrupt > 0 && under_->expect_noise()),
      delay_by_(plan.delay_by),
      counters_(std::move(counters)),
      port_(std::move(port)) {
  port_->add(*this);
}

FaultOutlet::~FaultOutlet() {
  port_->remove(*this);
  release_held();
}

bool FaultOutlet::push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) {
  std::lock_guard lock(port_->lock());
  if (!held_.empty()) {
    send_due(port_->clock().now());
    // Those held back may have taken the room that this one was cut for.
    if (!fits(header.size(), length)) return false;
  }
  if (!fate_) fate_ = fates_.draw();
  if (!treat(kind, header, data, length)) return false;
  fate_.reset();
  count(counters_->frames);
  let_one_pass();
  return true;
}

bool FaultOutlet::is_spared() {
  if (!held_.empty()) send_due(port_->clock().now());
  if (!fate_) fate_ = fates_.draw();
  return !fate_->drop && !fate_->corrupt && !fate_->duplicate && !fate_->reorder && !fate_->delay;
}

void FaultOutlet::went() {
  fate_.reset();
  count(counters_->frames);
  count(counters_->forwarded);
  let_one_pass();
}

FaultMulticast::FaultMulticast(std::unique_ptr<Multicast> under, std::span<Outlet* const> outlets)
    : ForwardingMulticast(std::move(under)) {
  for (Outlet* outlet : outlets) outlets_.push_back(static_cast<FaultOutlet*>(outlet));
}

bool FaultMulticast::push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
                          std::vector<std::uint32_t>& who) {
  std::lock_guard lock(outlets_[who.front()]->lock());  // of their port; others may be gone
  std::vector<std::uint32_t> spared, others;
  for (const std::uint32_t member : who) (outlets_[member]->is_spared() ? spared : others).push_back(member);
  if (spared.empty()) {
    data.skip(length);
    return true;
  }
  std::vector<std::uint32_t> left = spared;
  if (!under_->push(kind, headers, data, length, left)) return false;
  for (const std::uint32_t member : spared)
    if (std::find(left.begin(), left.end(), member) == left.end()) outlets_[member]->went();
    else others.push_back(member);
  who = std::move(others);
  return true;
}

// Does to a frame what its fate says; false, with nothing done, when it should leave now and there is no room.
bool FaultOutlet::treat(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) {
  const Fate& fate = *fate_;
  if (fate.drop) {
    data.skip(length);  // it counts as taken
    count(counters_->dropped);
    return true;
  }
  const bool later = fate.reorder || fate.delay;
  const bool damaged = fate.corrupt && header.size() + length != 0;
  if (!later && !fate.duplicate && !damaged) return forward(kind, header, data, length);

  Gather pieces = data;
  Held frame = copy(kind, header, pieces, length);
  if (damaged) damage(frame);
  if (!later && !forward(frame)) return false;
  data = pieces;
  if (damaged) count(counters_->corrupted);
  if (fate.duplicate) count(counters_->duplicated);
  if (fate.reorder) count(counters_->reordered);
  if (fate.delay) count(counters_->delayed);
  frame.behind = fate.reorder ? fate.behind + 1 : 0;  // this one is counted too when it has been treated
  frame.due = port_->clock().now() + (fate.delay ? delay_by_ : FaultTransport::kReorderLimit);
  if (later) {
    if (fate.duplicate) hold_back(frame);
    hold_back(std::move(frame));
  } else if (fate.duplicate && !forward(frame)) {
    hold_back(std::move(frame));
  }
  return true;
}

bool FaultOutlet::forward(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) {
  if (!under_->push(kind, header, data, length)) return false;
  count(counters_->forwarded);
  return true;
}

bool FaultOutlet::forward(const Held& frame) {
  const iovec piece{const_cast<std::byte*>(frame.bytes.data()) + frame.header, frame.length()};
  Gather data(std::span(&piece, 1));
  if (!frame.turned.empty()) under_->turn_bits(frame.turned);
  return forward(frame.kind, std::span(frame.bytes.data(), frame.header), data, frame.length());
}

// What fitted when it came need not fit now.
bool FaultOutlet::fits(std::size_t header, std::size_t length) const {
  return length <= kLeastFrame || length <= under_->max_frame(header);
}

FaultOutlet::Held FaultOutlet::copy(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) {
  Held frame{kind, std::vector<std::byte>(header.size() + length), header.size()};
  std::copy(header.begin(), header.end(), frame.bytes.begin());
  if (length != 0) data.copy(frame.bytes.data() + header.size(), length);
  return frame;
}

// Different bits, so that none is turned back. Without cards that check, the damage is done here.
void FaultOutlet::damage(Held& frame) const {
  const std::uint64_t bits = std::uint64_t{frame.bytes.size()} * 8;
  const std::uint64_t turned = std::min<std::uint64_t>(fate_->bits, bits);
  Random random(fate_->entropy);
  std::vector<std::uint64_t> chosen;
  while (chosen.size() < turned) {
    const std::uint64_t bit = random.below(bits);
    if (std::find(chosen.begin(), chosen.end(), bit) == chosen.end()) chosen.push_back(bit);
  }
  if (cards_check_) return frame.turned.swap(chosen);
  for (const std::uint64_t bit : chosen) frame.bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
}

void FaultOutlet::hold_back(Held frame) {
  held_.push_back(std::move(frame));
  port_->held.fetch_add(1, std::memory_order_relaxed);
}

// One more frame has gone past those that are held back behind others.
void FaultOutlet::let_one_pass() {
  for (Held& frame : held_)
    if (frame.behind != 0 && --frame.behind == 0) frame.due = std::chrono::nanoseconds(0);
  if (!held_.empty()) send_due(port_->clock().now());
}

void FaultOutlet::send_due(std::chrono::nanoseconds now) {
  for (auto frame = held_.begin(); frame != held_.end();) {
    if (frame->due > now) {
      ++frame;
    } else if (!fits(frame->header, frame->length())) {
      frame = lose(frame);
    } else if (forward(*frame)) {
      frame = held_.erase(frame);
      port_->held.fetch_sub(1, std::memory_order_relaxed);
    } else {
      frame->due = now + kTryAgain;
      ++frame;
    }
  }
}

std::deque<FaultOutlet::Held>::iterator FaultOutlet::lose(const std::deque<Held>::iterator& frame) {
  count(counters_->dropped);
  port_->held.fetch_sub(1, std::memory_order_relaxed);
  return held_.erase(frame);
}

std::chrono::nanoseconds FaultOutlet::earliest() const noexcept {
  auto earliest = kForever;
  for (const Held& frame : held_) earliest = std::min(earliest, frame.due);
  return earliest;
}

bool FaultOutlet::bye() {
  std::lock_guard lock(port_->lock());
  release_held();
  return under_->bye();
}

// Everything held leaves now, out of turn. What finds no room is lost, as any frame of this outlet may be.
void FaultOutlet::release_held() {
  for (const Held& frame : held_)
    if (!fits(frame.header, frame.length()) || !forward(frame)) count(counters_->dropped);
  port_->held.fetch_sub(static_cast<std::uint32_t>(held_.size()), std::memory_order_relaxed);
  held_.clear();
}

}  // namespace ulfm::fault
