// How two processes make sure of each other before a frame counts. Over libfabric, what is said goes along with the
// connection request and with its answer, so it costs no round trip of its own.
//
//   connector                                   acceptor
//     Greeting: ports, nonce, proof   ------>     knows its own token and the job's secret: checks the proof
//                                     <------     Welcome: number of connection, longest frame, proof over the nonce
//
// A proof is a keyed BLAKE2b (RFC 7693). Its key comes from the secret of the job (ULFM_JOB_KEY, which ulfmrun makes)
// and the acceptor's token, which is in its card. So who answers is the process that was meant: the address of a
// container bridge exists on every host, and the same port may be open there.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_set>

#include "base/error.hpp"

namespace ulfm::hosts {

using Key = std::array<std::uint8_t, 32>;
using Proof = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 16>;

/// A connection has so long to prove itself, and less when more than kManyUnauthenticated have not: yet so long that a
/// peer whose cores have many processes gets its turn.
inline constexpr std::chrono::milliseconds kProveWithin{5000}, kProveWithinOfMany{1000};
inline constexpr std::size_t kManyUnauthenticated = 64;

/// What proofs to the process with that token are keyed with. `job_secret` may be empty.
Key key_for(std::string_view job_secret, std::uint64_t token) noexcept;
Nonce random_nonce() noexcept;

/// The acceptor may use the connection for what it sends to the connector, too.
inline constexpr std::uint16_t kBothWays = 1;
/// The connector does not wait for a connection that the acceptor makes to it in this moment.
inline constexpr std::uint16_t kInsists = 2;

struct Greeting {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t to, from;  ///< ports
  std::uint16_t flags;     ///< kBothWays, kInsists
  std::int32_t pid;
  std::uint32_t most;  ///< bytes of data of the longest frame that the connector takes
  std::uint32_t reserved;
  std::uint64_t token;  ///< the connector's
  Nonce nonce;
  Proof proof;
};

/// Why a connection is refused.
enum class Refusal : std::uint32_t {
  none = 0,
  unknown_secret = 1,
  no_such_port = 2,
  other_version = 3,
  no_room = 4,
  crossed = 5  ///< the acceptor connects to the connector itself in this moment: that connection serves both
};

struct Welcome {
  std::uint32_t magic;
  Refusal refusal;
  std::uint32_t connection;  ///< goes into every frame
  std::uint32_t check;       ///< and this
  std::uint32_t most;        ///< bytes of data of the longest frame that the acceptor takes
  Proof proof;
};

inline constexpr std::uint32_t kGreetingMagic = 0x756c'6d66, kWelcomeMagic = 0x756c'6d77;
inline constexpr std::uint16_t kVersion = 4;

/// Fills in what is not the caller's: magic, version and proof.
Greeting greeting(const Key& key, Greeting about) noexcept;
/// The greetings that have counted. A greeting counts once: who has overheard it cannot use it again. Each takes some
/// 40 bytes as long as the process lives. Its owner's lock.
class Greeted {
 public:
  /// False when a greeting with this nonce has counted before. Throws std::bad_alloc, and then nothing has counted.
  bool take(const Nonce& nonce);

 private:
  std::unordered_set<std::uint64_t> some_of_each_;  // a nonce is random: no two have eight bytes in common
};

/// Takes bytes from the network. Refusal::none when they are a greeting of somebody who knows the key.
Refusal check(std::span<const std::byte> bytes, const Key& key, Greeting& out) noexcept;
/// The same, and it counts now. Throws std::bad_alloc.
Refusal check(std::span<const std::byte> bytes, const Key& key, Greeted& greeted, Greeting& out);

/// An answer to that greeting.
Welcome welcome(const Key& key, const Nonce& nonce, std::uint32_t connection, std::uint32_t check,
                std::uint32_t most) noexcept;
/// A refusal shows that the right process answered, too: unless it does not know the key itself.
Welcome refusal(const Key& key, const Nonce& nonce, Refusal why) noexcept;
/// True when the bytes are an answer to `nonce` by the process that the key belongs to.
bool check(std::span<const std::byte> bytes, const Key& key, const Nonce& nonce, Welcome& out) noexcept;

}  // namespace ulfm::hosts
