// The memory of another process of this host, read and written by the kernel for this one (process_vm_readv(2)): a long
// message is then copied once. Decision 0025 has the measurements.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ulfm {

/// Where something is, as other processes name it below.
inline std::uint64_t address_of(const void* data) noexcept { return reinterpret_cast<std::uintptr_t>(data); }

/// Copies up to `bytes` from the address `from` of that process, by one call of the kernel. How many it copied, or -1
/// and errno. The caller knows that the pid still is the process that it means.
ssize_t read_process(pid_t process, void* into, std::uint64_t from, std::size_t bytes) noexcept;
/// The same in the other direction.
ssize_t write_process(pid_t process, const void* from, std::uint64_t into, std::size_t bytes) noexcept;

/// From now on copies go as on a processor that is slow at those close behind (base/copy.hpp). For tests.
void take_for_slow_close_behind() noexcept;

/// Not for two threads at once.
class PeerMemory {
 public:
  /// The process must run at the time of the call. None: the kernel has no pidfd for it, or this process no descriptor.
  static std::optional<PeerMemory> open(pid_t process) noexcept;
  PeerMemory(PeerMemory&& other) noexcept;
  PeerMemory& operator=(PeerMemory&& other) noexcept;
  ~PeerMemory();

  /// Copies `bytes` from the address `from` of the other process. False: the kernel does not allow it, the memory is
  /// not there or not one that it can read, or the process has gone; a part may have been copied.
  bool read(void* into, std::uint64_t from, std::size_t bytes) noexcept;
  /// The same in the other direction.
  bool write(const void* from, std::uint64_t into, std::size_t bytes) noexcept;

 private:
  PeerMemory(pid_t process, int pidfd) noexcept : process_(process), pidfd_(pidfd) {}
  bool runs() const noexcept;
  template <typename Call, typename Byte>
  bool copy(Call call, Byte* here, std::uint64_t there, std::size_t bytes) noexcept;

  pid_t process_;
  int pidfd_;
};

}  // namespace ulfm
