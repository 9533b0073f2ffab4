// Both models of a host with boards, side by side: what one does the other must do, turn for turn.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>

#include "arena_memory.hpp"
#include "fabric/pcie/reference.hpp"
#include "fabric/pcie/relay.hpp"
#include "property.hpp"

namespace test::pcie {

using namespace ulfm::fabric;
using namespace ulfm::fabric::pcie;

class Pair {
 public:
  explicit Pair(const Parameters& parameters)
      : memory(Relay::bytes(parameters)), relay(memory.get(), parameters), reference(parameters), p_(parameters) {
    relay.build();
  }

  /// A message from one process to another; false when neither model takes it, and both must agree.
  bool post(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t port, std::uint32_t bytes) {
    const Shipment shipment{board_of(from), board_of(to), from, to, port, bytes};
    const bool taken = relay.post(frame, shipment);
    must(reference.post(frame, shipment) == taken, "one model takes the message, the other does not");
    if (taken) sent_[frame] = shipment;
    return taken;
  }
  /// Lets the production model run, and the other one up to the same turn; the endings must be the same.
  void run(std::uint64_t budget, std::size_t room = 64) {
    std::vector<Ending> ended(room);
    ended.resize(relay.run(budget, ended));
    while (reference.now() < relay.now()) reference.turn();
    for (const Ending& ending : ended) {
      must(seen_ < reference.endings().size() && reference.endings()[seen_] == ending,
           fmt::format("message {} ends otherwise", ending.frame));
      ++seen_;
      relay.settle(ending.frame);
      if (ending.delivered) unread_.push_back(sent_[ending.frame]);
      sent_.erase(ending.frame);
    }
    if (ended.size() < room) must(seen_ == reference.endings().size(), "an ending is missing");
    compare();
  }
  void drain() {
    while (!relay.idle()) run(100000);
    must(!reference.moves(), "the reference goes on");
  }
  /// The receiver reads what came first of what is unread, or the `nth`.
  void read(std::size_t nth = 0) {
    if (nth >= unread_.size()) return;
    const Shipment s = unread_[nth];
    unread_.erase(unread_.begin() + static_cast<std::ptrdiff_t>(nth));
    if (relay.release(s.to_process, s.to_port, s.bytes)) relay.woken(s.to_process);
    reference.release(s.to_process, s.to_port, s.bytes);
  }
  void read_all() {
    while (!unread_.empty()) read();
  }
  void set_board(std::uint32_t board, bool alive) {
    relay.set_board(board, alive);
    reference.set_board(board, alive);
  }
  void set_host(bool alive) {
    relay.set_host(alive);
    reference.set_host(alive);
  }
  void compare() const {
    const HostCounters host = relay.host();
    must(host == reference.host(), "the host counts otherwise");
    must(host.balances(), "the totals do not balance");
    must(host.most_reserved <= p_.memory && host.most_stored <= p_.memory, "the host's memory is exceeded");
    for (std::uint32_t b = 0; b < p_.boards; ++b)
      must(relay.board(b) == reference.board(b), fmt::format("board {} counts otherwise", b));
    for (std::uint32_t process = 0; process < p_.processes; ++process)
      for (std::uint32_t port = 0; port < 3; ++port) {
        const PoolCounters pool = relay.pool(process, port);
        must(pool == reference.pool(process, port), fmt::format("pool {} of {} counts otherwise", port, process));
        must(pool.most_used <= p_.pool, "a pool is exceeded");
      }
  }
  std::size_t in_flight() const { return sent_.size(); }
  std::size_t unread() const { return unread_.size(); }
  std::uint32_t board_of(std::uint32_t process) const { return process % p_.boards; }

  ArenaMemory memory;
  Relay relay;
  Reference reference;

 private:
  Parameters p_;
  std::size_t seen_ = 0;
  std::map<FrameId, Shipment> sent_;
  std::vector<Shipment> unread_;  // in the order of arrival
};

}  // namespace test::pcie
