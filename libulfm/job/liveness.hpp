// Is that process still there? A pid alone may be another process by now; pid and start time are not.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ulfm {

/// Start time of a process in clock ticks since boot; 0 when there is no such process, or when this process cannot look
/// (it has no descriptor left).
std::uint64_t start_time(pid_t pid) noexcept;

/// The process that had this pid and start time runs: some thread of it, which need not be its first. A zombie does
/// not, nor one noted as departed. `started` 0 stands for any. Only the kernel's word that it is gone counts as death:
/// when this process cannot look (no descriptor, no memory, no /proc), the other one is alive.
bool is_alive(pid_t pid, std::uint64_t started) noexcept;

/// The kernel has closed the descriptors of that process of this host: it runs no more, whatever /proc shows. Any
/// thread.
void note_departed(pid_t pid, std::uint64_t started) noexcept;

/// How many times longer than alone an answer may take on this host because of those that want its cores: 1 up to four
/// for each core, then in proportion to them, now or in the mean of the last minute, whichever is less. 1 if nobody
/// knows. Costs system calls. Any thread.
double crowding() noexcept;

/// A number that is the same for all processes that can see each other's pids and memory files: this boot of this
/// host and the pid namespace.
std::uint64_t host_identity() noexcept;

/// 64 random bits from the kernel.
std::uint64_t random_token() noexcept;

}  // namespace ulfm
