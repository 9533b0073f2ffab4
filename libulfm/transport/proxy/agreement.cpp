#include "transport/proxy/agreement.hpp"

#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "fabric/engine/discovery.hpp"
#include "job/liveness.hpp"
#include "job/pmi.hpp"

namespace ulfm::proxy {
namespace {

constexpr std::size_t kPiece = 500;  // of the address: launchers take values below 1024 bytes
constexpr const char* kPieces = "ulfm-door";
constexpr std::string_view kWhyNot = "none:";

std::string key_of(std::size_t piece) { return fmt::format("{}-{}", kPieces, piece); }

// Values must not have blanks, sentences do. The launcher ends a job at the first error, whoever's it is, so each
// process says the same.
std::string in_place_of_address(const Error& why) {
  std::string text(kWhyNot);
  for (const char c : why.what) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

Error why_not(std::string_view hex) {
  std::string sentence;
  for (std::size_t at = 0; at + 2 <= hex.size(); at += 2) {
    unsigned byte = 0;
    (void)std::from_chars(hex.data() + at, hex.data() + at + 2, byte, 16);
    sentence += static_cast<char>(byte);
  }
  return {Errc::unavailable, std::move(sentence)};
}

Result<void> put_address(Pmi& pmi, const std::string& address) {
  std::size_t pieces = 0;
  for (std::size_t at = 0; at < address.size(); at += kPiece)
    if (auto ok = pmi.put(key_of(pieces++), address.substr(at, kPiece)); !ok) return ok;
  return pmi.put(kPieces, fmt::format("{}", pieces));
}

Result<std::string> get_address(Pmi& pmi) {
  auto pieces = pmi.get(kPieces);
  if (!pieces) return pieces;
  std::size_t count = 0;
  (void)std::from_chars(pieces->data(), pieces->data() + pieces->size(), count);
  std::string address;
  for (std::size_t piece = 0; piece < count; ++piece) {
    auto part = pmi.get(key_of(piece));
    if (!part) return part;
    address += *part;
  }
  if (address.starts_with(kWhyNot)) return fail(why_not(std::string_view(address).substr(kWhyNot.size())));
  return address;
}

Result<std::optional<DoorAddress>> agree() {
  if (std::getenv("PMI_SPAWNED") != nullptr)
    return fail(Errc::unavailable,
                "processes that are spawned on several hosts do not find the emulated interconnect of their job: start "
                "the job with ulfmrun");
  auto pmi = Pmi::borrow();
  if (!pmi) return fail(pmi.error());
  if (!*pmi)
    return fail(Errc::unavailable,
                "this job has processes on several hosts, and its launcher gives no PMI_FD, by which they could agree "
                "on an interconnect: start it with ulfmrun");
  Result<std::string> address = fail(Errc::not_found, "");
  if ((*pmi)->rank() == 0) {
    address = fabric::door_of_holder();
    if (auto ok = put_address(**pmi, address ? *address : in_place_of_address(address.error())); !ok)
      return fail(ok.error());
  }
  // Also where it has failed: the others wait in it.
  if (auto ok = (*pmi)->barrier(); !ok) return fail(ok.error());
  if ((*pmi)->rank() != 0) address = get_address(**pmi);
  if (!address) return fail(address.error());
  auto door = decode(*address);
  if (!door) return fail(door.error());
  if (door->host == host_identity()) return std::optional<DoorAddress>{};
  return std::optional(std::move(*door));
}

}  // namespace

Result<const DoorAddress*> agreed_door() {
  static std::mutex lock;
  static auto& agreed = *new std::optional<Result<std::optional<DoorAddress>>>;
  std::lock_guard guard(lock);
  if (!agreed) agreed.emplace(agree());
  if (!*agreed) return fail(agreed->error());
  return **agreed ? &***agreed : nullptr;
}

}  // namespace ulfm::proxy
