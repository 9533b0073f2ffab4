// The production model of a host with its boards: what reference.hpp says, with work for packets only, in an arena.
//
// A step is one packet on one link, or one permission; boards and pools with nothing to do are not looked at. A message
// that has the host to itself is passed on in one step, whatever its length. Each step is in the journal until it is
// done (arena.hpp): a process that dies in it has not begun it.
#pragma once

#include <span>

#include "fabric/pcie/arena.hpp"
#include "fabric/pcie/packet.hpp"
#include "fabric/pcie/queues.hpp"

namespace ulfm::fabric::pcie {

/// Sees steps, for tests.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before_step() = 0;
  virtual void before_commit() = 0;
};

class Relay {
 public:
  /// A turn that never comes.
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static std::size_t bytes(const Parameters& p) { return BoardArena(nullptr, p).bytes(); }
  /// Over memory of so many bytes, aligned to 64; `build` makes it an empty host when it is zeroed.
  Relay(std::byte* memory, const Parameters& parameters)
      : arena_(memory, parameters), p_(parameters), bits_(place_bits(parameters.frames)) {}
  void build();
  /// After the process that moved it has died: true when it can go on.
  bool recover();

  bool post(FrameId frame, const Shipment& shipment);
  /// Goes on for so many steps, at least to the end of the turn, but not beyond turn `until`; when nothing moves
  /// before, that turn is over all the same. Ended messages stay until they are settled.
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until = kNever);
  /// In virtual time: lets everything happen before that cycle, until a message ends. True: that one, and its number is
  /// free. Nothing else moves it then.
  bool run_timed(std::uint64_t until, Ending& ending);
  /// Of a board's link: up, or down.
  const RelayWire& wire(std::uint32_t board, bool up) const { return up ? arena_.up(board) : arena_.down(board); }
  /// The first message that has ended has been dealt with, and its number is free.
  void settle(FrameId frame);
  bool is_used(FrameId frame) const { return frame < p_.frames && arena_.message(frame).phase != Phase::unused; }

  /// A process has read so many bytes that had arrived at its port. True when the host waits for that: woken() then.
  /// The only function that another process than the one that moves the host may call.
  bool release(std::uint32_t process, std::uint32_t port, std::uint64_t bytes);
  void woken(std::uint32_t process);

  void set_board(std::uint32_t board, bool alive);
  void set_host(bool alive);
  bool reaches(std::uint32_t from, std::uint32_t to) const;

  bool idle() const;
  std::uint64_t now() const { return arena_.clock().now; }
  std::uint64_t steps() const { return arena_.clock().steps; }
  BoardCounters board(std::uint32_t b) const { return arena_.board(b).counters; }
  PoolCounters pool(std::uint32_t process, std::uint32_t port) const {
    return arena_.pool(pool_of(process, port)).counters;
  }
  HostCounters host() const;

  void observe(StepObserver* observer) { observer_ = observer; }

 private:
  static std::uint32_t pool_of(std::uint32_t process, std::uint32_t port) { return process * kPortsPerProcess + port; }
  void begin() {
    if (observer_ != nullptr) observer_->before_step();
  }
  void commit() {
    if (observer_ != nullptr) observer_->before_commit();
    arena_.commit();
  }

  // relay.cpp
  void step();
  void up(std::uint32_t board, RelayClock& clock);
  ControlPacket take_control(std::uint32_t board);
  DataHeader take_data(std::uint32_t board);
  void announce(const ControlPacket& packet, const RelayClock& clock);
  void gather(const DataHeader& header, RelayClock& clock);
  void down(std::uint32_t board, RelayClock& clock);
  struct Taken {
    std::uint32_t frame, length;
    bool last;
  };
  Taken take_down(std::uint32_t board, RelayClock& clock);
  bool grant(RelayClock& clock);
  bool has_room(const RelayPool& pool, std::uint32_t bytes) const;
  void block(std::uint32_t id, RelayPool& pool, Memory& memory);
  void permit(std::uint32_t id, RelayPool& pool, Memory& memory, RelayClock& clock);
  void count_arrival(const RelayMessage& message, std::uint64_t cycle);
  void end(RelayMessage& message, std::uint32_t frame, bool delivered, std::uint64_t cycle, Memory& memory,
           RelayClock& clock);
  std::size_t hand_out(std::span<Ending> endings) const;
  void skip_to(std::uint64_t turn);
  bool is_alone() const;
  void pass_alone();

  // time.cpp
  std::uint64_t next_up(std::uint32_t board) const;
  std::uint64_t next_down(std::uint32_t board) const;
  std::uint64_t next_moment() const;
  void begin_up(std::uint32_t board);
  void begin_down(std::uint32_t board);
  void put_on(RelayWire& wire, std::uint64_t bytes, RelayWire::Packet packet);
  void end_up(std::uint32_t board);
  void end_down(std::uint32_t board);
  void happen_at(std::uint64_t cycle);
  bool wires_busy() const;

  // The four kinds of queues.
  auto messages() const {
    return [this](std::uint32_t i) -> const RelayMessage& { return arena_.message(i); };
  }
  auto processes() const {
    return [this](std::uint32_t i) -> const RelayProcess& { return arena_.process(i); };
  }
  auto pools() const {
    return [this](std::uint32_t i) -> const RelayPool& { return arena_.pool(i); };
  }
  void push_message(Queue& queue, std::uint32_t id, RelayMessage& m) {
    push(arena_, queue, id, m, &RelayMessage::next, messages());
  }
  void push_ready(Queue& queue, std::uint32_t id, RelayMessage& m) {
    push(arena_, queue, id, m, &RelayMessage::next_down, messages());
  }
  void push_process(Queue& queue, std::uint32_t id, RelayProcess& process) {
    push(arena_, queue, id, process, &RelayProcess::next, processes());
  }
  void push_granting(Queue& queue, std::uint32_t id, RelayPool& pool) {
    push(arena_, queue, id, pool, &RelayPool::next_grant, pools());
  }
  void push_down(Queue& queue, std::uint32_t id, RelayPool& pool) {
    push(arena_, queue, id, pool, &RelayPool::next_down, pools());
  }

  // faults.cpp
  void lose(std::uint32_t frame);
  void leave_queues(RelayMessage& message, std::uint32_t frame, RelayPool& pool, Memory& memory, RelayClock& clock);
  void lose_data(const RelayMessage& message, Memory& memory, RelayTotals& totals);
  void unblock(std::uint32_t id, RelayPool& pool);

  BoardArena arena_;
  Parameters p_;
  std::uint32_t bits_;  // of a sequence number, for the place
  StepObserver* observer_ = nullptr;
};

}  // namespace ulfm::fabric::pcie
