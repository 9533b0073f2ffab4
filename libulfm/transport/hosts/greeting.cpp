#include "transport/hosts/greeting.hpp"

#include <sodium.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace ulfm::hosts {
namespace {

void prepare() noexcept {
  if (sodium_init() < 0) std::abort();
}

Proof proof_of(const Greeting& g, const Key& key) noexcept {
  prepare();
  Proof proof;
  crypto_generichash(proof.data(), proof.size(), reinterpret_cast<const unsigned char*>(&g), offsetof(Greeting, proof),
                     key.data(), key.size());
  return proof;
}

Proof proof_of(const Welcome& w, const Nonce& nonce, const Key& key) noexcept {
  prepare();
  std::array<unsigned char, offsetof(Welcome, proof) + sizeof(Nonce)> message{};
  std::memcpy(message.data(), &w, offsetof(Welcome, proof));
  std::memcpy(message.data() + offsetof(Welcome, proof), nonce.data(), nonce.size());
  Proof proof;
  crypto_generichash(proof.data(), proof.size(), message.data(), message.size(), key.data(), key.size());
  return proof;
}

// In constant time: how much of a guess was right must not show.
bool is_same(const Proof& a, const Proof& b) noexcept { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace

Key key_for(std::string_view job_secret, std::uint64_t token) noexcept {
  prepare();
  crypto_generichash_state state;
  Key key;
  crypto_generichash_init(&state, nullptr, 0, key.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&token), sizeof token);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(job_secret.data()), job_secret.size());
  crypto_generichash_final(&state, key.data(), key.size());
  return key;
}

Nonce random_nonce() noexcept {
  prepare();
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Greeting greeting(const Key& key, Greeting about) noexcept {
  about.magic = kGreetingMagic;
  about.version = kVersion;
  about.proof = proof_of(about, key);
  return about;
}

Refusal check(std::span<const std::byte> bytes, const Key& key, Greeting& out) noexcept {
  if (bytes.size() < sizeof out) return Refusal::unknown_secret;
  std::memcpy(&out, bytes.data(), sizeof out);
  if (out.magic != kGreetingMagic) return Refusal::unknown_secret;
  // Greetings of all versions have this size, and their proof at the end. Who does not know the key gets no answer.
  if (!is_same(out.proof, proof_of(out, key))) return Refusal::unknown_secret;
  return out.version == kVersion ? Refusal::none : Refusal::other_version;
}

Refusal check(std::span<const std::byte> bytes, const Key& key, Greeted& greeted, Greeting& out) {
  const Refusal why = check(bytes, key, out);
  return why == Refusal::none && !greeted.take(out.nonce) ? Refusal::unknown_secret : why;
}

bool Greeted::take(const Nonce& nonce) {
  std::uint64_t some = 0;
  std::memcpy(&some, nonce.data(), sizeof some);
  return some_of_each_.insert(some).second;
}

Welcome welcome(const Key& key, const Nonce& nonce, std::uint32_t connection, std::uint32_t check,
                std::uint32_t most) noexcept {
  Welcome w{kWelcomeMagic, Refusal::none, connection, check, most, {}};
  w.proof = proof_of(w, nonce, key);
  return w;
}

Welcome refusal(const Key& key, const Nonce& nonce, Refusal why) noexcept {
  Welcome w{kWelcomeMagic, why, 0, 0, 0, {}};
  w.proof = proof_of(w, nonce, key);
  return w;
}

bool check(std::span<const std::byte> bytes, const Key& key, const Nonce& nonce, Welcome& out) noexcept {
  if (bytes.size() < sizeof out) return false;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out.magic == kWelcomeMagic && is_same(out.proof, proof_of(out, nonce, key));
}

}  // namespace ulfm::hosts
