#include "transport/proxy/agreement.hpp"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include "fabric/engine/discovery.hpp"
#include "job/liveness.hpp"
#include "job/pmi.hpp"

namespace ulfm::proxy {
namespace {

constexpr std::size_t kPiece = 500;  // of the address: launchers take values below 1024 bytes
constexpr const char* kPieces = "ulfm-door";
constexpr const char* kNone = "none";
// The first process reports the error, and then the launcher ends the others. If it does not, they report it too.
constexpr std::chrono::seconds kOthersAfter{3};

std::string key_of(std::size_t piece) { return fmt::format("{}-{}", kPieces, piece); }

Result<void> put_address(Pmi& pmi, const std::string& address) {
  std::size_t pieces = 0;
  for (std::size_t at = 0; at < address.size(); at += kPiece)
    if (auto ok = pmi.put(key_of(pieces++), address.substr(at, kPiece)); !ok) return ok;
  return pmi.put(kPieces, fmt::format("{}", pieces));
}

Result<std::string> get_address(Pmi& pmi) {
  auto pieces = pmi.get(kPieces);
  if (!pieces) return pieces;
  if (*pieces == kNone) {
    std::this_thread::sleep_for(kOthersAfter);
    return fail(Errc::unavailable, "the first process of this job could not make its interconnect, and says why");
  }
  std::size_t count = 0;
  (void)std::from_chars(pieces->data(), pieces->data() + pieces->size(), count);
  std::string address;
  for (std::size_t piece = 0; piece < count; ++piece) {
    auto part = pmi.get(key_of(piece));
    if (!part) return part;
    address += *part;
  }
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
    auto ok = address ? put_address(**pmi, *address) : (*pmi)->put(kPieces, kNone);
    if (!ok) return fail(ok.error());
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
