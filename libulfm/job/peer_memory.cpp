#include "job/peer_memory.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/align.hpp"
#include "base/copy.hpp"
#include "base/standard_streams.hpp"

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

// ---- copies that the kernel is slow at: is_close_behind() -----------------------------------------------------------

// Shorter ones are not worth a second copy; longer ones go in pieces that stay in the cache.
constexpr std::size_t kShortestDetour = kPage, kLongestDetour = 64 * 1024;

std::atomic<bool> is_taken_for_slow{false};

std::chrono::nanoseconds time_of_string_copy([[maybe_unused]] std::byte* to,
                                             [[maybe_unused]] const std::byte* from) noexcept {
  auto best = std::chrono::nanoseconds::max();
  for (int turn = 0; turn < 5; ++turn) {
    const auto begun = std::chrono::steady_clock::now();
#ifdef __x86_64__
    std::size_t count = kPage;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    to -= kPage;
    from -= kPage;
#endif
    best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - begun);
  }
  return best;
}

// Asked of the processor, once for each process: some 10 us where it is slow, which is by a factor of 15 or more.
bool is_slow_close_behind() noexcept {
  static const bool is_slow = [] {
    alignas(kPage) std::byte from[kPage] = {}, to[kPage + kLine] = {};
    return time_of_string_copy(to + 8, from) > 4 * time_of_string_copy(to + kLine, from);
  }();
  return is_slow || is_taken_for_slow.load(std::memory_order_relaxed);
}

// Memory of this thread for kLongestDetour bytes, at the same place of a page as `address`; null: there is none.
std::byte* memory_beside(std::uint64_t address) noexcept {
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  if (!memory) memory.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, kLongestDetour + kPage)));
  return memory ? memory.get() + address % kPage : nullptr;
}

// Where a copy of the kernel's is to go by, or null for nowhere: `there` is the other process's address.
std::byte* detour(std::uint64_t to, std::uint64_t from, std::uint64_t there, std::size_t bytes) noexcept {
  if (bytes < kShortestDetour || !is_close_behind(to, from) || !is_slow_close_behind()) return nullptr;
  return memory_beside(there);
}
}  // namespace

void take_for_slow_close_behind() noexcept { is_taken_for_slow.store(true, std::memory_order_relaxed); }

ssize_t read_process(pid_t process, void* into, std::uint64_t from, std::size_t bytes) noexcept {
  std::byte* const beside = detour(address_of(into), from, from, bytes);
  if (beside == nullptr) return call_kernel(process_vm_readv, process, into, from, bytes);
  const ssize_t n = call_kernel(process_vm_readv, process, beside, from, std::min(bytes, kLongestDetour));
  if (n > 0) copy_block(into, beside, static_cast<std::size_t>(n));
  return n;
}

ssize_t write_process(pid_t process, const void* from, std::uint64_t into, std::size_t bytes) noexcept {
  std::byte* const beside = detour(into, address_of(from), into, bytes);
  if (beside == nullptr) return call_kernel(process_vm_writev, process, const_cast<void*>(from), into, bytes);
  const std::size_t n = std::min(bytes, kLongestDetour);
  copy_block(beside, from, n);
  return call_kernel(process_vm_writev, process, beside, into, n);
}

std::optional<PeerMemory> PeerMemory::open(pid_t process) noexcept {
  const int fd = above_standard_streams(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
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
