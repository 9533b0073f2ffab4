#include "transport/direct/exchange.hpp"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <new>

#include "job/liveness.hpp"
#include "transport/direct/outlet.hpp"

namespace ulfm::direct {
namespace {

// Frames of an outlet that went out after others had come in: a conversation, for which the memory is worth its making.
constexpr std::uint32_t kTurnsBefore = 4;
// The same for short frames, which are no reason to share memory when there are only some.
constexpr std::uint64_t kPausesBefore = 128;

}  // namespace

control::Fd PassedDescriptors::duplicate(std::uint32_t what) {
  std::lock_guard lock(mutex_);
  const auto found = fds_.find(what);
  return found == fds_.end() ? control::Fd() : control::Fd(fcntl(found->second, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

Exchange::~Exchange() { forget_descriptor(); }

bool Exchange::add(std::atomic<bool>& flag) noexcept {
  const bool is_first = !flag.exchange(true, std::memory_order_relaxed);
  if (!is_first) {
    ended_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with open()
    common_.end();
  }
  return is_first;
}

// ---- the outlet's ---------------------------------------------------------------------------------------------------

// An error has a sentence, for which there may be no memory either.
std::int32_t Exchange::take(std::size_t length) noexcept try {
  if (state_.load(std::memory_order_acquire) != State::open || ended_.load(std::memory_order_relaxed)) return -1;
  const bool is_short = length <= kShortSlot;
  const std::uint32_t first = is_short ? kFirstShort : 0, end = is_short ? kNumbers : kFirstShort;
  for (std::uint32_t word = first / 64; word < end / 64 && length <= kLongSlot; ++word) {
    const std::uint64_t mine = mine_[word].load(std::memory_order_acquire);  // pairs with release(): it has been read
    if (mine == 0) continue;
    // The lowest one, whose lines the caches have.
    const std::uint32_t bit = static_cast<std::uint32_t>(std::countr_zero(mine)), number = word * 64 + bit;
    if (!give_memory(number, length)) return -1;
    mine_[word].fetch_and(~(std::uint64_t{1} << bit), std::memory_order_relaxed);
    return static_cast<std::int32_t>(number);
  }
  return -1;
} catch (const std::bad_alloc&) {
  return -1;
}

// The page that a short slot ends in may have memory already: to ask again does no harm.
bool Exchange::give_memory(std::uint32_t number, std::size_t length) {
  if (length <= sizes_[number] * kPage) return true;
  const std::size_t wanted = number < kFirstShort ? std::bit_ceil(std::max(length, kPage)) : kPage;
  const std::size_t offset = offset_of(number) / kPage * kPage;
  if (!segment_.commit(offset, wanted)) return false;
  sizes_[number] = static_cast<std::uint16_t>(wanted / kPage);
  return true;
}

void Exchange::own_all() noexcept {
  for (std::uint32_t number = 0; number < kNumbers; ++number)
    if (exists(number)) mine_[number / 64].fetch_or(std::uint64_t{1} << number % 64, std::memory_order_relaxed);
}

std::uint32_t Exchange::number_at(std::size_t offset) const noexcept {
  const std::size_t first_short = offset_of(kFirstShort);
  return static_cast<std::uint32_t>(offset < first_short ? (offset - kPage) / kLongSlot
                                                         : kFirstShort + (offset - first_short) / kShortSlot);
}

bool Exchange::count_turn(bool is_long) noexcept {
  if (!is_long) return pauses_.get() >= kPausesBefore;
  const std::uint64_t heard = heard_.get();
  return std::exchange(seen_, heard) != heard && ++turns_ >= kTurnsBefore;
}

bool Exchange::wants_notice(ExchangeNotice& notice, bool is_long) noexcept {
  if (!may_be_made()) return false;
  const State state = state_.load(std::memory_order_relaxed);
  if (state == State::announced) {
    look_at_answer();
    return false;
  }
  if (state == State::none) {
    if (!count_turn(is_long) || ended_.load(std::memory_order_relaxed)) return false;
    state_.store(make() ? State::made : State::over, std::memory_order_relaxed);
    if (state_.load(std::memory_order_relaxed) == State::over) return false;
  }
  notice = {header().token, segment_.fd(), what_};
  return true;
}

bool Exchange::make() noexcept {
  try {
    auto segment = Segment::create("ulfm-exchange", size_of(slots_));
    if (!segment || !segment->commit(0, kPage)) return false;
    auto* header = segment->at<ExchangeHeader>(0);
    header->token = random_token();
    header->slots = slots_;
    header->magic = kExchangeMagic;
    what_ = passed_.add(segment->fd());
    segment_ = std::move(*segment);
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // frames go by the lanes
  }
}

// The descriptor has served: memory that is mapped needs none.
void Exchange::look_at_answer() noexcept try {
  const auto answer = static_cast<ExchangeAnswer>(header().answer.load(std::memory_order_relaxed));
  if (answer == ExchangeAnswer::none) return;
  forget_descriptor();
  auto mapped = answer == ExchangeAnswer::mapped ? segment_.view(size_of(slots_)) : Result<Segment>(Segment());
  segment_ = mapped ? std::move(*mapped) : Segment();
  if (!segment_) return state_.store(State::over, std::memory_order_relaxed);
  own_all();
  open();
} catch (const std::bad_alloc&) {
  state_.store(State::over, std::memory_order_relaxed);
}

void Exchange::open() noexcept {
  state_.store(State::open, std::memory_order_release);  // pairs with locate(), take()
  common_.open(segment_.at<Cell>(kCommonCellAt));
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with add(): one of the two ends it
  if (ended_.load(std::memory_order_relaxed)) common_.end();
}

void Exchange::forget_descriptor() noexcept {
  if (std::exchange(what_, 0) != 0) passed_.remove(what_);
}

// ---- the inlet's ----------------------------------------------------------------------------------------------------

void Exchange::adopt(const ExchangeNotice& notice, const Opener& opener, const DirectCard& of) noexcept try {
  if (makes_ || state_.load(std::memory_order_relaxed) != State::none) return;
  auto segment = opener.open(of, notice.fd, notice.what);
  if (!segment || segment->size() < size_of(1)) return;
  const auto* header = segment->at<ExchangeHeader>(0);
  const std::uint32_t slots = header->slots;
  if (header->magic != kExchangeMagic || header->token != notice.token || slots == 0 || slots > kMostExchangeSlots ||
      segment->size() < size_of(slots))
    return;
  const bool wanted = !ended_.load(std::memory_order_relaxed);
  slots_ = slots;
  segment_ = std::move(*segment);
  if (wanted) open();
  this->header().answer.store(static_cast<std::uint32_t>(wanted ? ExchangeAnswer::mapped : ExchangeAnswer::refused),
                              std::memory_order_relaxed);
} catch (const std::bad_alloc&) {
  // Without an answer the other process goes on by its lane.
}

const std::byte* Exchange::locate(std::uint32_t number, std::size_t length) noexcept {
  if (state_.load(std::memory_order_acquire) != State::open || !exists(number) || is_mine(number) ||
      length > (number < kFirstShort ? kLongSlot : kShortSlot))
    return nullptr;
  return slot(number);
}

bool Exchange::release(const std::byte* data) noexcept {
  if (state_.load(std::memory_order_relaxed) != State::open || data < slot(0) ||
      data >= segment_.base() + size_of(slots_))
    return false;
  const std::uint32_t number = number_at(static_cast<std::size_t>(data - segment_.base()));
  mine_[number / 64].fetch_or(std::uint64_t{1} << number % 64, std::memory_order_release);  // pairs with take()
  return true;
}

// ---- those of a port ------------------------------------------------------------------------------------------------

std::shared_ptr<Exchange> ExchangeTable::with(std::uint64_t token, std::uint16_t port) noexcept try {
  const std::pair own(token_, port_), other(token, port);
  if (slots_ == 0 || own == other) return nullptr;
  std::lock_guard lock(mutex_);
  if (known_.size() >= sweep_at_) {
    std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
    sweep_at_ = 2 * known_.size() + 16;
  }
  std::weak_ptr<Exchange>& known = known_[other];
  auto exchange = known.lock();
  if (!exchange) {
    exchange = std::make_shared<Exchange>(own < other, slots_, passed_);
    known = exchange;
  }
  return exchange;
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace ulfm::direct
