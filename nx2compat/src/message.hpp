// The things the engine keeps: receives and sends of the program, messages nobody has asked for yet, and long
// messages on their way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "list.hpp"
#include "selection.hpp"

namespace nx2 {

using Bytes = std::unique_ptr<std::byte[]>;

/// nullptr without memory.
inline Bytes allocate(std::size_t size) noexcept { return Bytes(new (std::nothrow) std::byte[size]); }

/// What info...() tell about a message.
struct MessageInfo {
  std::int32_t type = 0;
  std::int32_t node = 0;
  std::int32_t ptype = 0;
  long count = 0;
};

/// The info array of an extended call: four numbers are written, of `long` or of INTEGER*4.
struct InfoArray {
  void* place = nullptr;
  bool narrow = false;
};

/// A procedure of the program, to be called when a message is complete.
struct Handler {
  enum class Style : std::uint8_t { none, c, fortran };
  Style style = Style::none;
  bool extended = false;  ///< takes hparam as its fifth argument
  void (*entry)() = nullptr;
  long hparam = 0;
  explicit operator bool() const noexcept { return style != Style::none; }
};

struct Incoming;

/// A receive or a send that the program started.
struct Request : Link {
  bool is_receive = true;
  Selector selector;
  std::byte* buffer = nullptr;
  std::size_t capacity = 0;
  InfoArray info;
  Handler handler;

  int pending = 0;  ///< parts that are not complete: one of a receive, one for each destination of a long send
  int error = 0;
  MessageInfo result;
  std::uint64_t sequence = 0;    ///< of the message it received
  Incoming* incoming = nullptr;  ///< the long message that is coming into its buffer

  std::int32_t id = 0;        ///< message id; 0: it has none
  bool ignored = false;       ///< msgignore: the engine releases it when it is complete
  bool pooled = false;        ///< the engine's, returned to its pool when it is complete
  Request* merged = nullptr;  ///< next one under the same message id

  bool done() const noexcept { return pending == 0; }
};

/// A message, or the proxy of one, that no receive was posted for when it came.
struct Arrived : Link {
  enum class State : std::uint8_t {
    whole,   ///< in `bytes`
    proxy,   ///< at its sender, to be asked for
    coming,  ///< asked for, on its way into `bytes`
  };
  State state = State::whole;
  bool keeps_buffer = false;  ///< memory was short: its short buffer goes back to the sender when it is received
  std::int32_t type = 0, source = 0, source_ptype = 0, ptype = 0;
  std::size_t count = 0;
  std::uint64_t sequence = 0;
  std::uint32_t sender_id = 0;
  Bytes bytes;
  Incoming* incoming = nullptr;
  Request* taker = nullptr;  ///< a receive that took it while it was coming
};

/// A long message on its way to here.
struct Incoming : Link {
  std::uint32_t id = 0;
  std::int32_t source = 0;
  std::uint32_t sender_id = 0;
  std::size_t count = 0, received = 0;
  std::byte* to = nullptr;
  Request* request = nullptr;  ///< receives it directly,
  Arrived* arrived = nullptr;  ///< or it is kept for one to come
  bool in_use = false;
};

/// A long message of this node, on its way or waiting to be asked for.
struct Outgoing : Link {
  std::uint32_t id = 0;
  std::int32_t node = 0;
  const std::byte* data = nullptr;
  std::size_t count = 0, sent = 0;
  std::shared_ptr<std::byte[]> kept;  ///< the engine's copy, when the program has its buffer back
  Request* request = nullptr;         ///< to be completed; nullptr once the program has its buffer back
  std::uint32_t receiver_id = 0;
  bool asked_for = false;
  bool in_use = false;
};

}  // namespace nx2
