#include "fabric/engine/observer.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "base/virtual_time.hpp"
#include "base/wait.hpp"
#include "fabric/engine/engine.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds kLongestWait{10};  // for the engine, which is held for milliseconds

std::int32_t number(const std::string& text) {
  std::int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : -1;
}

// For terminals: whoever may write into an arena must not write to them.
std::string title(const ArenaHeader& h) {
  std::string text(h.title, strnlen(h.title, sizeof h.title));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// Each arena once, by the first process that holds it. Only our own ones, also for root: what another user has written
// is not computed on.
void look_into(std::int32_t pid, std::set<ino_t>& seen, std::vector<RunningFabric>& found) {
  const std::string wanted = fmt::format("/memfd:{}", kArenaLabel);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    struct stat file {};
    if (error || !target.starts_with(wanted) || stat(entry.path().c_str(), &file) != 0 || file.st_uid != geteuid() ||
        seen.contains(file.st_ino))
      continue;
    const std::int32_t fd = number(entry.path().filename().string());
    const auto arena = FabricArena::look_at(pid, fd);
    if (!arena) continue;
    seen.insert(file.st_ino);
    found.push_back({pid, fd, title(arena->header()), arena->sizes().processes});
  }
}

}  // namespace

std::vector<RunningFabric> running_fabrics() {
  std::vector<std::int32_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error))
    if (const std::int32_t pid = number(entry.path().filename().string()); pid > 0) pids.push_back(pid);
  std::sort(pids.begin(), pids.end());
  std::set<ino_t> seen;
  std::vector<RunningFabric> found;
  for (const std::int32_t pid : pids) look_into(pid, seen, found);
  return found;
}

Result<Observer> Observer::open(const RunningFabric& fabric) {
  auto arena = FabricArena::look_at(fabric.pid, fabric.fd);
  if (!arena) return fail(arena.error());
  return Observer(std::move(*arena));
}

Result<void> Observer::copy_model(std::vector<std::uint64_t>& copy) {
  ArenaHeader& h = arena_.header();
  const std::size_t bytes = arena_.sizes().model_bytes;
  copy.resize((bytes + 7) / 8);
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  std::uint32_t nobody = 0;
  // Pairs with the exchange of whoever lets go of the engine.
  while (!h.holder.compare_exchange_strong(nobody, kObservers + static_cast<std::uint32_t>(getpid()) + 1,
                                           std::memory_order_acquire)) {
    nobody = 0;
    if (std::chrono::steady_clock::now() > until)
      return fail(Errc::unavailable,
                  fmt::format("the {} does not come to rest: who moves it is stopped, or has died", title(h)));
    yield_now();
  }
  std::memcpy(copy.data(), arena_.model(), bytes);
  h.holder.exchange(0, std::memory_order_seq_cst);
  // Somebody may have sent meanwhile and left it to us: the other half of ArenaHeader::pending.
  const auto left_to_us = [](const auto& word) { return word.load(std::memory_order_seq_cst) != 0; };
  if (std::any_of(std::begin(h.pending), std::end(h.pending), left_to_us)) wake_all(arena_);
  return {};
}

// What the card of each process has sent, and what is in its queues.
std::vector<CardUse> Observer::cards() const {
  std::vector<CardUse> cards;
  for (std::uint32_t e = 0; e < arena_.sizes().endpoints; ++e) {
    const Endpoint& endpoint = arena_.endpoint(e);
    if (endpoint.state.load(std::memory_order_acquire) != EndpointState::ready) continue;
    std::uint32_t used = 0;
    for (std::uint32_t s = 0; s < arena_.sizes().slots; ++s)
      used += arena_.slot(e * arena_.sizes().slots + s).state.load(std::memory_order_relaxed) != SlotState::free;
    cards.push_back({e, endpoint.node, endpoint.pid, endpoint.taken, used, arena_.sizes().slots});
  }
  return cards;
}

// What the counters mean.
std::string Observer::what_time_it_is() const {
  const ArenaHeader& h = arena_.header();
  if (arena_.sizes().timed == 0)
    return "the host's; cycles have no duration, and frames enter when this host runs their sender (ulfm-time(7) has "
           "counters that do not depend on it)";
  std::uint64_t least = kNoMoment;  // the network has come to the time of its slowest process
  for (std::uint32_t e = 0; e < arena_.sizes().processes; ++e)
    if (const ProcessClock& c = arena_.clock(e); c.state.load(std::memory_order_relaxed) != ClockState::ended)
      least = std::min(least, c.now.load(std::memory_order_relaxed));
  const std::uint64_t passed = std::min(least, h.time.passed.load(std::memory_order_relaxed));
  return fmt::format("virtual; {} have passed for every process",
                     passed == kNoMoment ? "all" : fmt::format("{} ns", passed / 1000));
}

Result<FabricReading> Observer::read() {
  const ArenaHeader& h = arena_.header();
  auto kind = arena_.kind();
  if (!kind) return fail(std::move(kind.error()).within(fmt::format("the {}", title(h))));
  std::vector<std::uint64_t> copy;
  if (auto copied = copy_model(copy); !copied) return fail(copied.error());
  auto model = (*kind)->attach(reinterpret_cast<std::byte*>(copy.data()), arena_.sizes().model_bytes);
  if (!model) return fail(model.error());
  ModelCycles* const cycles = (*model)->cycles();
  return FabricReading{what_time_it_is(), cards(), (*model)->statistics(),
                       cycles != nullptr ? cycles->links(1) : std::vector<LinkUse>{}};
}

bool Observer::is_running() const {
  for (std::uint32_t e = 0; e < arena_.sizes().endpoints; ++e) {
    const Endpoint& endpoint = arena_.endpoint(e);
    if (endpoint.state.load(std::memory_order_acquire) == EndpointState::ready &&
        is_alive(endpoint.pid, endpoint.started))
      return true;
  }
  return false;
}

}  // namespace ulfm::fabric
