// The reference model of a network of Direct-Connect routers: one cycle, one nibble at a time. For tests.
//
// Source: Nugent, The iPSC/2 Direct-Connect Communications Technology, 1988. Where the paper is silent the choice is
// ours; ulfm-dcm(7) has the table. In every cycle every channel carries one nibble, each way: of a probe, of a data
// word, or a status nibble when there is nothing else. The first nibble of each has RDY.
//
// A cycle, in this order, each step for the whole network before the next one:
//
//   1. Arrival.     Nibbles sent `hop_cycles` before arrive. RDY goes into the DESTINATION READY register of the
//                   channel that leaves the other way, if that channel carries a message whose probe can have been
//                   answered by now. A probe that is whole is looked at for `route_cycles`. A whole word at the
//                   destination enters the FIFO; the checksum is verified and stripped.
//   2. Request.     Routing elements and serializers that have looked at their probe request a way out. A free
//                   serializer takes the next message of its source, and its first 32-bit word.
//   3. Arbitration. Each free way out is granted, round robin. A sink takes the probe, padded, into its FIFO.
//   4. Sending.     Each channel sends one nibble: the probe, from the cycle after the grant; then whatever the message
//                   has here, status nibbles if nothing. A serializer begins a word when its DESTINATION READY is set.
//                   What arrived in this cycle is sent on in it, with this router's RDY in place of the one that came.
//                   A channel and its routing element are free from the cycle after the last nibble of the checksum.
//   5. Taking.      A node takes two words in each cycle that `dma_cycles` divides. When the checksum is there and the
//                   FIFO is empty, the software has the message, and `receive_cycles` later the message has ended and
//                   the sink is free. Until the checksum comes the FIFO decides whether the sink is ready, from the
//                   next cycle on.
//
// Faults happen between cycles. A message that has anything on a link, in a router or at a node that dies is lost as a
// whole: its channels are free at once, except that one on which a word was begun is free when that is filled up.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fabric/dcm/counters.hpp"
#include "fabric/dcm/parameters.hpp"
#include "fabric/dcm/words.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::dcm {

class Reference {
 public:
  /// The parameters have passed check(); `dimension` is 0 to 7.
  Reference(std::uint32_t dimension, const Parameters& parameters);

  /// As those of Network.
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins = true);
  void stall(std::uint32_t end, std::uint64_t cycles);
  void set_channel(std::uint32_t router, std::uint32_t way, bool up);
  void set_router(std::uint32_t router, bool alive);

  /// One cycle.
  void step();
  std::uint64_t now() const noexcept { return now_; }
  bool empty() const noexcept { return messages_inside_ == 0; }
  const std::vector<Ending>& endings() const noexcept { return endings_; }
  /// A FIFO was given more than it has room for, or a word or a checksum was not what was sent.
  const std::string& wrong() const noexcept { return wrong_; }

  /// State of the routing element of a way in: "Idle", "Looking", "Requesting", "Connected".
  const char* state(std::uint32_t router, std::uint32_t in) const;
  CircuitCounters counters(std::uint32_t router, std::uint32_t out) const { return out_(router, out).counters; }
  WordBalance balance() const;

 private:
  /// `dead`: fills up a word whose message is gone.
  enum class Kind : std::uint8_t { status, probe, word, dead };
  struct Nibble {
    Kind kind = Kind::status;
    bool first = true, last = true, rdy = false, eom = false;
    std::uint16_t value = 0;  ///< of the whole word, carried by each of its nibbles
    FrameId frame = 0;
  };
  enum class State : std::uint8_t { idle, looking, requesting, connected };
  /// Of a way in. Those of sources are serializers as well.
  struct Element {
    State state = State::idle;
    FrameId frame = 0;
    std::uint16_t probe = 0;
    std::uint64_t until = 0;  ///< looking
    std::uint32_t out = 0;    ///< requested or connected
    std::uint64_t asked = 0;
    Nibble arrived;  ///< channels: in this cycle
    // Serializers.
    std::deque<FrameId> waiting;
    std::size_t words_sent = 0;
    std::uint32_t nibble = 0;  ///< of the present word, to be sent next
  };
  struct Out {
    std::optional<std::uint32_t> holder;  ///< way in
    FrameId frame = 0;
    std::uint32_t last = kNode;  ///< way in that was granted last
    std::uint64_t granted = 0, valid_from = 0;
    bool ready = false;            ///< DESTINATION READY
    std::uint32_t probe_left = 0;  ///< nibbles to be sent
    std::uint32_t word_left = 0;   ///< nibbles of the word that is being sent, still to come
    std::uint32_t dead_left = 0;
    bool within = false;   ///< words were sent, and the last nibble was not status
    bool release = false;  ///< free from the next cycle on
    bool down = false;
    std::deque<Nibble> wire;  ///< channels
    // Sinks.
    std::uint32_t fifo = 0;
    bool accept = true, ended = false;
    std::uint64_t done_at = 0;
    std::uint64_t stalled_until = 0;
    CircuitCounters counters;
  };
  struct Message {
    std::uint32_t from = 0, to = 0;
    std::uint16_t probe = 0;
    bool begins = true, active = false;
    std::vector<std::uint16_t> words;  ///< behind the probe, the checksum last
    std::size_t received = 0;
    std::uint64_t sent = 0, taken = 0, stripped = 0;  ///< words, the probe too
  };

  Element& in_(std::uint32_t router, std::uint32_t way) { return elements_[router * kWays + way]; }
  const Element& in_(std::uint32_t router, std::uint32_t way) const { return elements_[router * kWays + way]; }
  Out& out_(std::uint32_t router, std::uint32_t way) { return outs_[router * kWays + way]; }
  const Out& out_(std::uint32_t router, std::uint32_t way) const { return outs_[router * kWays + way]; }
  bool is_down(std::uint32_t router, std::uint32_t way) const;
  void release_channels();
  void arrive(std::uint32_t router, std::uint32_t channel);
  void start_message(std::uint32_t router, std::uint32_t source);
  void request(std::uint32_t router, std::uint32_t way);
  void arbitrate(std::uint32_t router, std::uint32_t out);
  bool send_status(std::uint32_t router, std::uint32_t channel) const;
  Nibble next_nibble(std::uint32_t router, std::uint32_t channel);
  Nibble serialize(Element& source, bool ready);
  void send(std::uint32_t router, std::uint32_t channel);
  void send_within_router(std::uint32_t router, std::uint32_t sink);
  void put_word(Out& sink, const Nibble& word);
  void take(std::uint32_t router, std::uint32_t way);
  void lose(FrameId frame);
  bool uses_what_is_down(FrameId frame) const;
  void lose_what_is_down();

  Parameters parameters_;
  std::uint32_t dimension_, routers_;
  std::vector<Element> elements_;
  std::vector<Out> outs_;
  std::vector<bool> alive_;
  std::vector<Message> messages_;
  std::vector<Ending> endings_;
  std::uint64_t now_ = 1;
  std::uint64_t messages_inside_ = 0;
  std::string wrong_;
  std::uint64_t entered_ = 0, left_ = 0, stripped_ = 0, lost_ = 0;
};

}  // namespace ulfm::fabric::dcm
