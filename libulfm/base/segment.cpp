#include "base/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include "base/align.hpp"
#include "base/standard_streams.hpp"

namespace ulfm {
namespace {

std::size_t memory_available() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  std::size_t kb = 0;
  std::string unit;
  while (in >> key >> kb) {
    std::getline(in, unit);
    if (key == "MemAvailable:") return kb * 1024;
  }
  return 0;
}

// A short piece of advice beats an errno: which limit was met, and how to lift it.
Error out_of_memory(std::size_t needed, int number) {
  std::string found = fmt::format("{} of memory available", human_bytes(memory_available()));
  std::string remedy = "run fewer processes, or give the machine (or its memory cgroup) more memory";
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && number == EFBIG) {
    found = fmt::format("a file size limit of {}", human_bytes(limit.rlim_cur));
    remedy = "raise it with `ulimit -f unlimited`";
  } else if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    found += fmt::format(" and an address space limit of {}", human_bytes(limit.rlim_cur));
    remedy += ", or raise the limit with `ulimit -v unlimited`";
  }
  return {Errc::no_memory, fmt::format("no memory for a shared segment: needed {}, found {} ({}); {}",
                                       human_bytes(needed), found, std::strerror(number), remedy)};
}

// A descriptor kept for the moment in which another process's segment is opened: a program may use up all others before
// it first sends, and a peer that waits for that message would not know.
class SpareDescriptor {
 public:
  void keep() {
    const std::lock_guard lock(mutex_);
    take();
  }

  /// open(), by the spare where the program has left no other.
  int open_with(const char* path, int flags) {
    const std::lock_guard lock(mutex_);
    const int fd = open(path, flags);
    if (fd >= 0 || errno != EMFILE) return fd;
    if (give_up()) return open(path, flags);
    errno = EMFILE;
    return -1;
  }

 private:
  void take() {
    if (fd_ >= 0) return;
    fd_ = above_standard_streams(memfd_create("ulfm spare", MFD_CLOEXEC));
    if (fd_ >= 0 && fstat(fd_, &file_) != 0) give_up();
  }

  // A program that closes what it does not know may have a file of its own under the number since.
  bool give_up() {
    struct stat now {};
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 && fstat(fd, &now) == 0 && now.st_ino == file_.st_ino && now.st_dev == file_.st_dev &&
           close(fd) == 0;
  }

  std::mutex mutex_;
  int fd_ = -1;
  struct stat file_ {};
};

SpareDescriptor& spare() {
  static SpareDescriptor one;
  return one;
}

}  // namespace

std::string human_bytes(std::size_t bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units[unit]);
}

Result<Segment> Segment::create(const std::string& label, std::size_t reserve) {
  reserve = up_to(reserve, kPage);
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < reserve)
    return fail(out_of_memory(reserve, EFBIG));  // ftruncate would raise SIGXFSZ instead of failing

  Segment s;
  s.fd_ = above_standard_streams(memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (s.fd_ < 0) return fail_errno(fmt::format("memfd_create for {}", label));
  s.size_ = s.whole_ = reserve;
  fchmod(s.fd_, 0600);
  if (ftruncate(s.fd_, static_cast<off_t>(reserve)) != 0) return fail(out_of_memory(reserve, errno));
  // A peer that shrank the file could crash us with SIGBUS; nobody may.
  if (fcntl(s.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno(fmt::format("sealing {}", label));
  spare().keep();
  if (auto mapped = s.map(label); !mapped) return fail(mapped.error());
  return s;
}

Result<int> Segment::open_of(pid_t pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  const int own = spare().open_with(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0 && errno == ENOENT && access("/proc/self/fd", X_OK) != 0)
    return fail(Errc::unavailable, fmt::format("cannot open {}: there is no /proc here, as after chroot(); mount it "
                                               "there (or ULFM_CONTROL=unix)",
                                               path));
  if (own < 0 && errno == ENOENT) return fail(Errc::peer_failed, fmt::format("process {} is gone (no {})", pid, path));
  if (own < 0 && (errno == EMFILE || errno == ENFILE))
    return fail(Errc::no_memory, fmt::format("cannot open {}: {}; connecting to a process takes one descriptor for a "
                                             "moment: raise the limit with `ulimit -n`, or have the program close some",
                                             path, std::strerror(errno)));
  if (own < 0)
    return fail(Errc::unavailable, fmt::format("cannot open {}: {}; both processes must run as the same user in the "
                                               "same pid namespace (or ULFM_CONTROL=unix)",
                                               path, std::strerror(errno)));
  return own;
}

void Segment::close_of(int opened) noexcept {
  close(opened);
  spare().keep();
}

Result<Segment> Segment::attach(pid_t pid, int fd, std::size_t most) {
  auto own = open_of(pid, fd);
  if (!own) return fail(own.error());
  return map_sealed(*own, fmt::format("/proc/{}/fd/{}", pid, fd), most);
}

Result<Segment> Segment::adopt(int fd, std::size_t most) {
  return map_sealed(fd, "a descriptor that was passed", most);
}

Result<Segment> Segment::map_sealed(int fd, const std::string& label, std::size_t most) {
  Segment s;
  s.fd_ = fd;
  struct stat st {};
  const int seals = fcntl(s.fd_, F_GET_SEALS);
  if (fstat(s.fd_, &st) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail(Errc::protocol, fmt::format("{} is not a segment of this library (no sealed memory file)", label));
  s.whole_ = static_cast<std::size_t>(st.st_size);
  s.size_ = std::min(s.whole_, most);
  if (auto mapped = s.map(label); !mapped) return fail(mapped.error());
  // The mapping is enough, and a job of n processes must not cost each of them n descriptors.
  close_of(std::exchange(s.fd_, -1));
  return s;
}

Result<void> Segment::map(const std::string& label) {
  void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  if (p == MAP_FAILED) {
    if (errno == ENOMEM) return fail(out_of_memory(size_, errno));
    return fail_errno(fmt::format("mapping {}", label));
  }
  base_ = static_cast<std::byte*>(p);
  return {};
}

// An old length of 0 maps the pages of a shared mapping a second time.
Result<Segment> Segment::view(std::size_t bytes) const {
  void* p = bytes > whole_ ? MAP_FAILED : mremap(base_, 0, bytes, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) return fail(out_of_memory(bytes, bytes > whole_ ? EINVAL : errno));
  Segment s;
  s.base_ = static_cast<std::byte*>(p);
  s.size_ = bytes;
  s.whole_ = whole_;
  return s;
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, size_);
  if (fd_ >= 0) close(fd_);
}

Result<void> Segment::commit(std::size_t offset, std::size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    return fail(Errc::too_large,
                fmt::format("segment piece [{}, +{}) lies outside its {}", offset, bytes, human_bytes(size_)));
  const std::size_t from = offset / kPage * kPage;
  const std::size_t length = up_to(offset + bytes, kPage) - from;
  // The kernel would take what there is, and then kill somebody.
  constexpr std::size_t kMuch = std::size_t{64} << 20;
  if (const std::size_t found = length < kMuch ? 0 : memory_available(); found != 0 && found < length)
    return fail(out_of_memory(bytes, ENOMEM));
  int result = 0;
  do {
    result = fd_ >= 0 ? fallocate(fd_, 0, static_cast<off_t>(from), static_cast<off_t>(length))
                      : madvise(base_ + from, length, MADV_POPULATE_WRITE);
  } while (result != 0 && errno == EINTR);
  // EINVAL: a kernel before 5.14 cannot populate; the pages then come with the first touch.
  if (result != 0 && !(fd_ < 0 && errno == EINVAL)) return fail(out_of_memory(bytes, errno));
  return {};
}

void Segment::prefault(std::size_t offset, std::size_t bytes) const noexcept {
  const std::size_t from = offset / kPage * kPage;
  (void)madvise(base_ + from, up_to(offset + bytes, kPage) - from, MADV_POPULATE_WRITE);
}

// The hole first: the kernel refuses MADV_REMOVE for locked memory (mlockall), as real-time programs have it.
bool Segment::decommit(std::size_t offset, std::size_t bytes) noexcept {
  const bool punched = fd_ >= 0 && fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                             static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0;
  return punched || madvise(base_ + offset, bytes, MADV_REMOVE) == 0;
}

void Segment::swap(Segment& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(whole_, other.whole_);
  std::swap(fd_, other.fd_);
}

}  // namespace ulfm
