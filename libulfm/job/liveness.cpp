#include "job/liveness.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace ulfm {
namespace {

// State letter and start time from /proc/PID/stat. The command name may contain anything, so fields are counted from
// the last ')'.
bool read_stat(pid_t pid, char& state, std::uint64_t& started) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  const char* p = std::strrchr(text, ')');
  if (p == nullptr || p[1] == '\0') return false;
  state = p[2];
  p += 2;
  for (int field = 3; field < 22 && p != nullptr; ++field) p = std::strchr(p + 1, ' ');
  if (p == nullptr) return false;
  started = std::strtoull(p + 1, nullptr, 10);
  return true;
}

std::uint64_t fnv1a(const char* bytes, std::size_t n, std::uint64_t h = 1469598103934665603ull) noexcept {
  for (std::size_t i = 0; i < n; ++i) h = (h ^ static_cast<unsigned char>(bytes[i])) * 1099511628211ull;
  return h;
}

// The last processes that were noted as departed. Older ones are forgotten: /proc knows of them too by then.
struct Departed {
  std::mutex mutex;
  std::array<std::pair<pid_t, std::uint64_t>, 256> processes{};
  std::size_t next = 0;
  std::atomic<bool> any{false};  // spares the mutex, which orders the rest
};
Departed departed;

bool has_departed(pid_t pid, std::uint64_t started) noexcept {
  if (!departed.any.load(std::memory_order_acquire)) return false;  // pairs with note_departed()
  std::lock_guard lock(departed.mutex);
  return std::find(departed.processes.begin(), departed.processes.end(), std::pair{pid, started}) !=
         departed.processes.end();
}

}  // namespace

std::uint64_t start_time(pid_t pid) noexcept {
  char state = 0;
  std::uint64_t started = 0;
  return read_stat(pid, state, started) ? started : 0;
}

bool is_alive(pid_t pid, std::uint64_t started) noexcept {
  char state = 0;
  std::uint64_t now = 0;
  return !has_departed(pid, started) && read_stat(pid, state, now) && now == started && state != 'Z' && state != 'X';
}

void note_departed(pid_t pid, std::uint64_t started) noexcept {
  std::lock_guard lock(departed.mutex);
  departed.processes[departed.next++ % departed.processes.size()] = {pid, started};
  departed.any.store(true, std::memory_order_release);  // pairs with has_departed()
}

std::uint64_t host_identity() noexcept {
  char boot[64] = {};
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t got = fd >= 0 ? read(fd, boot, sizeof boot) : 0;
  if (fd >= 0) close(fd);
  if (got <= 0) {
    gethostname(boot, sizeof boot - 1);
    got = static_cast<ssize_t>(std::strlen(boot));
  }
  std::uint64_t h = fnv1a(boot, static_cast<std::size_t>(got));
  struct stat st {};
  if (stat("/proc/self/ns/pid", &st) == 0) h = fnv1a(reinterpret_cast<const char*>(&st.st_ino), sizeof st.st_ino, h);
  return h;
}

std::uint64_t random_token() noexcept {
  std::uint64_t token = 0;
  if (getrandom(&token, sizeof token, 0) != sizeof token)
    token = fnv1a("ulfm", 4) ^ static_cast<std::uint64_t>(getpid()) << 32 ^ start_time(getpid());
  return token;
}

}  // namespace ulfm
