// The reference model of a point design: one cycle, one flit, one decoder at a time. For tests.
//
// Source: the thesis on the communications interface of the NJIT Point Design. Where it is silent the choice is ours;
// ulfm-pointdesign(7) has the table.
//
// A processor writes its command (PCTF messages, one a cycle) to its coprocessor; from the cycle of the last of them on
// the messages it becomes leave by their ports, one a cycle and port. A message is in the queues that the decoders
// behind the port name as soon as it leaves the port, and may leave a queue in the same cycle.
//
// A cycle, in this order, each step for the whole network before the next one, cards and their lines in rising order:
//
//   1. Offer.    With fewer queues than cards: each queue names those of its mini queues that may send.
//   2. Sending.  Each line that is free begins with the head of one of its queues, those of the card's processors and
//                that of through traffic. Each line that carries a message moves one flit.
//   3. Headers.  Wormhole: where a first flit has arrived and its message ends elsewhere, the message claims the next
//                line from the next cycle on, or waits in the line's flit buffer, or is turned away: then the card
//                before sends it another way.
//   4. Tails.    A message that is there as a whole and ends at the card goes to its processors; longer data than the
//                message has are fetched from the sender's memory, once for the card. Others wait for their next line.
//                A broadcast does both: copies go on along all sections above the one it came by.
//   5. Memory.   What has been fetched by the end of the cycle is there.
//
// Faults happen between cycles. What is on a line when it dies still arrives.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "fabric/model.hpp"
#include "fabric/pointdesign/parameters.hpp"
#include "fabric/pointdesign/plan.hpp"
#include "fabric/pointdesign/routes.hpp"

namespace ulfm::fabric::pointdesign {

class Reference final : private Health {
 public:
  /// The parameters have passed check().
  explicit Reference(const Parameters& parameters);

  /// As those of Network.
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes);
  bool inject_multicast(FrameId frame, std::uint32_t from, const std::vector<std::uint32_t>& to, std::uint32_t bytes);
  bool inject_broadcast(FrameId frame, std::uint32_t from, std::uint32_t bytes);
  void set_line(std::uint32_t card, std::uint32_t direction, bool up);
  void set_card(std::uint32_t card, bool up);
  void set_processor(std::uint32_t node, bool up);

  /// One cycle.
  void step();
  std::uint64_t now() const { return now_; }
  bool empty() const { return messages_.empty(); }
  const std::vector<Ending>& endings() const { return endings_; }
  /// Nodes that were given each message, and how often; for tests of the plan.
  const std::map<FrameId, std::map<std::uint32_t, int>>& received() const { return received_; }

  const Totals& totals() const { return totals_; }
  const CardCounters& card(std::uint32_t i) const { return cards_[i].counters; }
  const LineCounters& line(std::uint32_t i) const { return lines_[i].counters; }
  const CoprocessorPortCounters& port(std::uint32_t node, std::uint32_t port) const {
    return processors_[node].ports[port].counters;
  }
  const QueueCounters& queue(std::uint32_t line, std::uint32_t q) const { return lines_[line].queues[q].counters; }

  /// The queues behind a port that get the message, found decoder by decoder.
  static TreePass decode(const Cimf& message, const CardGeometry& geometry, std::uint32_t port, std::uint32_t own);

 private:
  struct Copy {
    FrameId frame = 0;
    std::uint32_t target = 0;
    std::uint32_t who = 0;
    bool spreading = false;
    std::uint64_t ready = 0;
    std::uint32_t refusals = 0;
    std::uint32_t stored_at = kNone;  ///< line
  };
  struct Queue {
    std::deque<Copy> copies;
    bool offered = false;
    QueueCounters counters;
  };
  /// On a line: how many of its flits have arrived.
  struct Transit {
    Copy copy;
    std::uint32_t flits = 0;
    bool gone_on = false;
  };
  struct Line {
    bool dead = false;
    std::vector<Queue> queues;
    std::vector<Transit> carries;  ///< none or one
    std::vector<Copy> claimed;     ///< none or one: from the next cycle on
    std::uint32_t stored = 0;
    LineCounters counters;
  };
  struct Card {
    bool dead = false;
    CardCounters counters;
  };
  struct Port {
    std::uint64_t free = 0;
    CoprocessorPortCounters counters;
  };
  struct Processor {
    bool dead = false;
    std::uint64_t coprocessor_free = 0, memory_free = 0;
    std::vector<Port> ports;
  };
  struct Message {
    std::uint32_t source = 0, node = 0, bytes = 0, reserved = 0;
    int outstanding = 0;
    bool lost = false;
  };
  struct Event {
    std::uint64_t cycle = 0;
    Copy copy;
    bool fetching = false;
  };

  bool line_works(std::uint32_t line) const override;
  bool any_dead() const override { return dead_ != 0; }
  std::uint64_t version() const override { return version_; }
  bool reaches(std::uint32_t from, std::uint32_t to);
  bool has_room(FrameId frame, std::uint32_t from, std::uint32_t copies) const;
  std::uint64_t begin(FrameId frame, std::uint32_t from, std::uint32_t node, std::uint32_t bytes, std::uint32_t copies,
                      std::uint32_t commands);
  void send(FrameId frame, const Outgoing& message, std::uint64_t ready);
  void send_broadcast(FrameId frame, const Processors& who, std::uint64_t ready);
  void spread(const Copy& copy, std::uint32_t card, std::uint32_t first_section, std::uint32_t q, std::uint64_t ready);
  void send_one_by_one(const Copy& copy, std::uint32_t card, std::uint32_t direction, std::uint32_t q);
  void dispatch(const Copy& copy, std::uint32_t card, std::uint32_t q);
  void put(const Copy& copy, std::uint32_t line, std::uint32_t q);
  Copy take(std::uint32_t line, std::uint32_t q);
  void offer(std::uint32_t card, std::uint32_t q, std::uint32_t queue);
  void choose(std::uint32_t line);
  void head(std::uint32_t line);
  void tail(std::uint32_t line);
  void deliver(Copy copy, std::uint32_t card);
  void happen(const Event& event);
  void finish(const Copy& copy, bool delivered, std::uint32_t card);
  void close(FrameId frame);
  bool is_late(const Copy& copy, std::uint64_t cycle) const {
    return copy.ready <= cycle && cycle - copy.ready >= p_.timeout;
  }
  std::uint64_t value(std::uint32_t line, std::uint32_t q) const;
  void change(bool up);

  Parameters p_;
  CardGeometry g_;
  std::vector<Card> cards_;
  std::vector<Processor> processors_;
  std::vector<Line> lines_;
  std::map<FrameId, Message> messages_;
  std::deque<Event> events_;  ///< in the order in which they were made
  std::vector<Ending> endings_;
  std::map<FrameId, std::map<std::uint32_t, int>> received_;
  Totals totals_;
  std::uint64_t now_ = 0, version_ = 0;
  std::uint32_t dead_ = 0, reserved_ = 0;
  Ways ways_{g_, *this};
};

}  // namespace ulfm::fabric::pointdesign
