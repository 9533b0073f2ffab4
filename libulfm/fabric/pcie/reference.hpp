// The host with its boards, one packet at a time: to read, and to hold the production model against.
//
// A *turn* is the time of one packet on one link. In each turn, in this order:
//
//   up     each board sends one packet to the host: a control packet if one waits, else a data packet of the next
//          process that has permission, process by process in a ring
//   down   the host sends one data packet to each board for which it has some, pool by pool in a ring
//   grant  the host gives permission to send, pool by pool in a ring: the message that has waited longest for a pool
//          may come when the pool has room for it and the host has memory
//
// Room is taken for a message before its data come, in the pool and in the host. So whatever is in the host can leave
// it, and a pool that nobody reads delays only its senders, on the boards.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fabric/pcie/packet.hpp"
#include "fabric/pcie/parameters.hpp"

namespace ulfm::fabric::pcie {

class Reference {
 public:
  explicit Reference(const Parameters& parameters);

  bool post(FrameId frame, const Shipment& shipment);
  /// The process has read that many bytes of what has arrived at its port.
  void release(std::uint32_t process, std::uint32_t port, std::uint64_t bytes);
  void set_board(std::uint32_t board, bool alive);
  void set_host(bool alive);
  void turn();

  std::uint64_t now() const { return now_; }
  bool moves() const;
  /// All there have been.
  const std::vector<Ending>& endings() const { return endings_; }
  BoardCounters board(std::uint32_t b) const { return boards_[b].counters; }
  PoolCounters pool(std::uint32_t process, std::uint32_t port) const;
  HostCounters host() const { return host_; }

 private:
  struct Message {
    FrameId frame = 0;
    Shipment shipment;
    std::uint32_t sequence = 0, fragments = 0;
    std::uint32_t sent = 0, gathered = 0, forwarded = 0;
    bool granted = false;
    std::uint64_t announced = 0;
  };
  struct Pool {
    std::deque<FrameId> waiting;  ///< announced, without permission
    std::deque<FrameId> ready;    ///< with data that may go on
    std::uint64_t used = 0;
    bool blocked = false;
    PoolCounters counters;
  };
  struct Board {
    std::deque<FrameId> control;        ///< posted; their control packets come next
    std::deque<std::uint32_t> sending;  ///< processes that have permission for something
    std::deque<std::uint32_t> down;     ///< pools with something for this board
    BoardCounters counters;
  };
  using PoolId = std::uint32_t;
  static PoolId pool_of(std::uint32_t process, std::uint32_t port) { return process * kPortsPerProcess + port; }

  void up(std::uint32_t board);
  void control_arrives(std::uint32_t board, const ControlPacket& packet);
  void data_arrives(std::uint32_t board, const DataHeader& header);
  void down(std::uint32_t board);
  void grant();
  void unblock(PoolId id);
  void end(Message& message, bool delivered);
  void lose(FrameId frame);

  Parameters parameters_;
  std::uint64_t now_ = 0;
  std::uint32_t posted_ = 0;
  bool host_alive_ = true;
  std::vector<bool> alive_;
  std::vector<Board> boards_;
  std::map<FrameId, Message> messages_;
  std::map<std::uint32_t, FrameId> by_sequence_;            ///< announced to the host
  std::map<std::uint32_t, std::deque<FrameId>> permitted_;  ///< by process: with permission, not all sent
  std::map<PoolId, Pool> pools_;
  std::deque<PoolId> granting_;
  HostCounters host_;
  std::vector<Ending> endings_;
};

}  // namespace ulfm::fabric::pcie
