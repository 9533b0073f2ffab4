// What virtual time keeps in the arena, and how it was asked for. See docs/time.md for the rules.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "fabric/durations.hpp"

namespace ulfm::fabric {

enum class ComputeTime : std::uint32_t { none, measured, fixed, recorded };

/// What `--time virtual,...` says.
struct TimeSettings {
  std::uint32_t on = 0;  ///< 0: the host's time
  ComputeTime compute = ComputeTime::measured;
  std::uint64_t fixed = 0;           ///< picoseconds between two calls
  std::uint64_t factor = 1'000'000;  ///< millionths: of measured time
  char recorded[256] = {};           ///< file to read gaps from; ".RANK" is appended
  char record[256] = {};             ///< file to write gaps to
};
/// Errc::invalid with a sentence.
Result<TimeSettings> parse_time(std::string_view text);
/// A thread that makes progress by itself looks as often as the host lets it, and its looks would take the process's
/// time: why it must not be asked for, or nothing when neither of MPICH's variables does.
std::string progress_thread_trouble();

enum class ClockState : std::uint32_t {
  unused,
  runs,   ///< will put nothing into the network that is stamped `now` or earlier
  waits,  ///< until `until`, or for what `wants` says
  ended
};

/// The clock of a process.
struct alignas(128) ProcessClock {
  /// A futex, too: its process sleeps while it is `waits`. The process that wakes it releases what it was woken for.
  std::atomic<ClockState> state;
  /// Picoseconds. While it runs its process alone writes it, with a full barrier: see VirtualClock::spend(). The frames
  /// that are stamped with it or with less are in the sending queue.
  std::atomic<std::uint64_t> now;
  std::uint64_t until;       ///< while it waits; kNoMoment: only `wants` ends it
  std::uint64_t then_until;  ///< of a wait whose first part, until `until`, is a look
  std::uint32_t looks;       ///< 1: the wait is in that part
  std::uint32_t wants;       ///< bits of VirtualClock::Wants
  std::uint32_t woken;       ///< VirtualTime::Woken
  std::uint32_t ended_seen;  ///< how many processes had ended when it was last notified
  std::uint32_t tid;         ///< process that has this clock; to detect its death
  std::uint32_t begun_by;    ///< endpoint + 1 of the process that began it (begin_place) and has not seen its end yet
  /// Frames that have come to its ports, and slots that have come back to it. Counted under the lock; its process reads
  /// them there, or behind a look, when nothing more can come by its time.
  std::atomic<std::uint64_t> arrived, returned;
  std::uint64_t sequence;    ///< frames sent so far
  std::uint64_t local_free;  ///< its copies to neighbours are done then
  /// Order, and 1, of its frame for many for which the network has no room, and when that is tried again: what it sent
  /// later waits. 0: none.
  std::uint64_t refused, again;
  std::uint64_t computing, messages, waiting;  ///< where its time went
  std::uint64_t gaps_missed;                   ///< calls behind the end of the recorded computing
  std::uint64_t gaps_left;                     ///< recorded ones behind the last call
  char call[32];                               ///< that the program is in; for the table of waits
};

/// When a slot was sent, and its place among all frames.
struct SlotTime {
  std::uint64_t stamp;
  std::uint64_t order;  ///< endpoint and its count: unlike for all slots on their way
};

/// Something that happens to a slot at a moment.
struct TimedEvent {
  enum Kind : std::uint32_t { enter, arrive, room, send };
  std::uint64_t time;
  std::uint64_t order;
  std::uint32_t slot;
  Kind kind;
};

/// In TimeHeader::lock.
inline constexpr std::uint32_t kAwaited = 1u << 31;

struct TimeHeader {
  TimeSettings settings;
  Durations costs;
  /// A futex: 0 free, otherwise endpoint + 1 of its holder, and kAwaited when a process sleeps for it. Taking it
  /// acquires, and pairs with the exchange that releases it.
  alignas(64) std::atomic<std::uint32_t> lock;
  /// Everything before it has happened. Stored with a full barrier: see VirtualClock::spend().
  alignas(64) std::atomic<std::uint64_t> passed;
  /// A process waits for that moment to pass: a process whose clock may pass it takes the lock then.
  std::atomic<std::uint64_t> alarm;
  /// Processes that look for their turn before they sleep; of more than there are cores at most as many as cores.
  alignas(64) std::atomic<std::uint32_t> lookers;
  std::uint32_t cores;
  // Under the lock.
  std::uint32_t events;       ///< in the heap
  std::uint32_t ended;        ///< processes that have ended
  std::uint32_t idle_rounds;  ///< looks on suspicion since something happened
  std::uint32_t standstills;  ///< 1: processes have been asked for whom they wait since something happened
  std::uint32_t in_barrier;
  std::uint32_t expecting;  ///< see VirtualClock::expect_processes()
  std::uint64_t barrier_at;
  std::uint64_t handled;  ///< events
};

}  // namespace ulfm::fabric
