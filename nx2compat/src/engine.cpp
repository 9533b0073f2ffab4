#include "engine.hpp"

#include <chrono>

namespace nx2 {
namespace {
constexpr std::int64_t kNap = 1'000'000;   // ns: while something waits for room, or a node's program is being loaded
constexpr std::int64_t kLook = 50'000'000;  // ns: between two looks of a host at its nodes
constexpr std::uint32_t kTestsBeforeRoom = 32;  // fruitless msgdone() or iprobe() before others get the core
}  // namespace

Engine::Engine(Channel& channel, const Tuning& tuning)
    : channel_(channel), tuning_(tuning), peers_(static_cast<std::size_t>(channel.places())) {
  for (Peer& peer : peers_) peer.buffers = tuning_.buffers;
}

Engine::~Engine() {
  for (List<Arrived>* list : {&arrived_, &taken_})
    while (Arrived* arrived = list->first()) {
      arrived->unlink();
      delete arrived;
    }
  while (Request* request = posted_.first()) request->unlink();
  while (Outgoing* outgoing = streams_.first()) outgoing->unlink();
}

void Engine::progress() {
  ulfm_message message;
  while (channel_.poll(message)) {
    dispatch(message);
    channel_.release(message);
  }
  push();
  if (killed_ && !closing_) on_kill();
}

void Engine::step(std::int64_t limit_ns) {
  push();
  const bool stuck = !outbox_.empty() || held_ != 0 || streams_.first() != nullptr;
  if (stuck && (limit_ns < 0 || limit_ns > kNap)) limit_ns = kNap;
  if (housekeeping && (limit_ns < 0 || limit_ns > kLook)) limit_ns = kLook;
  ulfm_message message;
  if (channel_.wait(message, limit_ns)) {
    dispatch(message);
    channel_.release(message);
  } else if (housekeeping) {
    housekeeping();
  }
  if (stuck || streams_.first() != nullptr) push();
  if (killed_ && !closing_) on_kill();
}

void Engine::wait(const Request& request) {
  while (!request.done()) {
    step(-1);
    run_handlers();
  }
}

bool Engine::wait_for(const std::function<bool()>& done, int milliseconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!done()) {
    if (milliseconds >= 0 && std::chrono::steady_clock::now() > until) return false;
    step(kNap);
    run_handlers();
  }
  return true;
}

void Engine::idle_test() {
  progress();
  if (++fruitless_ % kTestsBeforeRoom == 0) step(0);
}

}  // namespace nx2
