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
}  // namespace

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

template <typename Call>
bool PeerMemory::copy(Call call, void* here, std::uint64_t there, std::size_t bytes) noexcept {
  auto* at = static_cast<std::byte*>(here);
  while (bytes > 0) {
    if (!runs()) return false;
    const std::size_t piece = std::min(bytes, kPiece);
    const iovec own{at, piece};
    const iovec other{reinterpret_cast<void*>(static_cast<std::uintptr_t>(there)), piece};
    const ssize_t n = call(process_, &own, 1, &other, 1, 0);
    if (n <= 0) return false;
    at += n;
    there += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool PeerMemory::read(void* into, std::uint64_t from, std::size_t bytes) noexcept {
  return copy(process_vm_readv, into, from, bytes);
}

bool PeerMemory::write(const void* from, std::uint64_t into, std::size_t bytes) noexcept {
  return copy(process_vm_writev, const_cast<void*>(from), into, bytes);
}

}  // namespace ulfm
