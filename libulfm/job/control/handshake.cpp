#include "job/control/handshake.hpp"

#include <sodium.h>

#include <cstdlib>
#include <cstring>

namespace ulfm::control {
namespace {

// Chooses the code for this processor; any number of threads may call it. It cannot fail where it has not failed
// before.
void prepare() noexcept {
  if (sodium_init() < 0) std::abort();
}

void append(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }

// In constant time: how much of a guess was right must not show.
bool is_same(const Proof& a, const Proof& b) noexcept { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

// The last packet that either side takes: who the other one is.
Result<void> read_peer(std::span<const std::byte> body, std::optional<Identity>& peer) {
  auto who = read_identity(body);
  if (!who) return fail(who.error());
  peer = std::move(*who);
  return {};
}

}  // namespace

Secret random_secret() noexcept {
  prepare();
  Secret secret;
  randombytes_buf(secret.data(), secret.size());
  return secret;
}

Nonce random_nonce() noexcept {
  prepare();
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Proof proof_of(const Secret& secret, std::string_view label, const Nonce& connector, const Nonce& acceptor) noexcept {
  prepare();
  std::array<unsigned char, 16 + 2 * std::tuple_size_v<Nonce>> message{};
  std::memcpy(message.data(), label.data(), std::min<std::size_t>(label.size(), 16));
  std::memcpy(message.data() + 16, connector.data(), connector.size());
  std::memcpy(message.data() + 16 + connector.size(), acceptor.data(), acceptor.size());
  Proof proof;
  crypto_generichash(proof.data(), proof.size(), message.data(), message.size(), secret.data(), secret.size());
  return proof;
}

Result<void> Acceptor::take(std::span<const std::byte> body, Bytes& out) {
  if (expects_ == Type::greeting) {
    auto connector = read_greeting(body);
    if (!connector) return fail(connector.error());
    const Nonce own = random_nonce();
    wanted_ = proof_of(secret_, kConnectorLabel, *connector, own);
    append(out, challenge(own, proof_of(secret_, kAcceptorLabel, *connector, own)));
    expects_ = Type::proof;
    return {};
  }
  if (expects_ == Type::proof) {
    auto proof = read_proof(body);
    if (!proof) return fail(proof.error());
    if (!is_same(*proof, wanted_)) return fail(Errc::protocol, "it does not know the secret");
    expects_ = Type::identity;
    return {};
  }
  return read_peer(body, peer_);
}

Result<void> Connector::take(std::span<const std::byte> body, Bytes& out) {
  if (expects_ == Type::challenge) {
    auto answer = read_challenge(body);
    if (!answer) return fail(answer.error());
    const auto& [nonce, proof] = *answer;
    if (!is_same(proof, proof_of(secret_, kAcceptorLabel, nonce_, nonce)))
      return fail(Errc::peer_failed, "another process listens at the address of its control channel now");
    append(out, proof_packet(proof_of(secret_, kConnectorLabel, nonce_, nonce)));
    append(out, packet(self_));
    expects_ = Type::identity;
    return {};
  }
  return read_peer(body, peer_);
}

}  // namespace ulfm::control
