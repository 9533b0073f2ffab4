// A shared segment: a memfd, mapped once, grown in committed pieces, gone with the last process that maps it.
//
// Nothing has a name in a file system, so nothing can be left behind, and the size of /dev/shm does not matter.
// A segment has a fixed address range (its `reserve`) of which only committed pieces own memory; commit() asks the
// kernel for the pages at once, so a full machine is an error with numbers here and not a SIGBUS later.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace ulfm {

class Segment {
 public:
  static constexpr std::size_t kWhole = ~std::size_t{0};

  /// A new segment of this process. `label` shows in /proc/PID/maps.
  static Result<Segment> create(const std::string& label, std::size_t reserve);

  /// The segment another process on this host holds as descriptor `fd`; writable. Needs the rights to look into
  /// that process (same user, same pid namespace).
  /// Maps its first `most` bytes, which then are its size.
  static Result<Segment> attach(pid_t pid, int fd, std::size_t most = kWhole);

  /// Opens a descriptor of another process for a moment. Errors as attach(); give it back to close_of().
  static Result<int> open_of(pid_t pid, int fd);
  static void close_of(int opened) noexcept;

  /// The segment behind a descriptor that its owner has passed. The descriptor is closed, also when this fails.
  static Result<Segment> adopt(int fd, std::size_t most = kWhole);

  Segment() = default;
  Segment(Segment&& other) noexcept { swap(other); }
  Segment& operator=(Segment&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Segment();

  /// The first `bytes` of the same segment once more, at another address. Needs no descriptor.
  /// Errors: Errc::no_memory, also when the segment is shorter.
  Result<Segment> view(std::size_t bytes) const;

  /// Make [offset, offset + bytes) usable. Idempotent; any process that maps the segment may call it.
  Result<void> commit(std::size_t offset, std::size_t bytes) const;
  /// Maps the pages of that piece, which is committed, in one step. A page that is touched unmapped costs a fault: half
  /// a microsecond on a plain machine, ten in some virtual ones. Only a matter of speed, so it does not fail.
  void prefault(std::size_t offset, std::size_t bytes) const noexcept;
  /// Gives the memory of that piece back; it reads as zero afterwards. False when the kernel would not: then it is as
  /// it was. Page-aligned.
  [[nodiscard]] bool decommit(std::size_t offset, std::size_t bytes) noexcept;

  std::byte* base() const noexcept { return base_; }
  std::size_t size() const noexcept { return size_; }
  /// With what this process has not mapped.
  std::size_t whole_size() const noexcept { return whole_; }
  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return base_ != nullptr; }

  template <typename T>
  T* at(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }

 private:
  void swap(Segment& other) noexcept;
  static Result<Segment> map_sealed(int fd, const std::string& label, std::size_t most);
  Result<void> map(const std::string& label);

  std::byte* base_ = nullptr;
  std::size_t size_ = 0, whole_ = 0;
  int fd_ = -1;
};

/// "1.5 MB" and the like, for messages.
std::string human_bytes(std::size_t bytes);

}  // namespace ulfm
