#include "engine.hpp"

#include <algorithm>
#include <chrono>

#include "timed.hpp"

namespace nx2 {
namespace {
constexpr std::int64_t kNap = 1'000'000;  // ns: while something waits for room, or a node's program is being loaded
constexpr std::int64_t kLongestNap = 32 * kNap;  // of a wait for what no message tells
constexpr std::int64_t kLook = 50'000'000;       // ns: between two looks of a host at its nodes
constexpr int kLooks = 16;                       // empty ones in a row that take in every lane of a port
constexpr std::uint32_t kTestsBeforeRoom = 32;   // fruitless msgdone() or iprobe() before others get the core
}  // namespace

NxEngine::NxEngine(Channel& channel, const Tuning& tuning)
    : channel_(channel),
      tuning_(tuning),
      own_number_(static_cast<std::uint16_t>(channel.self())),
      own_use_(channel.loads(channel.self())),
      peers_(static_cast<std::size_t>(channel.places())) {
  for (Peer& peer : peers_) peer.buffers = tuning_.buffers;
  channel_.set_apart_from(tuning_.apart);
  if (!channel_.addresses_stay()) tuning_.to_all = 0;  // others may come to the same places
  Cube& cube = channel_.cube();
  shares_ = cube.exists() && cube.has_far() && cube.self() == cube.host();
  for (int node = 0; shares_ && node < cube.nodes(); ++node) shared_.push_back(cube.image(node));
}

NxEngine::~NxEngine() {
  for (List<Arrived>* list : {&arrived_, &taken_})
    while (Arrived* arrived = list->first()) {
      arrived->unlink();
      delete arrived;
    }
  while (Request* request = posted_.first()) request->unlink();
  while (Outgoing* outgoing = streams_.first()) outgoing->unlink();
}

void NxEngine::progress() {
  while (const ulfm_message* message = channel_.poll()) dispatch(*message);
  settle();
}

// A look of a port takes the likeliest places first and then some of the others in turn.
void NxEngine::look_everywhere() {
  for (int nothing = 0; nothing < kLooks; ++nothing) {
    const std::uint64_t before = moved_;
    progress();
    if (moved_ != before) nothing = 0;
  }
}

void NxEngine::step(std::int64_t limit_ns) {
  push();
  const bool stuck = busy();
  if (stuck && (limit_ns < 0 || limit_ns > kNap)) limit_ns = kNap;
  // In virtual time the end of a node ends the wait, and only what comes from other cubes does not.
  // A node of this host that has come rings nobody, and those of other hosts wait to be told.
  const std::int64_t look = is_timed() || (shares_ && some_come_) ? kNap : kLook;
  if (housekeeping && (!is_timed() || is_one_of_several) && (limit_ns < 0 || limit_ns > look)) limit_ns = look;
  if (const ulfm_message* message = channel_.wait(limit_ns)) {
    dispatch(*message);
  } else {
    if (channel_.take_failure()) note_failure();
    if (housekeeping) housekeeping();
  }
  settle();
}

void NxEngine::wait(const Request& request) {
  while (!request.done()) {
    step(-1);
    run_handlers();
  }
}

bool NxEngine::wait_for(const std::function<bool()>& done, int milliseconds) {
  const auto until = job_time() + std::chrono::milliseconds(milliseconds);
  std::int64_t nap = kNap;
  while (!done()) {
    if (milliseconds >= 0 && job_time() > until) return false;
    const std::uint64_t before = moved_;
    step(is_timed() && housekeeping && milliseconds < 0 ? -1 : nap);
    run_handlers();
    nap = moved_ != before ? kNap : std::min(2 * nap, kLongestNap);
  }
  return true;
}

void NxEngine::idle_test() {
  progress();
  if (++fruitless_ % kTestsBeforeRoom == 0) step(0);
}

}  // namespace nx2
