// The production model of an ideal network: LogGP without contention. When a message is given to it, it knows when it
// will be there; a heap in an arena of indices keeps these times in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "fabric/ideal/parameters.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::ideal {

/// A cycle that never comes.
inline constexpr std::uint64_t kNever = std::uint64_t{1} << 62;

struct IdealHeader;
struct IdealNode;
struct IdealMessage;

/// One thread at a time, of any process that maps the arena. No call allocates.
class Network {
 public:
  static std::size_t bytes(std::uint32_t nodes, std::uint32_t frames);
  /// Makes an empty network in zeroed memory of bytes(), 64-byte aligned; Errc::invalid: see check().
  static Result<Network> create(void* memory, std::uint32_t nodes, std::uint32_t frames, const Parameters& parameters);
  /// The network that is there already. Errc::protocol when `bytes` of memory do not hold one.
  static Result<Network> attach(void* memory, std::size_t bytes);

  /// Puts a message behind those that wait to leave `from`. False, with nothing taken, when its name is unknown or in
  /// use, a node is unknown, both are the same, or it has more than kMostBytes.
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes);
  /// Goes on until `budget` messages have ended, `endings` is full, nothing is on its way, or cycle `until` comes;
  /// those that end in one cycle end in the order of their nodes, and of one node in the order in which they began. How
  /// many ended.
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until = kNever);

  std::uint32_t inside() const noexcept;
  bool idle() const noexcept { return inside() == 0; }
  /// The first cycle that has not happened. The first of all is 1.
  std::uint64_t now() const noexcept;
  /// Messages that have ended, and their bytes.
  std::uint64_t ended() const noexcept;
  std::uint64_t ended_bytes() const noexcept;
  /// Messages taken in.
  std::uint64_t taken() const noexcept;
  /// Cycles that a node has spent on sending or waiting between messages.
  std::uint64_t busy(std::uint32_t node) const noexcept;
  /// Cycles that messages of a node have waited for earlier ones of it, all together.
  std::uint64_t waited(std::uint32_t node) const noexcept;
  /// Bytes of the messages that a node was given to send.
  std::uint64_t sent_bytes(std::uint32_t node) const noexcept;
  const Parameters& parameters() const noexcept { return p_; }
  std::uint32_t nodes() const noexcept { return nodes_; }

 private:
  Network(void* memory, std::uint32_t nodes, std::uint32_t frames, const Parameters& parameters);
  bool earlier(std::uint32_t a, std::uint32_t b) const noexcept;
  void put_in_heap(std::uint32_t size, std::uint32_t hole, std::uint32_t frame) noexcept;
  void push(std::uint32_t frame) noexcept;
  std::uint32_t pop() noexcept;

  Parameters p_;  // copies: what is shared could be changed under us
  std::uint32_t nodes_, frames_;
  IdealHeader* header_;
  IdealNode* node_;
  IdealMessage* message_;
  std::uint32_t* heap_;
};

}  // namespace ulfm::fabric::ideal
