// The job's table of waits: a page of shared memory in which each rank of a host writes, when somebody asks, what it
// waits for. The process that finds it complete prints it, with the waits that form a cycle. ulfmrun makes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "ulfm/error.hpp"

namespace ulfm {

inline constexpr int kMostStallWaits = 6;
inline constexpr int kStallName = 32;

/// What one wait needs.
enum class StallKind : std::int32_t {
  message,        ///< that `rank` sends a message with `tag`
  any,            ///< that anybody does
  clear_to_send,  ///< that `rank` receives a message of `bytes`, which was announced
  data,           ///< the bytes of a message that `rank` announced
  taken,          ///< that `rank` receives a synchronous send
  room,           ///< that `rank` takes what was sent before; `bytes` is how many messages wait
  collective,     ///< that the others, `rank` is one of them, make the same call; `name` has it
};

struct StallWait {
  StallKind kind;
  std::int32_t rank;   ///< in the job; -1: anybody, -2: of another job
  std::int32_t tag;    ///< -1: any
  std::uint32_t port;  ///< 0: an MPI message
  std::uint64_t bytes;
  char name[kStallName];  ///< communicator, or collective
};

/// What a rank says of itself.
struct StallState {
  std::int32_t pid;
  std::int32_t blocked;   ///< in a call that waits; 0: it looks now and then
  std::int64_t since;     ///< ns of CLOCK_MONOTONIC; nothing has come or gone since
  std::uint32_t posted;   ///< receives that wait for messages
  std::uint32_t arrived;  ///< messages that wait for receives
  std::uint32_t unsent;   ///< messages that wait for room
  std::uint32_t n, more;  ///< waits, and how many more there are
  StallWait waits[kMostStallWaits];
};

/// A row of the table: a rank that answered, or what else is known of it.
struct StallLine {
  int rank;
  bool answered;
  std::string process;  ///< what /proc says of it: "runs", "is stopped", "has ended"
  StallState state;
};

/// Attached by each rank. One thread.
class StallBoard {
 public:
  ~StallBoard();
  StallBoard(StallBoard&& other) noexcept;
  StallBoard& operator=(StallBoard&&) = delete;

  /// For `ranks` ranks. The descriptor stays open in this process and in what it becomes by exec.
  static Result<StallBoard> create(int ranks);
  /// How ranks find it: the value of ULFM_STALL_BOARD.
  const std::string& place() const noexcept { return place_; }
  /// Fails when there is none that this rank belongs to; then each process reports for itself.
  static Result<StallBoard> attach(int rank, int ranks);

  /// Somebody wants a table: true when this rank has to answer. Costs a load.
  bool asked() const noexcept;
  /// Asks all for one, unless that was done in the last second.
  void ask(std::int64_t now) noexcept;
  /// This rank's answer.
  void answer(const StallState& state) noexcept;
  /// What is known of each rank, by rank.
  std::vector<StallLine> lines() const;
  /// The table, once in the job, when all have answered or `now` is a second past the question; else empty.
  std::string table(std::int64_t now);

 private:
  struct Header;
  struct Row;
  StallBoard(void* memory, std::size_t bytes, int rank, std::string place);
  Header& header() const noexcept;
  Row& row(int rank) const noexcept;

  void* memory_;
  std::size_t bytes_;
  int rank_;
  std::string place_;
};

/// The table as text. Ranks whose waits only they themselves could end are named as deadlocked; other cycles as
/// possible ones.
std::string stall_table(const std::vector<StallLine>& lines, std::int64_t now);

/// " for a message from rank 1, tag 7 in MPI_COMM_WORLD", for each of its waits; empty when nothing is known.
std::string stall_waits(const StallLine& line);
/// The line about ranks that wait for each other, with its line end; empty when nothing can be said.
std::string stall_verdict(const std::vector<StallLine>& lines);

}  // namespace ulfm
