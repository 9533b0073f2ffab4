// What a process on another host than its job's arena and its proxy there say to each other (decision 0024).
//
//   process on another host                           its proxy, on the arena's host
//     FarTransport                                      an engine of the arena: the process's place, ports, connections
//       port kReplies   <-- answers, credits ---------
//       port P          <-- frames of port P, origins --
//                       -- requests, frames to send ->    port kRequests
//
// All of it goes as frames of `tcp` between the two. Each port of the process has a connection of its own here, so one
// that nobody reads holds up no other. Frames to send are counted: a virtual connection has kCredits of them between
// its outlet here and the arena, which is as many as a proxy keeps for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/contract.hpp"

namespace ulfm::proxy {

inline constexpr std::uint16_t kRequests = 0;                ///< port of a proxy, and of the door
inline constexpr std::uint16_t kReplies = kPortsPerProcess;  ///< port of the process
inline constexpr std::uint32_t kCredits = 32;
inline constexpr std::size_t kBesides = 512;  ///< bytes of a frame between the two, beside those of one of the arena

enum class ProxyCall : std::uint8_t {
  // To the door.
  ask = 1,  ///< number: rank
  // To the proxy; id is the number of the question where there is an answer.
  join,        ///< -> ProxyPlace and the card
  open,        ///< port -> nothing
  close,       ///< port -> nothing
  connect,     ///< port: from; number: outlet; ProxyDestination, card, hello -> pid
  listening,   ///< number: outlet -> one byte, then FrameCount for each open port
  card_of,     ///< number: rank; name of the job -> card
  statistics,  ///< -> text
  leave,       ///< everything has been said -> nothing
  introduce,   ///< number: rank; bytes of the card in `port`, card, name of the job
  frame,       ///< id: outlet
  end,         ///< id: outlet
  drop,        ///< port; id: origin
  // To the process.
  answer,  ///< id: the question; number: 0, or what went wrong, of which the sentence follows; port: 1: it goes on
  credit,  ///< id: outlet; number: how many
  closed,  ///< id: outlet; number: 1: cut off
  proxy,   ///< of the door: card of the proxy; number: as in answer
  // To a port of the process.
  arrived,  ///< id: origin
  origin,   ///< id; ProxyOrigin, card, hello
  dead,     ///< id: origin
  broken,   ///< id: origin
  over,     ///< nothing will come any more: the sentence
};

/// In front of everything. The header of a frame follows, and its data.
struct ProxyHead {
  ProxyCall what{};
  std::uint8_t kind = 0;  ///< of a frame
  std::uint16_t port = 0;
  std::uint32_t id = 0, number = 0;
  std::uint32_t header = 0;  ///< bytes of a frame's header
};
static_assert(sizeof(ProxyHead) == 16);

struct ProxyPlace {
  char model[16];
  std::uint32_t slot_bytes, multicast;
  std::int32_t pid;
  std::uint32_t reserved;
};

struct ProxyDestination {
  std::uint16_t port, card;  ///< card: bytes
};

struct ProxyOrigin {
  std::uint16_t port, card;  ///< card: bytes
  std::int32_t pid;
};

struct FrameCount {
  std::uint32_t port, reserved;
  std::uint64_t frames;  ///< that the proxy has sent to that port since it was opened
};

using Bytes = std::vector<std::byte>;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}
inline std::span<const std::byte> bytes_of(const std::string& text) noexcept { return std::as_bytes(std::span(text)); }
inline std::span<const std::byte> bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span(text)); }

inline void append(Bytes& to, std::span<const std::byte> more) { to.insert(to.end(), more.begin(), more.end()); }

/// Takes a value from the front; false when there are too few bytes.
template <typename T>
bool take(std::span<const std::byte>& from, T& value) noexcept {
  if (from.size() < sizeof value) return false;
  std::memcpy(static_cast<void*>(&value), from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return true;
}
/// The same for so many characters.
inline bool take(std::span<const std::byte>& from, std::size_t length, std::string& text) {
  if (from.size() < length) return false;
  text.assign(reinterpret_cast<const char*>(from.data()), length);
  from = from.subspan(length);
  return true;
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Sends one; false when there is no room now.
inline bool say(Outlet& out, const ProxyHead& head, std::span<const std::byte> body) {
  const iovec piece{const_cast<std::byte*>(body.data()), body.size()};
  Gather data(std::span(&piece, 1));
  return out.push(Kind::first, bytes_of(head), data, body.size());
}

/// What has come: the head, and what follows it. False when it makes no sense.
inline bool read(const Frame& frame, ProxyHead& head, std::span<const std::byte>& body) noexcept {
  // A carrier has them one behind the other.
  body = {frame.header, std::size_t{frame.header_length} + frame.length};
  return frame.kind == Kind::first && take(body, head);
}

/// Which error an answer's number is.
inline std::uint32_t number_of(Errc code) noexcept { return static_cast<std::uint32_t>(code); }
inline Errc error_of(std::uint32_t number) noexcept {
  return number <= static_cast<std::uint32_t>(Errc::system) ? static_cast<Errc>(number) : Errc::protocol;
}

}  // namespace ulfm::proxy
