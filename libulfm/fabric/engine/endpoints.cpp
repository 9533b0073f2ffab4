// Endpoints: which place in the arena a process has, whose place may be used again, and whether its process still runs.
#include <unistd.h>

#include <algorithm>

#include <fmt/core.h>

#include "base/counted.hpp"
#include "base/wait.hpp"
#include "fabric/engine/engine.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {

// Its process has left, or died, and none of its frames is on its way or held. Not that of a process that died while it
// moved the network: that another one has its number must not hide it.
bool FabricEngine::may_reuse(std::uint32_t i) const {
  const Endpoint& endpoint = arena_.endpoint(i);
  const EndpointState state = endpoint.state.load(std::memory_order_acquire);
  if (state == EndpointState::free || (state != EndpointState::left && is_alive(i))) return false;
  if (arena_.header().holder.load(std::memory_order_acquire) == i + 1) return false;
  for (std::uint32_t s = 0; s < arena_.sizes().slots; ++s)
    if (arena_.slot(i * arena_.sizes().slots + s).state.load(std::memory_order_acquire) != SlotState::free)
      return false;
  return true;
}

// From here on the endpoint can be used again when this process dies.
void FabricEngine::mark_claimed(std::uint32_t i) {
  Endpoint& endpoint = arena_.endpoint(i);
  endpoint.pid = getpid();
  endpoint.started = start_time(getpid());
  endpoint.state.store(EndpointState::claimed, std::memory_order_release);  // pairs with may_reuse()
}

// An endpoint that is nobody's any more, marked as this process's; `all` when there is none. One process at a time
// looks, or two could take the same one, one behind the other: the state they see is the same again.
std::uint32_t FabricEngine::reuse_endpoint() {
  std::atomic<std::int32_t>& reuser = arena_.header().reuser;
  // Acquire and release hand on what the one before has marked. Whoever died at it is replaced.
  for (std::int32_t seen = 0; !reuser.compare_exchange_weak(seen, getpid(), std::memory_order_acquire);) {
    if (seen != 0 && !ulfm::is_alive(seen, 0)) continue;
    seen = 0;
    yield_now();
  }
  const std::uint32_t all = arena_.sizes().endpoints;
  std::uint32_t i = 0;
  while (i < all && !may_reuse(i)) ++i;
  if (i < all) mark_claimed(i);
  reuser.store(0, std::memory_order_release);
  return i;
}

// In virtual time a process of the job has the endpoint of its rank, so that ranks break ties.
bool FabricEngine::has_own_endpoint(std::uint32_t process) const {
  const ArenaSizes& sizes = arena_.sizes();
  if (sizes.timed == 0 || process >= sizes.processes) return false;
  EndpointState state = EndpointState::free;
  Endpoint& endpoint = arena_.endpoint(process);
  if (endpoint.state.compare_exchange_strong(state, EndpointState::claimed, std::memory_order_acq_rel)) return true;
  // A host starts the next process where one was only when that one has ended, and its clock with it: all that it had
  // sent has left its queue by then.
  return arena_.clock(process).tid == static_cast<std::uint32_t>(getpid()) &&
         arena_.clock(process).state.load(std::memory_order_acquire) == ClockState::runs;
}

Result<std::uint32_t> FabricEngine::find_endpoint(std::uint32_t process) {
  ArenaHeader& h = arena_.header();
  const std::uint32_t all = arena_.sizes().endpoints;
  if (has_own_endpoint(process)) return mark_claimed(process), process;
  std::uint32_t i = h.endpoints_used.load(std::memory_order_relaxed);
  while (i < all && !h.endpoints_used.compare_exchange_weak(i, i + 1, std::memory_order_acq_rel)) {
  }
  if (i < all) mark_claimed(i);
  else i = reuse_endpoint();
  if (i >= all)
    return fail(Errc::full, fmt::format("the emulated interconnect of this job has room for {}, and no more can join",
                                        counted(all, "process", "processes")));
  return i;
}

Result<void> FabricEngine::claim_endpoint(std::uint32_t process) {
  auto found = find_endpoint(process);
  if (!found) return fail(found.error());
  const std::uint32_t i = *found;
  Endpoint& endpoint = arena_.endpoint(i);
  if (auto ok = arena_.commit_slots(i); !ok) return ok;
  endpoint.node = arena_.node_of_rank(process);
  // In virtual time the same in each run: what is kept by cards is gone through in their order.
  endpoint.token = arena_.sizes().timed != 0 ? ((endpoint.token >> 32) + 1) << 32 | i : random_token();
  endpoint.job_id.store(0, std::memory_order_relaxed);
  // What the one before has left unread is nobody's.
  endpoint.unread.read.store(endpoint.unread.came.load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (endpoint.unread.admitted == ~std::uint64_t{0}) endpoint.unread.admitted = 0;
  std::uint32_t first = 0;  // even: all ports are closed
  for (auto& generation : endpoint.generation)
    first = std::max(first, (generation.load(std::memory_order_relaxed) + 1) & ~1u);
  for (auto& generation : endpoint.generation) generation.store(first, std::memory_order_relaxed);
  endpoint.first_generation.store(first, std::memory_order_release);      // pairs with is_of_earlier()
  endpoint.state.store(EndpointState::ready, std::memory_order_release);  // pairs with whoever reads its card
  self_ = i;
  slots_.begin(i);
  // Behind this nobody puts into the boxes what was for the one before: see EmulatedInlet::position_.
  if (first != 0 && arena_.sizes().timed == 0) quiesce();
  return {};
}

bool FabricEngine::is_alive(std::uint32_t i) const {
  if (clock_ != nullptr && i < arena_.sizes().endpoints &&
      arena_.clock(i).state.load(std::memory_order_acquire) == ClockState::ended)
    return !clock_->has_ended(i);  // in virtual time, whatever the host's process does
  return runs(i);
}

bool FabricEngine::runs(std::uint32_t i) const {
  const ArenaHeader& h = arena_.header();
  if (i == kEngineProcess)
    return ulfm::is_alive(h.engine_pid.load(std::memory_order_relaxed),
                          h.engine_started.load(std::memory_order_relaxed));
  if (i >= kObservers) {
    return ulfm::is_alive(static_cast<pid_t>(i - kObservers), 0);
  }
  return i < arena_.sizes().endpoints && ulfm::is_alive(arena_.endpoint(i).pid, arena_.endpoint(i).started);
}

}  // namespace ulfm::fabric
