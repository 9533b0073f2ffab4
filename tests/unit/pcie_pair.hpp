// Both models of a host with boards, side by side: what one does the other must do, turn for turn.
#pragma once

#include <fmt/format.h>

#include <map>

#include "fabric/pcie/reference.hpp"
#include "fabric/pcie/relay.hpp"
#include "model_pair.hpp"

namespace test::pcie {

using namespace ulfm::fabric;
using namespace ulfm::fabric::pcie;

class Pair : public ModelPair<Pair> {
 public:
  explicit Pair(const Parameters& parameters)
      : ModelPair(Relay::bytes(parameters), parameters.frames),
        relay(memory(), parameters),
        reference(parameters),
        p_(parameters) {
    relay.build();
  }
  using ModelPair::memory;
  using ModelPair::memory_bytes;

  /// A message from one process to another; false when neither model takes it, and both must agree.
  bool post(std::uint32_t from, std::uint32_t to, std::uint32_t port, std::uint32_t bytes) {
    last = next_frame();
    const Shipment shipment = shipment_of(from, to, port, bytes);
    const bool taken = took(relay.post(last, shipment), reference.post(last, shipment));
    if (taken) sent_[last] = shipment;
    return taken;
  }
  /// One that neither model may take.
  bool refuses(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t port, std::uint32_t bytes) {
    const Shipment shipment = shipment_of(from, to, port, bytes);
    return !relay.post(frame, shipment) && !reference.post(frame, shipment);
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
  std::size_t in_flight() const { return sent_.size(); }
  std::size_t unread() const { return unread_.size(); }

  FrameId last = 0;  ///< of the message that was sent last
  Relay relay;
  Reference reference;

 private:
  friend class ModelPair<Pair>;
  Relay& net() { return relay; }
  void attach(std::byte* memory, std::size_t) { relay = Relay(memory, p_); }
  void step_reference(std::uint64_t turn) {
    while (reference.now() < turn) reference.turn();
  }
  /// Messages that wait for room in a pool which nobody reads stay where they are.
  bool at_rest() const { return !reference.moves(); }
  void on_ending(const Ending& ending) {
    relay.settle(ending.frame);
    if (ending.delivered) unread_.push_back(sent_[ending.frame]);
    sent_.erase(ending.frame);
  }
  void compare() const {
    const std::string at = fmt::format(" in turn {}", now());
    const HostCounters host = relay.host();
    must(host == reference.host(), "the host counts otherwise" + at);
    must(host.balances(), "the totals do not balance" + at);
    must(host.most_reserved <= p_.memory && host.most_stored <= p_.memory, "the host's memory is exceeded" + at);
    for (std::uint32_t b = 0; b < p_.boards; ++b)
      must(relay.board(b) == reference.board(b), fmt::format("board {} counts otherwise", b) + at);
    for (std::uint32_t process = 0; process < p_.processes; ++process)
      for (std::uint32_t port = 0; port < 3; ++port) {
        const PoolCounters pool = relay.pool(process, port);
        must(pool == reference.pool(process, port), fmt::format("pool {} of {} counts otherwise", port, process) + at);
        must(pool.most_used <= p_.pool, "a pool is exceeded" + at);
      }
  }
  Shipment shipment_of(std::uint32_t from, std::uint32_t to, std::uint32_t port, std::uint32_t bytes) const {
    return {from % p_.boards, to % p_.boards, from, to, port, bytes};
  }

  Parameters p_;
  std::map<FrameId, Shipment> sent_;
  std::vector<Shipment> unread_;  // in the order of arrival
};

}  // namespace test::pcie
