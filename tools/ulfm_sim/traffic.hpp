// Who sends to whom, how much, and when.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "network.hpp"
#include "random.hpp"

namespace sim {

/// Where messages go (Dally and Towles, Principles and Practices of Interconnection Networks, table 3.1).
class Pattern {
 public:
  /// "uniform", "transpose", "complement", "reversal", "shuffle", "tornado", "neighbour", "hotspot[:NODE[:SHARE]]",
  /// "incast[:NODE]", "permutation:FILE". Errors say what the pattern needs of the topology.
  static Result<Pattern> make(std::string_view text, const Topology& topology);

  /// A node that sends at all.
  bool sends(std::uint32_t node) const { return !fixed_ || to_[node] != node; }
  std::uint32_t senders() const { return senders_; }
  std::uint32_t destination(std::uint32_t node, Random& random) const;
  /// The part of a node's messages that go to `to`.
  double share(std::uint32_t node, std::uint32_t to) const;
  /// Every node sends to one other only.
  bool is_fixed() const { return fixed_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::uint32_t nodes_ = 0, senders_ = 0;
  bool fixed_ = false;
  std::vector<std::uint32_t> to_;  // of a fixed one; the node itself: it does not send
  std::uint32_t hot_ = 0;
  double hot_share_ = 0;  // of messages that go to the hot node whatever a uniform choice says
};

/// How long messages are, in units: "16", "4-64" (evenly), "4:0.9,256:0.1" (with these shares).
class Lengths {
 public:
  static Result<Lengths> make(std::string_view text, std::uint32_t most);
  std::uint32_t draw(Random& random) const;
  double mean() const { return mean_; }
  std::uint32_t shortest() const { return shortest_; }
  const std::string& text() const { return text_; }
  /// The mean of a function that is linear in the length, and of most others nearly.
  std::uint32_t typical() const { return static_cast<std::uint32_t>(std::lround(mean_)); }

 private:
  struct Range {
    std::uint32_t least, most;
    double up_to;  // shares of all ranges so far
  };
  std::string text_;
  std::vector<Range> ranges_;
  double mean_ = 0;
  std::uint32_t shortest_ = 0;
};

/// When messages come: "bernoulli", "periodic", or "burst:ON:OFF", Bernoulli in periods of ON cycles on average with
/// silence of OFF cycles on average between them.
class Timing {
 public:
  static Result<Timing> make(std::string_view text);
  const std::string& text() const { return text_; }
  /// Messages a cycle that a node must make while it is on, to make `rate` a cycle on average.
  double while_on(double rate) const { return rate * (on_ + off_) / on_; }

 private:
  friend class Source;
  std::string text_;
  bool periodic_ = false;
  double on_ = 1, off_ = 0;
};

/// One node's source of messages.
class Source {
 public:
  /// `rate`: messages a cycle.
  Source(const Timing& timing, double rate, std::uint64_t seed, std::uint32_t node);
  /// The cycle of the next message; rises from call to call. ~0: there is none.
  std::uint64_t next();
  Random& random() { return random_; }

 private:
  const Timing* timing_;
  Random random_;
  double rate_, miss_, exact_ = 0;  // miss_: log of the probability of a cycle without a message
  std::uint64_t cycle_ = 0, on_until_ = 0;
};

}  // namespace sim
