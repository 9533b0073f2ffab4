// The production model of a point design: cost grows with messages and the lines they take, not with the size of the
// machine. It does, cycle for cycle, what the reference model (reference.hpp) does; the order of things is described
// there.
#pragma once

#include <map>
#include <span>

#include "fabric/model.hpp"
#include "fabric/pointdesign/arena.hpp"
#include "fabric/pointdesign/plan.hpp"
#include "fabric/pointdesign/routes.hpp"

namespace ulfm::fabric::pointdesign {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// One process's view of it. One thread at a time.
class Network final : private Health {
 public:
  static std::size_t bytes(const Parameters& p) { return PointArena(nullptr, p).bytes(); }
  /// In zeroed memory, aligned to 64. The parameters have passed check().
  static void create(std::byte* memory, const Parameters& p);
  /// Errc::protocol when the memory holds none.
  static Result<Network> attach(std::byte* memory, std::size_t bytes);
  Network(Network&& other) noexcept : Network(other.memory_, other.p_) {}

  /// To one processor. False, with nothing taken, when there is no way, or no room, or the frame is in use.
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes);
  /// To several with the fewest messages; copies for cards that cannot be reached are lost, and the ending says so.
  /// With `each` there is an ending for each processor that has it besides, before the one of the whole.
  bool inject_multicast(FrameId frame, std::uint32_t from, std::span<const std::uint32_t> to, std::uint32_t bytes,
                        bool each = false);
  /// To all processors but the sender, with one message.
  bool inject_broadcast(FrameId frame, std::uint32_t from, std::uint32_t bytes);

  /// Goes on for about so many events, until `endings` is full, until nothing moves, or to the end of that cycle.
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until = kNever);
  bool idle() const { return header().inside == 0; }
  bool reaches(std::uint32_t from, std::uint32_t to);

  /// Both ways. A message that is on a line when it dies still arrives; those that wait for it go another way.
  void set_line(std::uint32_t card, std::uint32_t direction, bool up);
  /// A dead card loses what waits in it.
  void set_card(std::uint32_t card, bool up);
  void set_processor(std::uint32_t node, bool up);

  const Parameters& parameters() const { return p_; }
  const CardGeometry& geometry() const { return g_; }
  std::uint64_t now() const { return header().now; }
  std::uint64_t events() const { return header().events; }
  std::uint32_t inside() const { return header().inside; }
  const Totals& totals() const { return header().totals; }
  const CardCounters& card(std::uint32_t i) const { return arena_.card(i).counters; }
  const LineCounters& line(std::uint32_t i) const { return arena_.line(i).counters; }
  const CoprocessorPortCounters& port(std::uint32_t node, std::uint32_t port) const {
    return arena_.port(node * g_.ports() + port).counters;
  }
  /// Of processor `q` of the card the line leaves; q = processors: of through traffic.
  const QueueCounters& queue(std::uint32_t line, std::uint32_t q) const {
    return arena_.mini(mini_of(line, q)).counters;
  }
  std::uint32_t queued(std::uint32_t line, std::uint32_t q) const { return arena_.mini(mini_of(line, q)).count; }

 private:
  Network(std::byte* memory, const Parameters& p) : memory_(memory), p_(p), g_(p.geometry()), arena_(memory, p) {}
  PointHeader& header() const { return arena_.header(); }
  std::uint32_t mini_of(std::uint32_t line, std::uint32_t q) const { return line * (p_.processors + 1) + q; }

  bool line_works(std::uint32_t line) const override;
  bool any_dead() const override { return header().dead != 0; }
  std::uint64_t version() const override { return header().version; }
  bool is_free(std::uint32_t frame, std::uint32_t from, std::uint32_t copies) const;

  // network.cpp: what enters
  std::uint64_t begin(FrameId frame, std::uint32_t from, std::uint32_t node, std::uint32_t bytes, std::uint32_t copies,
                      std::uint32_t commands);
  void send(FrameId frame, const Outgoing& message, std::uint64_t ready);
  void send_broadcast(FrameId frame, std::uint32_t who, std::uint64_t ready);
  void count(PointPort& port, Reach reach, std::uint8_t queues);
  std::uint32_t make_copy(FrameId frame, std::uint32_t target, std::uint32_t who, CopyKind kind, std::uint64_t ready);
  void dispatch(std::uint32_t copy, std::uint32_t card, std::uint32_t q);
  void spread(FrameId frame, std::uint32_t card, std::uint32_t from_section, std::uint32_t who, std::uint32_t q,
              std::uint64_t ready);
  void send_one_by_one(std::uint32_t copy, std::uint32_t card, std::uint32_t direction, std::uint32_t q);
  void made(FrameId frame);
  void release(std::uint32_t copy);
  void push(std::uint32_t copy, std::uint32_t line, std::uint32_t q);
  std::uint32_t pop(std::uint32_t line, std::uint32_t q);

  // cycle.cpp: what a cycle is
  void step();
  void offer();
  void offer_queue(std::uint32_t card, std::uint32_t q, std::uint32_t queue);
  void choose(std::uint32_t line);
  void start(std::uint32_t copy, std::uint32_t line, std::uint64_t cycle);
  void arrive_head(std::uint32_t line);
  bool pass_at_once(std::uint32_t copy, std::uint32_t line);
  void turn_away(std::uint32_t copy, std::uint32_t line);
  void arrive(std::uint32_t line);
  void deliver(std::uint32_t copy, std::uint32_t card);
  void happen(std::uint32_t copy);
  void finish(std::uint32_t copy, bool delivered, std::uint32_t card);
  void report_arrival(std::uint32_t copy);
  void end(FrameId frame);
  void lose(std::uint32_t copy, std::uint32_t card) { finish(copy, false, card); }
  std::uint64_t value(std::uint32_t line, std::uint32_t q, const Copy& head) const;
  std::uint32_t distance(std::uint32_t line, const Copy& copy) const;
  bool has_late(std::uint32_t line, std::uint64_t cycle) const;
  void schedule(std::uint64_t cycle, std::uint32_t copy);
  TimedCopy unschedule();
  void put_in_heap(std::uint32_t hole, const TimedCopy& item);
  auto next_message() {
    return [this](std::uint32_t i) -> std::uint32_t& { return arena_.message(i).next; };
  }
  std::size_t hand_out(std::span<Ending> endings);
  std::size_t hand_out_arrivals(std::span<Ending> endings);
  const std::vector<Outgoing>& plan_for(std::uint32_t from, std::span<const std::uint32_t> to);

  // faults
  void change(bool up);
  void reroute();

  std::byte* memory_;
  Parameters p_;  // copies: the shared ones could be changed under us
  CardGeometry g_;
  PointArena arena_;
  Ways ways_{g_, *this};
  /// Plans that this process has made, by sender and receivers: programs send to the same ones again and again.
  std::map<std::vector<std::uint32_t>, std::vector<Outgoing>> plans_;
};

}  // namespace ulfm::fabric::pointdesign
