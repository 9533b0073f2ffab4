// Memory in which the two directions of a connection take turns.
//
//   ExchangeHeader, the common cell | long slots ... | short slots ...
//
// Each slot belongs to one of the two processes. That one may write the data of a frame there; its cell in the lane
// says so, and with the frame the slot goes over to its receiver, once that has released it. So an answer is written
// where the question was read, by the core that has just read it. To write lines that another core has read last, as
// in a ring, costs a second journey of each line: with 4 to 256 KB two to four times the time (decision 0047).
//
// Who owns a slot is in no shared memory: each process knows which ones are its own, and frames say the rest.
//
// The common cell (base/common_cell.hpp) is the same for short frames and for the cells of long ones.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "base/common_cell.hpp"
#include "base/counters.hpp"
#include "base/segment.hpp"
#include "transport/direct/passed.hpp"

namespace ulfm::direct {

class Opener;
struct DirectCard;

inline constexpr std::uint64_t kExchangeMagic = 0x3130'6863'7865'6c75ull;
inline constexpr std::uint32_t kMostExchangeSlots = 32;
inline constexpr std::uint32_t kLongSlot = 32 * 1024;
inline constexpr std::uint32_t kShortSlot = 4 * 1024;  ///< so that a window of short messages has slots, too
inline constexpr std::uint32_t kShortSlots = 8;        ///< for each long one
/// Shorter data go by the lane. Four lines come with the cell, prefetched; a fifth one is waited for.
inline constexpr std::size_t kLeastExchanged = 4 * kLine + 1;
static_assert(kLeastExchanged > kInline, "what fits a cell is in it");

struct ExchangeHeader {
  std::uint64_t magic;
  std::uint64_t token;
  std::uint32_t slots;                ///< long ones
  std::atomic<std::uint32_t> answer;  ///< an ExchangeAnswer. Publishes nothing: frames do
};
/// Where the common cell lies: in the header's page, with no line beside it that anybody writes.
inline constexpr std::size_t kCommonCellAt = 1024;
enum class ExchangeAnswer : std::uint32_t { none, mapped, refused };

/// The announcement of such memory to the other process.
struct ExchangeNotice {
  std::uint64_t token;
  std::int32_t fd;
  std::uint32_t what;  ///< its number on the control channel
};

/// What one process knows of the memory that its port and another port share. One of the two makes it, once both have
/// sent long frames in turn. It is for one connection each way: with a second one, which may come after the first has
/// ended, nothing is written there any more, and what was written can still be read.
///
/// Threads: calls of the outlet by one thread at a time, those of the inlet by one, both at once.
class Exchange {
 public:
  Exchange(bool makes, std::uint32_t slots, PassedDescriptors& passed)
      : makes_(makes), slots_(slots), passed_(passed), common_(makes) {}
  ~Exchange();

  // ---- the outlet's ----
  /// False: it is not the first one.
  bool add_outlet() noexcept { return add(has_outlet_); }
  /// The number of a slot for so many bytes, which are to be sent now; -1 when there is none, or no memory for it.
  std::int32_t take(std::size_t length) noexcept;
  /// There is no such memory yet, and this process is the one that may make it.
  bool may_be_made() const noexcept { return makes_ && state_.load(std::memory_order_relaxed) < State::open; }
  /// A frame goes by the lane. True: `notice` has to be sent before anything else, and announced() called.
  bool wants_notice(ExchangeNotice& notice, bool is_long) noexcept;
  void announced() noexcept { state_.store(State::announced, std::memory_order_relaxed); }

  // ---- the inlet's ----
  bool add_origin() noexcept { return add(has_origin_); }
  /// The other process has announced the memory: maps it, and says whether it could.
  void adopt(const ExchangeNotice& notice, const Opener& opener, const DirectCard& of) noexcept;
  /// A long frame has come by the lane.
  void heard() noexcept { heard_.add(); }
  /// Frames have come by the lane, and there are no more. Returns how many have lain in the common cell since the last
  /// time.
  std::uint32_t paused() noexcept {
    pauses_.add();
    const std::uint32_t turns = common_.turns();
    return turns - std::exchange(counted_turns_, turns);
  }
  /// Where the data of a frame lie that has come; nullptr when they cannot be there. The slot is this process's as soon
  /// as it is released.
  const std::byte* locate(std::uint32_t slot, std::size_t length) noexcept;
  /// The frame with these data has been read; false when they lie elsewhere.
  bool release(const std::byte* data) noexcept;

  /// For the lanes of the two.
  CommonCell& common() noexcept { return common_; }

  std::byte* slot(std::uint32_t number) const noexcept { return segment_.base() + offset_of(number); }

 private:
  enum class State : std::uint32_t { none, made, announced, open, over };
  // Numbers of slots: the long ones, then, from kFirstShort on, the short ones.
  static constexpr std::uint32_t kFirstShort = 64;
  static constexpr std::uint32_t kNumbers = kFirstShort + kMostExchangeSlots * kShortSlots;

  bool add(std::atomic<bool>& flag) noexcept;
  bool count_turn(bool is_long) noexcept;  // true: the two have answered each other often enough
  bool make() noexcept;
  void open() noexcept;
  void look_at_answer() noexcept;
  void forget_descriptor() noexcept;
  bool give_memory(std::uint32_t number, std::size_t length);
  ExchangeHeader& header() const noexcept { return *segment_.at<ExchangeHeader>(0); }
  static std::size_t size_of(std::uint32_t slots) {
    return kPage + std::size_t{slots} * (kLongSlot + kShortSlots * kShortSlot);
  }
  std::size_t offset_of(std::uint32_t number) const noexcept {
    return number < kFirstShort
               ? kPage + std::size_t{number} * kLongSlot
               : kPage + std::size_t{slots_} * kLongSlot + std::size_t{number - kFirstShort} * kShortSlot;
  }
  std::uint32_t number_at(std::size_t offset) const noexcept;
  bool is_mine(std::uint32_t number) const noexcept {
    return (mine_[number / 64].load(std::memory_order_relaxed) >> number % 64 & 1) != 0;
  }
  bool exists(std::uint32_t number) const noexcept {
    return number < kFirstShort ? number < slots_ : number - kFirstShort < slots_ * kShortSlots;
  }
  void own_all() noexcept;

  const bool makes_;
  std::uint32_t slots_;
  PassedDescriptors& passed_;
  CommonCell common_;
  std::atomic<bool> has_outlet_{false}, has_origin_{false};
  std::atomic<bool> ended_{false};  // a second outlet or origin
  Segment segment_;                 // before open: of the one that makes or adopts it; then of both
  std::atomic<State> state_{State::none};
  std::atomic<std::uint64_t> mine_[kNumbers / 64]{};  // bits: slots that this process may write
  std::uint16_t sizes_[kNumbers]{};                   // pages of each that have memory by the outlet
  std::uint32_t what_ = 0;
  Counter heard_, pauses_;
  std::uint64_t seen_ = 0;           // of heard_, by the outlet
  std::uint32_t counted_turns_ = 0;  // of the common cell, by the inlet
  std::uint32_t turns_ = 0;          // frames that went out after others had come
};

/// The exchanges of one port. Any thread.
class ExchangeTable {
 public:
  ExchangeTable(std::uint64_t token, std::uint16_t port, std::uint32_t slots, PassedDescriptors& passed)
      : token_(token), port_(port), slots_(slots), passed_(passed) {}
  /// With a port of another process; nullptr when there is none, or no memory for it.
  std::shared_ptr<Exchange> with(std::uint64_t token, std::uint16_t port) noexcept;

 private:
  std::uint64_t token_;
  std::uint16_t port_;
  std::uint32_t slots_;
  PassedDescriptors& passed_;
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint16_t>, std::weak_ptr<Exchange>> known_;
  std::size_t sweep_at_ = 16;
};

}  // namespace ulfm::direct
