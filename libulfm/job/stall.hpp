// Reports about waits that do not end (ULFM_STALL_REPORT, SIGUSR2): who waits for what, since when, and who is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "job/stall_board.hpp"

namespace ulfm {

/// Says when a wait is to report itself: after so many seconds and then each time it has lasted twice as long, and when
/// the process has been sent SIGUSR2. One to a wait, or to a series of waits without news in between. One thread.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// From here on SIGUSR2 asks all waits of this process for a report, unless the program has a handler of its own.
  /// Any thread, any number of times.
  static void begin() noexcept;

  /// `seconds` 0: never by itself.
  explicit StallWatch(std::int64_t seconds) noexcept;
  /// A report is due, of a wait that has gone on since `since`. Says so once.
  bool due(Clock::time_point since, Clock::time_point now) noexcept;
  /// Something has come: the next wait begins.
  void reset() noexcept;

 private:
  std::chrono::seconds first_;
  std::chrono::seconds next_;
  std::uint32_t asked_;
};

/// "12.3 s".
std::string stall_time(StallWatch::Clock::duration time);

/// Writes a report, its lines in one piece, to standard error. `text` holds whole lines.
void write_stall_report(const std::string& text) noexcept;

/// This rank's part in the job's table of waits, once in a while during a wait: asks for the table when a report is
/// due, answers a question with what `state` returns, and prints the table when it is complete.
template <typename State>
void take_part(StallBoard& board, bool due, StallWatch::Clock::time_point now, State state) {
  const std::int64_t time = now.time_since_epoch().count();
  if (due) board.ask(time);
  if (board.asked()) board.answer(state());
  if (const std::string text = board.table(time); !text.empty()) write_stall_report(text);
}

}  // namespace ulfm
