// The cards of a job's processes on one host, in a segment that they share: a process that connects reads the other's
// card there. Asking the launcher for it needs a core for the launcher, which waits for milliseconds where ranks share
// cores and all of them poll.
//
// The first process of the job on this host makes the segment, and takes a name in the abstract name space of sockets;
// the others connect to that name, which tells them whose it is, and find the segment among that process's descriptors.
// Whatever fails on the way, the launcher still knows all cards.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/wait_word.hpp"

namespace ulfm {

/// One thread.
class CardBoard {
 public:
  static constexpr std::size_t kMostCard = 248;

  /// Joins the board of the job `job_id` of `size` processes, all of which call this at about the same time, and puts
  /// up the card of process `rank`. Errors: Errc::too_large for a long card, Errc::unavailable when the board cannot be
  /// had, and those of the system.
  static Result<std::unique_ptr<CardBoard>> join(std::string_view job_id, int rank, int size, std::string_view card);
  CardBoard(const CardBoard&) = delete;
  ~CardBoard();

  /// The card of that process; "" when it is not on this host, or has not put it up yet.
  std::string card_of(int rank) const;

  /// This process is about to end. True when it is the last of those whose cards are here; wakes those that wait.
  bool leave();
  /// Another look at have_all_left() after this, then a sleep on what it returns.
  WaitWord await_all();
  bool have_all_left() const;

 private:
  struct Head;
  struct Row;
  CardBoard(void* memory, int size, int name, int segment) noexcept
      : memory_(memory), size_(size), name_(name), segment_(segment) {}
  Head& head() const noexcept;
  Row& row(int rank) const noexcept;
  static std::size_t bytes_for(int size) noexcept;

  void* memory_;
  int size_;
  int name_;  // the socket and the segment, of who made it; else -1
  int segment_;
};

}  // namespace ulfm
