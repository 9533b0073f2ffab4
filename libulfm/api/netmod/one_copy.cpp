// Long messages, which ask before they are sent, between two processes of a host: the kernel copies them from the
// memory of the one into that of the other (job/peer_memory.hpp). Decision 0025.
#include "api/netmod/channel.hpp"

namespace ulfm::netmod {
namespace {

// A pidfd names the process that has the pid when the pidfd is made. So check afterwards that the peer still lives.
std::optional<PeerMemory> memory_of(const Outlet& outlet) {
  auto memory = PeerMemory::open(static_cast<pid_t>(outlet.peer().number));
  if (memory && !outlet.peer_listening()) memory.reset();
  return memory;
}

// Of off|auto|on.
enum Setting { off, automatic, on };

bool may_copy(const ulfm_nm_vc& vc) { return vc.outlet->shares_memory() && vc.owner->one_copy != off; }

bool has_memory(ulfm_nm_vc& vc) {
  if (vc.memory || vc.no_copies) return vc.memory.has_value();
  vc.memory = memory_of(*vc.outlet);
  vc.no_copies = !vc.memory;
  return vc.memory.has_value();
}

}  // namespace

int long_begins(ulfm_nm_vc* vc, std::size_t bytes) {
  ulfm_nm& nm = *vc->owner;
  if (!may_copy(*vc)) return 0;
  const bool kernel = nm.long_ways.begins(bytes, std::chrono::steady_clock::now()) == TwoWays::kernel;
  return kernel || nm.one_copy == on ? 1 : 0;
}

void long_ends(ulfm_nm_vc* vc, std::size_t bytes, int once) {
  ulfm_nm& nm = *vc->owner;
  if (may_copy(*vc)) nm.long_ways.ends(bytes, std::chrono::steady_clock::now());
  if (once) nm.counters.received_bytes.add(bytes);
}

// With a core for each, two processes share the copies by the kernel; with one core for both each copy costs its time.
int copies_once(ulfm_nm_vc* vc) {
  if (!may_copy(*vc) || !has_memory(*vc)) return 0;
  return vc->owner->own_core ? ULFM_NM_COPY_TOGETHER : ULFM_NM_COPY_ALONE;
}

int copy(ulfm_nm_vc* vc, int write, void* here, std::uint64_t there, std::size_t bytes) {
  if (!has_memory(*vc)) return 0;
  if (write ? vc->memory->write(here, there, bytes) : vc->memory->read(here, there, bytes)) return 1;
  vc->memory.reset();
  vc->no_copies = true;
  return 0;
}

void count_copy(ulfm_nm_vc* vc, std::size_t bytes) {
  PortCounters& counters = vc->owner->counters;
  counters.sent_bytes.add(bytes);
  counters.once_messages.add();
  counters.once_bytes.add(bytes);
}

}  // namespace ulfm::netmod
