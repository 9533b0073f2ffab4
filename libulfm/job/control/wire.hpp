// What travels on a control connection: packets of a fixed head and a short body, little-endian (docs/wire.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace ulfm::control {

inline constexpr std::size_t kHead = 4;
inline constexpr std::size_t kMostBody = 508;
inline constexpr std::size_t kMostCard = 240;
inline constexpr std::size_t kMostSentence = 480;
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::int32_t kUnknownCode = -1;

using Nonce = std::array<std::uint8_t, 16>;
using Proof = std::array<std::uint8_t, 32>;
using Bytes = std::vector<std::byte>;

enum class Type : std::uint8_t {
  // setting a connection up, in this order
  greeting = 1,   ///< connector: here is my nonce
  challenge = 2,  ///< acceptor: here is mine, and the proof that I know the secret
  proof = 3,      ///< connector: mine
  identity = 4,   ///< connector, then acceptor: who I am
  // afterwards
  set_up = 5,              ///< data will follow from one port to another
  descriptor_request = 6,  ///< please pass a descriptor
  descriptor = 7,          ///< here it is, or why not
  abort = 8,               ///< this process ends before its time
  goodbye = 9,             ///< this process leaves in good order
};
/// Name of a type, for traces.
const char* name(Type type) noexcept;

/// Who is at the other end.
struct Identity {
  std::uint32_t pid = 0;
  std::uint32_t rank = 0;
  std::uint64_t started = 0;  ///< job/liveness.hpp
  std::uint64_t host = 0;     ///< job/liveness.hpp
  std::string card;           ///< without the endpoint key: no secret ever travels
};

enum class Passing : std::uint32_t { here = 0, not_there = 1, not_this_way = 2 };

struct SetUp {
  std::uint16_t from_port, to_port;
};
struct DescriptorRequest {
  std::uint32_t number;  ///< comes back with the answer
  std::uint32_t what;    ///< the transport's affair
};
struct DescriptorAnswer {
  std::uint32_t number;
  Passing passing;
};
struct Abort {
  std::int32_t code;  ///< exit code; kUnknownCode when not known
  std::string sentence;
};

/// Whole packets, head included. A card or sentence that is too long is cut.
Bytes greeting(const Nonce& nonce);
Bytes challenge(const Nonce& nonce, const Proof& proof);
Bytes proof_packet(const Proof& proof);
Bytes packet(const Identity& identity);
Bytes packet(const SetUp& set_up);
Bytes packet(const DescriptorRequest& request);
Bytes packet(const DescriptorAnswer& answer);
Bytes packet(const Abort& abort);
Bytes goodbye();

/// Bodies of packets; Errc::protocol, with what was wrong, for anything else than the functions above write.
Result<Nonce> read_greeting(std::span<const std::byte> body);
Result<std::pair<Nonce, Proof>> read_challenge(std::span<const std::byte> body);
Result<Proof> read_proof(std::span<const std::byte> body);
Result<Identity> read_identity(std::span<const std::byte> body);
Result<SetUp> read_set_up(std::span<const std::byte> body);
Result<DescriptorRequest> read_descriptor_request(std::span<const std::byte> body);
Result<DescriptorAnswer> read_descriptor_answer(std::span<const std::byte> body);
Result<Abort> read_abort(std::span<const std::byte> body);

/// Puts packets together from bytes as they come. Asks for exactly the bytes that the packet still needs, so nothing of
/// what follows is ever taken: an unauthenticated peer cannot make anybody read more than the packet that is expected.
class PacketReader {
 public:
  enum class Step { more, whole, broken };

  /// Only this type is acceptable next.
  void expect(Type type) noexcept { first_ = last_ = type; }
  /// Only types that follow the set-up of the connection are acceptable from now on.
  void expect_session() noexcept { first_ = Type::set_up, last_ = Type::goodbye; }

  /// Where the next bytes go. Never empty.
  std::span<std::byte> room() noexcept;
  /// `n` bytes have been put there. broken: nothing that comes from this sender can make sense any more.
  Step took(std::size_t n) noexcept;

  /// After `whole`, until next().
  Type type() const noexcept { return static_cast<Type>(bytes_[0]); }
  std::span<const std::byte> body() const noexcept { return std::span(bytes_).subspan(kHead, need_ - kHead); }
  void next() noexcept { have_ = 0, need_ = kHead; }

 private:
  bool head_is_good() noexcept;

  std::array<std::byte, kHead + kMostBody> bytes_{};
  std::size_t have_ = 0, need_ = kHead;
  Type first_ = Type::greeting, last_ = Type::greeting;
};

}  // namespace ulfm::control
