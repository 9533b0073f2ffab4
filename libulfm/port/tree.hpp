// One message to many ports by way of each other: what the port at the root of a tree has, and each port on the way.
//
// The ports below are a list. The first one gets the message for half of it, the first of the rest for half of that,
// and so on: a binomial tree. Each connection of a tree is its own, in front of everything else on it comes the list
// that its far end is to serve, and a port on the way sends on what it has whole. Nobody is notified that a message
// has come: what a port that dies had not sent on is lost for those behind it, and later messages go round it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.hpp"
#include "port/address.hpp"
#include "port/message_cache.hpp"
#include "proto/framing.hpp"

namespace ulfm {

class Node;

/// A destination without room, or without a look at it, for so long is looked at: that costs system calls.
inline constexpr std::chrono::milliseconds kLookAfter{100};

/// Under the node's lock, as everything that sends.
class Tree {
 public:
  using Lost = std::function<void(PortAddress, const Error& why)>;

  /// A tree over `below` for what the port `source` sends; `from` is the port of this process. Whoever cannot be
  /// reached is left out, and `lost` is called for it.
  Tree(Node& node, std::uint16_t from, PortAddress source, std::span<const PortAddress> below, PortCounters& counters,
       Lost lost);
  ~Tree();

  /// The root's next message, whose bytes stay until advance() is true.
  void begin(const std::byte* bytes, std::size_t size);
  /// A message to send on.
  void pass_on(HeapBytes bytes, std::size_t size);
  /// Sends what there is room for; true when nothing is left.
  bool advance();
  /// Looks at those to whom something waits: those behind one that has gone are served from here. Costs system calls.
  void look_for_dead();
  /// Ends the tree: says goodbye to those below. False when one that listens has no room for it now.
  bool say_byes();
  /// Bytes that wait to be sent on.
  std::size_t waiting() const noexcept { return waiting_; }

 private:
  struct Item {
    FrameSender sender;
    std::shared_ptr<const std::string> list;  ///< what it sends, when that is a list
  };
  struct Child {
    PortAddress to;
    std::unique_ptr<Outlet> outlet;
    std::vector<PortAddress> below;
    std::deque<Item> items;
  };
  struct Message {
    HeapBytes bytes;
    std::size_t size = 0;
  };
  void serve(std::span<const PortAddress> list);
  void give(Child& child) const;
  bool send(Child& child);
  void leave_out(std::size_t child);
  bool advance_one();
  std::string text_of(std::span<const PortAddress> list) const;

  Node& node_;
  const std::uint16_t from_;
  const PortAddress source_;
  PortCounters& counters_;
  const Lost lost_;
  std::vector<Child> children_;
  const std::byte* bytes_ = nullptr;
  std::size_t size_ = 0;
  bool sending_ = false;
  std::deque<Message> messages_;  ///< to send on, the first one is being sent
  std::size_t waiting_ = 0;
  std::chrono::nanoseconds looked_{};
};

/// What a list says: whose messages come, and whom they go to. Errc::protocol when it is none.
struct TreeList {
  PortAddress source;
  std::vector<PortAddress> below;
};
Result<TreeList> read_tree_list(Node& node, std::string_view text);

}  // namespace ulfm
