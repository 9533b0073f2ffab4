// One message between the two sides, over the public C interface: the calls that a language binding or a runtime above
// would make. Any failure ends the measurement as an exception of this program, which the measurement's own function
// turns into an error value.
#pragma once

#include <string>
#include <utility>

#include <fmt/core.h>

#include "look.hpp"
#include "pair.hpp"

namespace perf {

struct Failure {
  ulfm::Error error;
};

template <typename T>
T need(ulfm::Result<T>&& result) {
  if (!result) throw Failure{std::move(result.error())};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The same for a call of the C interface.
inline int need(int code) {
  if (code < 0) throw Failure{{static_cast<ulfm::Errc>(-code), ulfm_last_error()}};
  return code;
}

/// Composes a message, lets `fill(buffer)` write it, and posts it.
template <typename Fill>
void send(Side& side, std::size_t size, Fill&& fill) {
  const ulfm_port port = side.port->handle();
  void* buffer = nullptr;
  int code = ulfm_compose(port, size, &buffer);
  while (code == ULFM_ERR_FULL) {
    need(ulfm_flush(port, -1));
    code = ulfm_compose(port, size, &buffer);
  }
  need(code);
  fill(static_cast<std::byte*>(buffer));
  need(ulfm_post(port, side.peer));
}

inline void send(Side& side, std::size_t size) {
  send(side, size, [](std::byte*) {});
}

/// `use(bytes)` reads a message that has arrived, in place; then its buffer is given back.
template <typename Use>
void take(Side& side, const ulfm_message& message, std::size_t size, Use&& use) {
  if (message.size != size)
    throw Failure{{ulfm::Errc::protocol, fmt::format("a message of {} bytes arrived with {}", size, message.size)}};
  use(static_cast<const std::byte*>(message.bytes));
  need(ulfm_release(side.port->handle(), &message));
}

/// Waits for a message; a peer that failed and left has said why, and is not waited for.
inline void wait_for_message(Side& side, ulfm_message& message) {
  constexpr std::int64_t kPatience = 100'000'000;  // ns
  for (;;) {
    const int code = ulfm_wait(side.port->handle(), kPatience, &message);
    if (code != ULFM_ERR_TIMED_OUT) return (void)need(code);
    if (side.peer_left()) throw Failure{{ulfm::Errc::peer_failed, "the other side has left"}};
  }
}

template <typename Use>
void receive(Side& side, std::size_t size, Use&& use) {
  ulfm_message message;
  wait_for_message(side, message);
  take(side, message, size, use);
}

inline void receive(Side& side, std::size_t size) {
  receive(side, size, [](const std::byte*) {});
}

/// The same, looking for it by polls: a receiver that looks is one that its sender need not wake. Sleeps only when
/// nothing comes for long.
template <typename Use>
void look_for(Side& side, std::size_t size, Use&& use) {
  ulfm_message message;
  if (!look_a_while([&] { return need(ulfm_poll(side.port->handle(), &message)) == 1; }))
    wait_for_message(side, message);
  take(side, message, size, use);
}

inline void look_for(Side& side, std::size_t size) {
  look_for(side, size, [](const std::byte*) {});
}

/// Takes a message if it is there already.
inline bool receive_now(Side& side, std::size_t size) {
  ulfm_message message;
  if (need(ulfm_poll(side.port->handle(), &message)) == 0) return false;
  take(side, message, size, [](const std::byte*) {});
  return true;
}

}  // namespace perf
