// The reference model of a network of X-Switches: one cycle, one unit at a time. For tests and the simulator.
//
// Source: Li San-li, THNPC-II, sections 2.1 to 2.3. Where the paper is silent the choice is ours;
// ulfm-xswitch(7) has the table. Every channel carries one unit in every cycle, each way; ID-IDLE when there
// is nothing else.
//
// A cycle, in this order, each step for all ports before the next one:
//
//   1. Arrival.    The unit sent `link_cycles` cycles before arrives at the other end. ID-STOP and ID-GO set
//   and clear the
//                  latch `stopped` of the output that shares the link; ID-IDLE is dropped; all others enter
//                  the FIFO. A cut frame's bad ID-EOF enters here, in the first cycle after the cut.
//   2. Poll.       Each output in a Poll state looks at one input. Is that input free and the first unit in
//   its FIFO the
//                  routing character of this output, then the character is taken off and the output is in the
//                  Tran state of that input from the next cycle on. Otherwise it polls the next input in the
//                  next cycle. A free input whose first unit is an ID-EOF (a frame cut within its head)
//                  throws it away.
//   3. Sending.    Each output sends one unit: ID-STOP or ID-GO if its port decided on one in the cycle
//   before; nothing
//                  (ID-IDLE) in a Poll state, in a Wait state, or with an empty FIFO; else the next unit of
//                  the FIFO. Tran becomes Wait when the latch is set, Wait becomes Tran when it is clear,
//                  before the output sends. After an ID-EOF the output polls, from the next cycle on,
//                  beginning with the input behind the one it served. A unit that arrived in this cycle may
//                  leave in it. A node sends its frames first-in first-out under the same rules, and takes
//                  one unit from its FIFO.
//   4. Thresholds. An input port whose FIFO holds `stop_at` units or more and whose last command was not
//   ID-STOP decides on
//                  ID-STOP; one with `go_at` or fewer whose last command was ID-STOP decides on ID-GO.
//
// A slower link, one of a rate of k cycles a unit, is busy with each unit of a frame for k cycles: the next one is sent
// k cycles later or after that, and after an ID-EOF its output polls from then on. A unit arrives when all of it is
// there, k - 1 cycles later than on another link of its latency. Commands do not wait for units.
//
// Faults happen between cycles. A link that goes down loses what is on it, both ways; an input that has part
// of a frame makes a bad ID-EOF for it; an output that is sending a frame, or begins one while the link is
// down, drops it to its end, even when the link is back before that. It is busy with nothing sent before. While it is
// down an output is not stopped and an input decides on nothing. When it comes back, both outputs are stopped until the
// first ID-GO, which each input sends once it has room. A switch that dies takes its links down, and then all that its
// FIFOs hold is lost.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/topology/topology.hpp"
#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {

/// All units of a frame as its node sends them. Data bytes are made up from the frame's name and their place.
std::vector<Unit> units_of(FrameId frame, std::span<const std::uint8_t> route, std::uint32_t data_units,
                           std::uint32_t check_units);

class Reference {
 public:
  /// The parameters have passed check().
  Reference(const Topology& topology, const Parameters& parameters);

  /// As those of Network, except that routes are not checked.
  void inject(FrameId frame, std::uint32_t node, std::span<const std::uint8_t> route, std::uint32_t data_units);
  void stall(std::uint32_t node, std::uint64_t cycles);
  void set_link(SwitchPort end, bool up);
  void set_switch(std::uint32_t index, bool alive);

  /// One cycle.
  void step();
  std::uint64_t now() const noexcept { return now_; }
  /// No unit of a frame is anywhere.
  bool empty() const noexcept { return frames_inside_ == 0; }

  /// What each channel was given in the last cycle; by channel as in Tracer.
  const std::vector<Unit>& sent() const noexcept { return sent_; }
  /// The frames whose last unit went, in order.
  const std::vector<Ending>& endings() const noexcept { return endings_; }
  /// A FIFO was given a unit that it had no room for.
  bool overflowed() const noexcept { return overflowed_; }

  /// "PollA", "TranB2D", "WaitB2D": the state of an output port's machine.
  std::string state(SwitchPort port) const;

  SwitchPortCounters counters(SwitchPort port) const { return ends_[index(port)].counters; }
  SwitchPortCounters node_counters(std::uint32_t node) const { return ends_[switch_ports_ + node].counters; }
  Balance balance() const;

 private:
  struct Moving {
    Unit unit = kIdle;
    FrameId frame = 0;
  };
  enum class Machine : std::uint8_t { poll, tran, wait };
  /// One end of a link: a port of a switch or of a node, with what it sends and what it receives.
  struct End {
    // Receiving.
    std::deque<Moving> fifo;
    bool stop_sent = false;       ///< the last command was ID-STOP
    std::optional<Unit> command;  ///< decided on, to be sent in the next cycle
    bool within_frame = false;    ///< more of the frame that arrived last is to come
    FrameId arriving = 0;
    std::optional<FrameId> bad_end;   ///< of a cut frame, enters the FIFO in the next cycle
    bool taken = false;               ///< switches: an output is in the Tran or Wait state of this input
    std::uint64_t stalled_until = 0;  ///< nodes
    // Sending.
    std::deque<Moving> channel;  ///< on the way to the other end, one unit for each cycle
    bool stopped = false;
    Machine machine = Machine::poll;         ///< switches
    std::uint32_t input = 0;                 ///< polled or served
    std::uint64_t free_at = 0;               ///< the link still carries the unit before, until this cycle
    std::uint32_t unit_cycles = 1;           ///< for which a unit of a frame keeps it busy
    std::uint64_t granted_in = 0;            ///< cycle of the poll that found a head
    bool dropping = false;                   ///< the frame being sent began before or while the link was down
    std::deque<std::deque<Moving>> waiting;  ///< nodes: frames to send
    bool within_sending = false;             ///< nodes: the first of them has begun
    // The link.
    std::optional<std::size_t> peer;
    bool off = false, dead = false;
    SwitchPortCounters counters;
  };
  struct FrameState {
    std::uint64_t units = 0;      ///< of it, anywhere
    std::uint64_t to_arrive = 0;  ///< that the node must get for it to be delivered
    std::uint32_t from = 0;
    std::uint64_t begun = 0;
  };

  std::size_t index(SwitchPort p) const { return std::size_t{p.at} * ports_ + p.port; }
  bool is_node(std::size_t end) const { return end >= switch_ports_; }
  void arrive(End& end, const Moving& moving);
  void enter(End& end, const Moving& moving);
  void poll(std::size_t output);
  void look_at_head(End& end);
  Moving next_to_send(std::size_t output);
  Moving send_from_switch(std::size_t output);
  Moving send_from_node(End& end);
  void take(std::size_t end);
  void decide(End& end);
  void count_sent(End& end, Unit unit);
  void lose(const Moving& moving, std::uint64_t& units, std::uint64_t* frames);
  void gone(const Moving& moving, std::uint32_t node, bool taken_by_node);
  void cut(std::size_t from);
  void refresh_link(std::size_t end);

  Parameters parameters_;
  std::uint32_t ports_;
  std::size_t switch_ports_;
  std::vector<End> ends_;
  std::vector<bool> alive_;
  std::vector<Unit> sent_;
  std::vector<FrameState> frames_;
  std::vector<Ending> endings_;
  std::uint64_t now_ = 1;
  std::uint64_t frames_inside_ = 0;
  bool overflowed_ = false;
  std::uint64_t entered_ = 0, inserted_ = 0, left_ = 0, stripped_ = 0, lost_ = 0;
};

}  // namespace ulfm::fabric::xswitch
