// What the processes of a job leave for ulfmrun, which stays until the job has ended: the events of a trace and the
// counters. It is memory of ulfmrun's, so what a process has noted is there also when that process was killed.
//
// ULFM_RECORD in the environment of the ranks says where it is. A process that finds none, because nobody wants it or
// because it runs on another host, keeps what it notes to itself.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/segment.hpp"

namespace ulfm::record {

enum class RecordedKind : std::uint8_t { sent, arrived, waited };

/// One event. Times are nanoseconds of CLOCK_MONOTONIC, which all processes of a host share.
struct RecordedEvent {
  std::uint64_t begin = 0;
  std::uint64_t duration = 0;  ///< of a wait
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;                   ///< of the frame on its connection, from 0
  std::uint32_t peer = 0;                     ///< its pid
  std::uint16_t own_port = 0, peer_port = 0;  ///< of data
  RecordedKind kind = RecordedKind::sent;
  bool control = false;  ///< over the control channel
  char name[18] = {}, over[20] = {};
};
static_assert(sizeof(RecordedEvent) == 80);

inline constexpr std::size_t kMostEvents = 1u << 18;  ///< that are kept of a process; of more, the last ones
inline constexpr std::size_t kMostText = 60 * 1024;   ///< of counters

/// The place of a process. Any process that maps the memory may write nonsense into it, so readers check.
struct Place {
  std::atomic<std::uint32_t> taken{0};  ///< 1 when all below has been filled in; release, pairs with readers
  std::int32_t rank = 0;
  std::int32_t pid = 0;
  std::uint32_t spawned = 0;             ///< by a process: its job counts ranks anew
  std::atomic<std::uint64_t> events{0};  ///< noted so far; counted before an event is written
  std::atomic<std::uint32_t> text{0};    ///< bytes of counters; release, pairs with readers
  char program[64] = {};
  std::array<char, kMostText> counters;
};
static_assert(sizeof(Place) <= 64 * 1024);

class JobRecord {
 public:
  /// For so many processes, and for events if asked for. Errors: those of Segment.
  static Result<JobRecord> create(std::uint32_t places, bool events);
  /// The one that ULFM_RECORD names. Errc::not_found when there is none for this process.
  static Result<JobRecord> join();

  /// What ULFM_RECORD has to say.
  std::string address() const;

  std::uint32_t places() const noexcept { return places_; }
  bool has_events() const noexcept { return has_events_; }
  /// A place of one's own; nullptr when there is none left or no memory.
  Place* take(int rank) noexcept;
  /// The place of a process, or nullptr when nobody has taken it.
  const Place* place(std::uint32_t index) const noexcept;
  /// Notes an event at a place of this process. Any thread. False when there was no memory for it.
  bool note(Place& place, const RecordedEvent& event) noexcept;
  /// Event `number` of a place, of those that are kept.
  const RecordedEvent& event(const Place& place, std::uint64_t number) const noexcept;
  static void put_text(Place& place, std::string_view text) noexcept;

 private:
  struct Head;
  explicit JobRecord(Segment&& segment) noexcept : segment_(std::move(segment)) {}
  std::size_t offset_of(std::uint32_t index) const noexcept;
  std::size_t events_of(const Place& place) const noexcept;

  Segment segment_;
  std::uint32_t places_ = 0;
  bool has_events_ = false;
};

/// This process's own record and its place in it; both nullptr without ULFM_RECORD. The first call joins.
struct Own {
  JobRecord* record = nullptr;
  Place* place = nullptr;
};
Own of_process(int rank);
/// What of_process() found so far, without joining.
Own of_process() noexcept;

/// Counters of a rank where they are wanted: at its place, or else at the end of `file`, where no ulfmrun collects
/// them.
/// Nothing when `file` is empty.
void leave_counters(const std::string& file, int rank, std::string_view text);

}  // namespace ulfm::record
