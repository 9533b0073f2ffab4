// The reference model of an ideal network: one cycle at a time, for tests and the simulator.
//
// A cycle, for all nodes: a node that may begin takes the first of its messages. A message goes through its phases,
// each for so many cycles: the sender's processor works on it (o); its bytes leave, one every G cycles; the last of
// them is on its way (L); the receiver's processor works on it (o). Receivers work on any number of messages at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/ideal/parameters.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::ideal {

class Reference {
 public:
  /// The parameters have passed check().
  Reference(std::uint32_t nodes, const Parameters& parameters) : p_(parameters), nodes_(nodes) {}

  /// As that of Network.
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes);
  void step();
  std::uint64_t now() const noexcept { return now_; }
  std::uint64_t inside() const noexcept { return inside_; }
  std::uint64_t taken() const noexcept { return taken_; }
  std::uint64_t ended() const noexcept { return endings_.size(); }
  std::uint64_t ended_bytes() const noexcept { return ended_bytes_; }
  std::uint64_t busy(std::uint32_t node) const noexcept { return nodes_[node].busy; }
  /// All there have been, by cycle and then as Network::run() reports them.
  const std::vector<Ending>& endings() const noexcept { return endings_; }

 private:
  struct Moving {
    FrameId frame = 0;
    std::uint32_t from = 0, to = 0, bytes = 0;
    std::uint64_t begun = 0;
    std::uint64_t work = 0, leaving = 0, flight = 0, taking = 0;  ///< cycles left of each phase
  };
  struct Node {
    std::deque<Moving> waiting;
    std::uint64_t processor = 0;  ///< cycles that it still works on the last message it began
    std::uint64_t gap = 0;        ///< cycles until it may begin the next, as far as bytes and gap go
    std::uint64_t busy = 0;
  };
  static bool passes(Moving& moving);

  Parameters p_;
  std::vector<Node> nodes_;
  std::vector<Moving> moving_;
  std::vector<Ending> endings_;
  std::uint64_t now_ = 1, inside_ = 0, taken_ = 0, ended_bytes_ = 0;
};

}  // namespace ulfm::fabric::ideal
