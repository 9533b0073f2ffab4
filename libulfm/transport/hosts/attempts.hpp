// A process has several addresses, and perhaps only one leads to it: they are tried one beside the other, until one
// connection is up or all have failed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "transport/hosts/greeting.hpp"
#include "transport/hosts/interfaces.hpp"
#include "transport/hosts/socket_address.hpp"

namespace ulfm::hosts {

using Clock = std::chrono::steady_clock;

/// One connection that is being made. The network sets its state.
struct Try {
  enum class State : std::uint8_t { connecting, up, failed };
  State state = State::connecting;
  SocketAddress where;
  Clock::time_point begun{};
  std::string why;                            ///< that address
  std::string failure;                        ///< why it failed
  Refusal refusal{};                          ///< proven by the process that was meant
  bool nobody_there = false;                  ///< the host answers, and nobody listens there
  bool host_silent = false;                   ///< the kernel did not find the host on its network: its cable may be cut
  std::optional<Clock::time_point> again_at;  ///< it failed for now: when to try once more

  virtual ~Try() = default;
  /// The kernel of the other host has accepted it, and the process has not answered yet. May cost system calls.
  virtual bool is_host_answering() const = 0;

  void fail(std::string reason) {
    state = State::failed;
    failure = std::move(reason);
  }
  /// What an error of connect(2) or of the first bytes on a connection means. `reason` is its text; 0: the peer closed.
  void fail_by(int error, std::string reason);
  /// For a peer that may be ending: it closes what its listener has accepted, and its kernel refuses the next attempt.
  void fail_for_now(std::string reason);
};

/// The tries of one connection. Not for several threads.
class Attempts {
 public:
  /// `was_reached`: a connection with that host has been up, so its silence is a cut cable rather than a firewall. It
  /// is waited out for `give_up`, as on a connection that is up. Another host has 4.5 s to answer.
  Attempts(std::vector<Candidate> candidates, std::chrono::milliseconds give_up, bool was_reached);

  /// The address to try now, if there is any.
  std::optional<std::size_t> due(Clock::time_point now) const;
  const Candidate& candidate(std::size_t which) const { return candidates_[which]; }
  /// Returns the try at that address which this one takes the place of, if there is any.
  std::shared_ptr<Try> add(std::size_t which, std::shared_ptr<Try> one, Clock::time_point now);

  /// The first that is up.
  std::shared_ptr<Try> winner() const;
  /// What the process that was meant says against it.
  Refusal refusal() const;
  /// Nothing is left to wait for.
  bool over(Clock::time_point now);

  /// Why there is no winner: `process` is whom it was for, `port` its port of ours and `tcp_port` where it listens.
  Error error(const std::string& process, std::uint16_t port, std::uint16_t tcp_port) const;

 private:
  bool is_any_host_answering() const;
  bool is_to_be_tried_again(const Try& one, Clock::time_point now) const;
  bool has_refused() const;
  bool is_nobody_there() const;
  bool all_failed() const;
  std::string table(std::uint16_t tcp_port) const;

  std::vector<Candidate> candidates_;
  std::vector<std::shared_ptr<Try>> tries_;
  std::chrono::milliseconds give_up_, answer_within_;
  Clock::duration next_after_;
  Clock::time_point begun_, next_at_, until_;
};

}  // namespace ulfm::hosts
