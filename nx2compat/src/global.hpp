// Messages of the global operations: between nodes, of types that no program can send or select.
#pragma once

#include <vector>

#include "node.hpp"

namespace nx2 {

/// The part of a global operation that talks to other nodes. Every node makes the same calls in the same
/// order, so sender and type are enough to find a message.
class Group {
 public:
  Group(Call& call, std::int32_t operation)
      : engine_(call.engine()),
        type_(kFirstSystemType + operation),
        self_(call.node().self()),
        size_(call.node().nodes()) {}

  int self() const noexcept { return self_; }
  int size() const noexcept { return size_; }

  void send(int node, const void* data, std::size_t bytes);
  void receive(int node, void* data, std::size_t bytes);
  /// The two at once, with different nodes perhaps.
  void exchange(int to, const void* out, std::size_t out_bytes, int from, void* in, std::size_t in_bytes);
  /// Whatever length the message has.
  std::vector<std::byte> receive_any(int node);

  /// The network copies what is for all nodes: as few messages as there can be, in place of as few steps.
  bool has_multicast() const noexcept { return size_ > 2 && engine_.tuning().to_all != 0; }
  /// To all other nodes, in as many messages as it takes; those receive it with receive_long().
  void send_to_all(const void* data, std::size_t bytes);
  void receive_long(int node, void* data, std::size_t bytes);

 private:
  NxEngine& engine_;
  std::int32_t type_;
  int self_, size_;
};

}  // namespace nx2
