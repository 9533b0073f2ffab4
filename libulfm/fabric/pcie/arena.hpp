// Memory of the production model: plain records found by index, in a segment that processes share.
//
//   journal | clock, memory, totals | boards | processes | pools | messages
//
// Each array has one element more than there are things, and an index out of bounds finds that one: what others may
// have written over an index leads nowhere.
//
// What a record holds is changed only through edit(), which puts its lines into the journal first. A step of the model
// ends by emptying the journal; a process that dies in the middle of a step leaves it filled, and the next holder
// of the engine restores the lines, as if the step had not begun.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/align.hpp"
#include "fabric/pcie/parameters.hpp"

namespace ulfm::fabric::pcie {

inline constexpr std::uint32_t kNone = 0xffffffff;

/// Lines as they were before the step.
struct Journal {
  static constexpr std::uint32_t kLines = 60;
  std::atomic<std::uint32_t> count;  ///< the successor of a dead process reads it: pairs with that process's end
  std::uint32_t where[kLines];       ///< line of the arena
  alignas(kLine) std::byte before[kLines][kLine];
};

/// First in, first out: numbers of records that hold the number behind them.
struct Queue {
  std::uint32_t first, last;
};

enum class Part : std::uint32_t { between, up, down, grant };

/// A board in RelayClock's words. What names no board has no bit.
constexpr std::uint32_t bit(std::uint32_t board) { return board < 32 ? std::uint32_t{1} << board : 0; }

/// Where the turn stands.
struct alignas(kLine) RelayClock {
  std::uint64_t now;
  std::uint64_t steps;
  Part part;
  std::uint32_t left;      ///< boards that this part of the turn has yet to look at, a bit each
  std::uint32_t up, down;  ///< boards with something to send, or to be sent
  std::uint32_t dead;      ///< boards
  std::uint32_t host_dead;
  std::uint32_t posted;   ///< messages so far
  std::uint32_t present;  ///< messages that have not ended
};

struct alignas(kLine) Memory {
  Queue granting;  ///< pools
  Queue ended;     ///< messages
  std::uint64_t stored, most_stored;
  std::uint64_t reserved, most_reserved;
};

struct alignas(kLine) RelayTotals {
  std::uint64_t entered, left, lost, bytes_in, bytes_out, bytes_lost;
};

struct alignas(kLine) Board {
  Queue control;  ///< messages
  Queue sending;  ///< processes
  Queue down;     ///< pools
  alignas(kLine) BoardCounters counters;
};

struct alignas(kLine) RelayProcess {
  Queue permitted;  ///< messages
  std::uint32_t next;
  std::uint32_t spare;
  std::uint64_t blocked;  ///< ports whose pool is
};

struct alignas(kLine) RelayPool {
  Queue waiting, ready;      ///< messages
  std::uint32_t next_grant;  ///< pool
  std::uint32_t next_down;   ///< pool
  std::uint64_t promised;    ///< bytes, of all messages that were ever permitted and not lost
  std::uint32_t blocked;
  std::uint32_t board;
  alignas(kLine) PoolCounters counters;
  // The reader's own line, never in the journal. release() adds to `read` and looks at `awaited`; grant() sets
  // `awaited` and looks at `read` again: seq_cst, so that one sees the other. release()'s exchange pairs with woken():
  // what has been read. Stored 0 relaxed, `awaited` cancels the wish: a reader that still sees it notifies in vain.
  alignas(kLine) std::atomic<std::uint64_t> read;  ///< bytes so far; read relaxed for counters only
  std::atomic<std::uint32_t> awaited;              ///< the host wants to hear of the next reading
};

enum class Phase : std::uint8_t { unused, posted, announced, permitted, ended };

struct alignas(kLine) RelayMessage {
  std::uint32_t next;       ///< in the board's, pool's or process's queue, or among the ended
  std::uint32_t next_down;  ///< in a pool's `ready`
  std::uint32_t sequence, bytes;
  std::uint16_t from_board, to_board, from_process, to_process;
  std::uint16_t to_port, fragments, gathered, forwarded;
  Phase phase;
  std::uint8_t is_ready, delivered, spare;
  std::uint32_t pool;
  std::uint64_t announced;
  union {
    std::uint64_t sent;      ///< fragments that have left; in virtual time more than have come to the host
    std::uint64_t ended_at;  ///< from its end on
  };
  std::uint64_t since;  ///< in virtual time: its sender knows of the permission, then: its data wait in the host
};
static_assert(sizeof(RelayMessage) == kLine);

/// In virtual time: a link in one direction, with the packets that are on it. Not in the journal: a job in virtual time
/// does not go on behind the death of a process that moved the network.
struct alignas(kLine) RelayWire {
  static constexpr std::uint32_t kRoom = 16;  ///< packets; the next one waits for an arrival
  struct Packet {
    std::uint64_t at;  ///< cycle in which it is there
    std::uint32_t sequence, length;
    std::uint32_t control, last;
  };
  std::uint64_t free_at;  ///< the next packet may begin
  std::uint64_t busy, waited, bytes;
  std::uint32_t first, count;
  Packet packets[kRoom];
};

class BoardArena {
 public:
  BoardArena(std::byte* memory, const Parameters& p) : memory_(memory), p_(p) {
    at_clock_ = sizeof(Journal);
    at_boards_ = at_clock_ + sizeof(RelayClock) + sizeof(Memory) + sizeof(RelayTotals);
    at_processes_ = at_boards_ + (p.boards + std::size_t{1}) * sizeof(Board);
    at_pools_ = at_processes_ + (p.processes + std::size_t{1}) * sizeof(RelayProcess);
    at_messages_ = at_pools_ + (pools() + std::size_t{1}) * sizeof(RelayPool);
    at_wires_ = at_messages_ + (p.frames + std::size_t{1}) * sizeof(RelayMessage);
    bytes_ = at_wires_ + (p.lanes != 0 ? (2 * p.boards + std::size_t{1}) * sizeof(RelayWire) : 0);
  }
  std::size_t bytes() const noexcept { return bytes_; }
  std::uint32_t pools() const noexcept { return p_.processes * kPortsPerProcess; }

  Journal& journal() const noexcept { return *at<Journal>(0); }
  const RelayClock& clock() const noexcept { return *at<RelayClock>(at_clock_); }
  const Memory& memory() const noexcept { return *at<Memory>(at_clock_ + sizeof(RelayClock)); }
  const RelayTotals& totals() const noexcept {
    return *at<RelayTotals>(at_clock_ + sizeof(RelayClock) + sizeof(Memory));
  }
  const Board& board(std::uint32_t i) const noexcept { return at<Board>(at_boards_)[i < p_.boards ? i : p_.boards]; }
  const RelayProcess& process(std::uint32_t i) const noexcept {
    return at<RelayProcess>(at_processes_)[i < p_.processes ? i : p_.processes];
  }
  const RelayPool& pool(std::uint32_t i) const noexcept { return at<RelayPool>(at_pools_)[i < pools() ? i : pools()]; }
  const RelayMessage& message(std::uint32_t i) const noexcept {
    return at<RelayMessage>(at_messages_)[i < p_.frames ? i : p_.frames];
  }
  /// Up from that board, and down to it. Only in virtual time.
  RelayWire& up(std::uint32_t board) const noexcept { return wires()[board < p_.boards ? 2 * board : 2 * p_.boards]; }
  RelayWire& down(std::uint32_t board) const noexcept {
    return wires()[board < p_.boards ? 2 * board + 1 : 2 * p_.boards];
  }
  /// The reader's line.
  RelayPool& reader(std::uint32_t i) const noexcept { return const_cast<RelayPool&>(pool(i)); }

  /// The record, to be changed in this step: its lines go into the journal. Of a pool only the lines that are the
  /// host's.
  template <typename T>
  T& edit(const T& record) const noexcept {
    keep(reinterpret_cast<const std::byte*>(&record), sizeof(T) / kLine);
    return const_cast<T&>(record);
  }
  RelayPool& edit(const RelayPool& record) const noexcept {
    keep(reinterpret_cast<const std::byte*>(&record), 1);
    return const_cast<RelayPool&>(record);
  }
  PoolCounters& edit_counters(const RelayPool& record) const noexcept {
    keep(reinterpret_cast<const std::byte*>(&record.counters), 1);
    return const_cast<PoolCounters&>(record.counters);
  }
  /// The queues of a board, and what it counts.
  Board& edit_queues(const Board& record) const noexcept {
    keep(reinterpret_cast<const std::byte*>(&record), 1);
    return const_cast<Board&>(record);
  }
  BoardCounters& edit_counters(const Board& record) const noexcept {
    keep(reinterpret_cast<const std::byte*>(&record.counters), 1);
    return const_cast<BoardCounters&>(record.counters);
  }

  /// The step is over.
  void commit() const noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // changes stay before it
    journal().count.store(0, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  /// Puts back what an unfinished step has changed; false when the journal makes no sense.
  bool roll_back() const noexcept;

 private:
  RelayWire* wires() const noexcept { return at<RelayWire>(at_wires_); }
  template <typename T>
  T* at(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  // The lines are in the journal before anything in them changes. Only the end of this process makes somebody else
  // look, and then all its stores have been made, so that order in the program is enough.
  void keep(const std::byte* record, std::size_t lines) const noexcept {
    Journal& j = journal();
    std::uint32_t count = j.count.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < lines && count < Journal::kLines; ++i, ++count) {
      j.where[count] = static_cast<std::uint32_t>((record - memory_) / static_cast<std::ptrdiff_t>(kLine) +
                                                  static_cast<std::ptrdiff_t>(i));
      std::memcpy(j.before[count], record + i * kLine, kLine);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    j.count.store(count, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  std::byte* memory_;
  Parameters p_;
  std::size_t at_clock_ = 0, at_boards_ = 0, at_processes_ = 0, at_pools_ = 0, at_messages_ = 0, at_wires_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace ulfm::fabric::pcie
