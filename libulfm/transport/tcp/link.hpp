// One TCP connection between a port here and a port of another process, and what is on its way on it.
//
// It serves both directions, each as a virtual connection of its own: answers acknowledge requests in the same packet,
// which takes a third of the time of a ping-pong off (decision 0031). What travels in one direction:
//
//   kHello    card and hello of the sender: its frames come from now on
//   frames    a TcpFrameHead, the header, the data, in whole lines of the cache (size_of)
//   kEnd      the sender needs this direction no more
//   kStop     the port here takes nothing from the other direction any more
//
// Data of a `more` frame without a header are a stream: the receiver hands them on in the pieces in which they come. So
// are the data of a frame that begins a message, behind its first bytes (FrameSizes::whole).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/lines.hpp"
#include "job/control/socket.hpp"
#include "transport/contract.hpp"
#include "transport/hosts/attempts.hpp"
#include "transport/hosts/greeting.hpp"
#include "transport/hosts/settings.hpp"
#include "transport/tcp/tuning.hpp"

namespace ulfm::tcp {

using control::Fd;
using hosts::Clock;
using hosts::SocketAddress;

/// In front of every frame; little-endian, as all hosts of a job are.
struct TcpFrameHead {
  std::uint32_t length;  ///< of the data
  std::uint8_t kind;
  std::uint8_t header;  ///< bytes of header behind this
  std::uint8_t gap;     ///< bytes between the header and the data, less than a line of the cache
  std::uint8_t reserved;
};
static_assert(sizeof(TcpFrameHead) == 8);

/// Where the data of a frame begin in it, and all of its bytes.
constexpr std::size_t data_of(const TcpFrameHead& head) noexcept { return sizeof head + head.header + head.gap; }
constexpr std::size_t end_of(const TcpFrameHead& head) noexcept { return data_of(head) + head.length; }
/// Whole lines of the cache, so that each frame begins with one in the kernel's pages, too.
constexpr std::size_t size_of(const TcpFrameHead& head) noexcept { return up_to_line(end_of(head)); }
/// With it the data lie in their line as they do at `data`. Processors copy by a string instruction, as the kernel
/// does, several times more slowly when the destination begins less than a line behind the source in its page (decision
/// 0051).
inline std::uint8_t gap_for(const TcpFrameHead& head, const void* data) noexcept {
  const std::uintptr_t front = sizeof head + head.header;
  return static_cast<std::uint8_t>((reinterpret_cast<std::uintptr_t>(data) - front) % kLine);
}

inline constexpr Kind kHello{8}, kEnd{9}, kStop{10};

/// Bytes that are sent, handed on and read at a time.
struct FrameSizes {
  explicit FrameSizes(const hosts::NetworkSettings& settings) noexcept
      : longest(settings.max_frame), whole(std::max(settings.max_whole, kLeastWhole)) {}
  static constexpr std::size_t kLeastWhole = 16 * 1024;

  std::size_t longest;  ///< data of a frame
  /// A frame with a header is handed on whole if its data are no longer than this. Of a longer one, which begins a
  /// message, the rest follows as a stream. The same at both ends of a link.
  std::size_t whole;
  /// What is read where nobody knows yet where data belong. The rest of a long message is read when its place is known.
  std::size_t read = 2 * whole + 1024;
  std::size_t block = 3 * read;
  static constexpr std::size_t kGlance = 1024;  ///< is read of a message that is likely a long one
};
static_assert(FrameSizes::kLeastWhole >= sizeof(TcpFrameHead) + 255 + 2 * kLine);  // so a read takes a whole frame

/// Room into which a connection is read. Frames lie in it until they are released.
struct TcpLink;
struct Block {
  std::uint32_t index = 0;     ///< in the network's table
  std::uint32_t held = 0;      ///< frames in it that were found and not released
  TcpLink* filling = nullptr;  ///< reads into it
  Lines bytes;
};

struct TcpPort;

struct TcpLink : hosts::Try {
  explicit TcpLink(std::uint64_t n) : number(n) {}

  Fd socket;
  TcpPort* port = nullptr;     ///< none: of a sender without a port, or the port has been closed
  const std::uint64_t number;  ///< in epoll
  int watched_by = -1;         ///< the epoll set that it is in

  // ---- of a connector, until it is up ----
  hosts::Key key{};
  hosts::Greeting greeting{};  ///< said as soon as TCP has connected
  bool has_greeted = false;
  std::array<std::byte, sizeof(hosts::Welcome)> answer{};
  std::size_t answered = 0;  ///< bytes of it

  // ---- the process at the other end ----
  std::uint64_t token = 0;
  std::uint16_t peer_port = kNoPort;
  std::int32_t pid = 0;
  std::uint32_t most = 0;  ///< bytes of data of the longest frame that it takes
  bool both_ways = false;

  // ---- what leaves ----
  enum class Way : std::uint8_t { unused, used, ended };
  Way out = Way::unused;
  Lines rest;  ///< of a frame that found a part of its room, and short frames behind it
  std::size_t rest_room = 0, rest_length = 0, rest_gone = 0;
  bool gathers = false;    ///< what waits in `rest` waits for more short frames, and not for room
  bool is_listed = false;  ///< among its port's `gatherers`
  struct {
    std::uint32_t frames = 0;  ///< short ones that left one soon after the other
    std::uint32_t looks = 0;   ///< of the port, until the last of them
    Clock::time_point last{};
  } row;
  bool has_end = false, has_stop = false;  ///< to be said as soon as there is room
  bool watches_room = false;               ///< epoll tells of room
  bool unproven = false;                   ///< what has left may not have been acknowledged
  bool is_parting = false;                 ///< ends as soon as it is; nobody has it any more
  std::optional<Clock::time_point> unproven_since;
  bool is_cut = false;              ///< the kernel has ended it because the other host does not answer
  std::atomic<bool> closed{false};  ///< nothing that leaves arrives any more
  Clock::time_point closed_at{};
  /// The port there has said that it takes nothing more, or take_given_up() tells why it does not.
  std::atomic<bool> is_closed_by_word{false};
  void close() noexcept {
    if (!closed.exchange(true)) closed_at = Clock::now();
  }
  /// A system call on the socket has failed with it, which no other one will tell again.
  void note_error(int error) noexcept {
    is_cut = is_cut || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  }

  // ---- what comes in ----
  Way in = Way::unused;
  std::uint32_t origin = 0;   ///< while `in` is used
  bool expects_long = false;  ///< the last message was one
  bool discards = false;      ///< nobody wants what comes any more
  Block* block = nullptr;
  std::size_t filled = 0, parsed = 0;  ///< bytes of the block
  std::size_t more_left = 0;           ///< bytes of a stream that are still to come
  std::size_t fill_left = 0;           ///< and those behind it that fill its last line
  bool is_starved = false;             ///< a whole frame lies in the block, and there was no memory to hand it on
  std::uint32_t waiting = 0;           ///< frames that were found and not taken
  ReceiveWindow window;

  bool is_host_answering() const override { return has_greeted; }
  bool is_open() const noexcept { return static_cast<bool>(socket); }
  /// What is sent on it may arrive.
  bool carries() const noexcept { return is_open() && !closed.load(std::memory_order_relaxed); }
};

}  // namespace ulfm::tcp
