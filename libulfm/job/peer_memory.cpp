#include "job/peer_memory.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ulfm {
namespace {

// Longer copies are looked after between pieces of this size: a pid that is another process by now is not written to.
constexpr std::size_t kPiece = 256 * 1024;

template <typename Call>
ssize_t call_kernel(Call call, pid_t process, void* here, std::uint64_t there, std::size_t bytes) noexcept {
  const iovec own{here, bytes};
  const iovec other{reinterpret_cast<void*>(static_cast<std::uintptr_t>(there)), bytes};
  return call(process, &own, 1, &other, 1, 0);
}
}  // namespace

ssize_t read_process(pid_t process, void* into, std::uint64_t from, std::size_t bytes) noexcept {
  return call_kernel(process_vm_readv, process, into, from, bytes);
}

ssize_t write_process(pid_t process, const void* from, std::uint64_t into, std::size_t bytes) noexcept {
  return call_kernel(process_vm_writev, process, const_cast<void*>(from), into, bytes);
}

std::optional<PeerMemory> PeerMemory::open(pid_t process) noexcept {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (fd < 0) return std::nullopt;
  return PeerMemory(process, fd);
}

PeerMemory::PeerMemory(PeerMemory&& other) noexcept
    : process_(other.process_), pidfd_(std::exchange(other.pidfd_, -1)) {}

PeerMemory& PeerMemory::operator=(PeerMemory&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

PeerMemory::~PeerMemory() {
  if (pidfd_ >= 0) close(pidfd_);
}

bool PeerMemory::runs() const noexcept {
  pollfd state{pidfd_, POLLIN, 0};
  return poll(&state, 1, 0) == 0;
}

template <typename Call, typename Byte>
bool PeerMemory::copy(Call call, Byte* here, std::uint64_t there, std::size_t bytes) noexcept {
  while (bytes > 0) {
    if (!runs()) return false;
    const ssize_t n = call(process_, here, there, std::min(bytes, kPiece));
    if (n <= 0) return false;
    here += n;
    there += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool PeerMemory::read(void* into, std::uint64_t from, std::size_t bytes) noexcept {
  return copy(read_process, static_cast<std::byte*>(into), from, bytes);
}

bool PeerMemory::write(const void* from, std::uint64_t into, std::size_t bytes) noexcept {
  return copy(write_process, static_cast<const std::byte*>(from), into, bytes);
}

}  // namespace ulfm
