// Long messages, which ask before they are sent, between two processes of a host: the kernel copies them from the
// memory of the one into that of the other (job/peer_memory.hpp). Decision 0025.
//
// Whether that is faster depends on the machine: on what a system call and a page cost, and on how far the two cores
// are from each other. So the first frames of long messages are timed, and then the first copies by the kernel.
#include "api/netmod/channel.hpp"

namespace ulfm::netmod {
namespace {

// A pidfd is of whoever has the pid when it is made, so the peer has to be there after that.
std::optional<PeerMemory> memory_of(const Outlet& outlet) {
  auto memory = PeerMemory::open(static_cast<pid_t>(outlet.peer().number));
  if (memory && !outlet.peer_listening()) memory.reset();
  return memory;
}

// Frames copy a byte twice, once in each process at the same time. With a core for each, two processes share the copies
// by the kernel too; with one core for both each copy costs its time.
bool is_faster(const ulfm_nm& nm) {
  if (!nm.by_frames.known()) return false;
  return !nm.by_kernel.known() || nm.by_kernel.least <= 2 * nm.by_frames.least;
}

// Of off|auto|on.
bool wanted(const ulfm_nm& nm) { return nm.one_copy == 2 || (nm.one_copy == 1 && is_faster(nm)); }

bool has_memory(ulfm_nm_vc& vc) {
  if (vc.memory || vc.no_copies) return vc.memory.has_value();
  vc.memory = memory_of(*vc.outlet);
  vc.no_copies = !vc.memory;
  return vc.memory.has_value();
}

bool copy_now(PeerMemory& memory, bool write, void* here, std::uint64_t there, std::size_t bytes) {
  return write ? memory.write(here, there, bytes) : memory.read(here, there, bytes);
}

// The first copies by the kernel are timed.
bool copy_timed(ulfm_nm_vc& vc, bool write, void* here, std::uint64_t there, std::size_t bytes) {
  CostPerByte& cost = vc.owner->by_kernel;
  if (cost.known()) return copy_now(*vc.memory, write, here, there, bytes);
  const auto start = std::chrono::steady_clock::now();
  if (!copy_now(*vc.memory, write, here, there, bytes)) return false;
  cost.note(std::chrono::steady_clock::now() - start, bytes);
  return true;
}

}  // namespace

int may_copy(ulfm_nm_vc* vc) { return vc->outlet->shares_memory() && vc->owner->one_copy != 0 ? 1 : 0; }

int copies_once(ulfm_nm_vc* vc) {
  if (!may_copy(vc) || !wanted(*vc->owner) || !has_memory(*vc)) return 0;
  return vc->owner->own_core ? ULFM_NM_COPY_TOGETHER : ULFM_NM_COPY_ALONE;
}

int copy(ulfm_nm_vc* vc, int write, void* here, std::uint64_t there, std::size_t bytes) {
  if (!has_memory(*vc)) return 0;
  if (copy_timed(*vc, write != 0, here, there, bytes)) return 1;
  vc->memory.reset();
  vc->no_copies = true;
  return 0;
}

void count_copy(ulfm_nm_vc* vc, int went, std::size_t bytes) {
  PortCounters& counters = vc->owner->counters;
  (went ? counters.sent_bytes : counters.received_bytes).add(bytes);
  if (!went) return;
  counters.once_messages.add();
  counters.once_bytes.add(bytes);
}

}  // namespace ulfm::netmod
