// Long messages, which ask before they are sent, between two processes of a host: the kernel copies them from the
// memory of the one into that of the other (job/peer_memory.hpp). Decision 0025.
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

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

// How long a process takes to read those bytes and write them to memory in common. Of many, the first stand for all.
std::chrono::nanoseconds time_of_reading(const void* here, std::size_t bytes) {
  constexpr std::size_t kMost = 1024 * 1024;
  constexpr std::size_t kRoom = 256 * 1024;
  constexpr std::chrono::nanoseconds kForEver = std::chrono::hours(1);
  const std::size_t read = std::min(bytes, kMost);
  const std::size_t room = std::min(read, kRoom);
  const std::unique_ptr<std::byte[]> there{new (std::nothrow) std::byte[room]()};
  if (!there) return kForEver;
  auto least = kForEver;
  for (int turn = 0; turn < 2; ++turn) {  // the first finds cold memory
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < read; at += room)
      std::memcpy(there.get(), static_cast<const std::byte*>(here) + at, std::min(room, read - at));
    asm volatile("" : : "r"(there.get()) : "memory");  // it is read: the copies are made
    least = std::min(least, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin));
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(least.count()) *
                                                            static_cast<double>(bytes) / static_cast<double>(read)));
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

int copy_pays(ulfm_nm_vc* vc, const void* here, std::size_t bytes) {
  ulfm_nm& nm = *vc->owner;
  if (!may_copy(*vc) || !has_memory(*vc)) return 0;
  if (nm.one_copy == on || !nm.own_core) return 1;  // messages would take two turns of the one core
  if (nm.window_ways.wants_reading(bytes)) nm.window_ways.reading_took(bytes, time_of_reading(here, bytes));
  return nm.window_ways.next(bytes) == WindowWays::kernel ? 1 : 0;
}

int copy(ulfm_nm_vc* vc, int write, void* here, std::uint64_t there, std::size_t bytes) {
  if (!has_memory(*vc)) return 0;
  const auto begin = std::chrono::steady_clock::now();
  if (write ? vc->memory->write(here, there, bytes) : vc->memory->read(here, there, bytes)) {
    vc->owner->window_ways.copy_took(bytes, std::chrono::steady_clock::now() - begin);
    return 1;
  }
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
