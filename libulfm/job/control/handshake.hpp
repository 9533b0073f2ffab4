// How two processes set a control connection up: each shows the other that it knows the acceptor's secret, and neither
// ever sends it. A challenge and response in both directions (the pattern of ISO/IEC 9798-4, mutual, three passes) with
// BLAKE2b keyed by the secret (RFC 7693).
//
//   connector                              acceptor
//     greeting: nonce A          ------>
//                                <------     challenge: nonce B, proof(acceptor, A, B)
//     proof(connector, A, B)     ------>
//     identity                   ------>
//                                <------     identity
//
// These are the states alone, without sockets and clocks: packets go in, bytes to send come out.
#pragma once

#include <optional>

#include "job/control/key.hpp"
#include "job/control/wire.hpp"

namespace ulfm::control {

/// Random bytes of the kernel's generator.
Secret random_secret() noexcept;
Nonce random_nonce() noexcept;

/// The keyed hash of both nonces under a label, which keeps one side's proof from being the other's.
Proof proof_of(const Secret& secret, std::string_view label, const Nonce& connector, const Nonce& acceptor) noexcept;
inline constexpr std::string_view kConnectorLabel = "ulfm connector 1";
inline constexpr std::string_view kAcceptorLabel = "ulfm acceptor  1";

/// The accepting side of one connection. Everything that it gets is an unauthenticated peer's until done.
class Acceptor {
 public:
  explicit Acceptor(const Secret& secret) noexcept : secret_(secret) {}

  /// The next packet must be of this type.
  Type expects() const noexcept { return expects_; }
  /// Takes that packet; appends what is to be sent to `out`. An error refuses the connection, with the reason.
  Result<void> take(std::span<const std::byte> body, Bytes& out);
  /// The other side has shown that it knows the secret and has said who it is.
  bool done() const noexcept { return peer_.has_value(); }
  const Identity& peer() const noexcept { return *peer_; }

 private:
  const Secret& secret_;
  Type expects_ = Type::greeting;
  Proof wanted_{};
  std::optional<Identity> peer_;
};

/// The connecting side.
class Connector {
 public:
  Connector(const Secret& secret, Identity self, const Nonce& nonce = random_nonce()) noexcept
      : secret_(secret), self_(std::move(self)), nonce_(nonce) {}

  /// What it begins with.
  Bytes greeting() const { return control::greeting(nonce_); }
  Type expects() const noexcept { return expects_; }
  /// Errc::peer_failed when the process that answers does not know the secret.
  Result<void> take(std::span<const std::byte> body, Bytes& out);
  bool done() const noexcept { return peer_.has_value(); }
  const Identity& peer() const noexcept { return *peer_; }

 private:
  Secret secret_;
  Identity self_;
  Nonce nonce_;
  Type expects_ = Type::challenge;
  std::optional<Identity> peer_;
};

}  // namespace ulfm::control
