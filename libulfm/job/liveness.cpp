#include "job/liveness.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace ulfm {
namespace {

// What /proc says of a process.
enum class Found { process, nobody, unknown };
struct Stat {
  char state = 0;
  unsigned long threads = 0;
  std::uint64_t started = 0;
};

// State, number of threads and start time from the text of a stat file of /proc. The command name may contain anything,
// so fields are counted from the last ')'.
bool parse_stat(const char* text, Stat& stat) noexcept {
  const char* p = std::strrchr(text, ')');
  if (p == nullptr || p[1] == '\0') return false;
  stat.state = p[2];
  p += 2;
  for (int field = 3; field < 22; ++field) {
    p = std::strchr(p + 1, ' ');
    if (p == nullptr) return false;
    if (field + 1 == 20) stat.threads = std::strtoul(p + 1, nullptr, 10);
  }
  stat.started = std::strtoull(p + 1, nullptr, 10);
  return true;
}

// No process has this pid, as far as the kernel lets us ask: also where no /proc is mounted, or hides others.
Found nobody_has(pid_t pid) noexcept { return kill(pid, 0) != 0 && errno == ESRCH ? Found::nobody : Found::unknown; }

// A failure of our own, a full table of descriptors or no memory, says nothing about the process. The file of its first
// thread says what the process's own says, but cheaper, because nothing is summed up over the threads; and user-mode
// emulators make up the latter for the process itself, with another start time than others see.
Found read_stat(pid_t pid, Stat& stat) noexcept {
  if (pid <= 0) return Found::nobody;
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", static_cast<int>(pid), static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nobody_has(pid);
  char text[1024];
  ssize_t got = 0;
  do got = read(fd, text, sizeof text - 1);
  while (got < 0 && errno == EINTR);
  close(fd);
  if (got <= 0) return nobody_has(pid);
  text[got] = '\0';
  return parse_stat(text, stat) ? Found::process : Found::unknown;
}

// Without a descriptor to read with: an ended process that nobody has waited for has one thread left, and no program.
bool looks_ended(pid_t pid) noexcept {
  char path[40], program[8];
  std::snprintf(path, sizeof path, "/proc/%d/exe", static_cast<int>(pid));
  if (readlink(path, program, sizeof program) >= 0 || errno != ENOENT) return false;
  std::snprintf(path, sizeof path, "/proc/%d/task", static_cast<int>(pid));
  struct stat tasks {};
  return stat(path, &tasks) == 0 && tasks.st_nlink <= 3;  // ".", ".." and the last thread
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
  Stat stat;
  return read_stat(pid, stat) == Found::process ? stat.started : 0;
}

// The last thread of a process ends it. Its first one may end before (pthread_exit in main) and is a zombie then, as
// the state of the process says, while the others run. A pidfd would tell the same, and cost a descriptor for each
// peer.
bool is_alive(pid_t pid, std::uint64_t started) noexcept {
  if (has_departed(pid, started)) return false;
  Stat stat;
  switch (read_stat(pid, stat)) {
    case Found::nobody: return false;
    case Found::unknown: return !looks_ended(pid);
    case Found::process: break;
  }
  if (started != 0 && stat.started != started) return false;
  return (stat.state != 'Z' && stat.state != 'X') || stat.threads > 1;
}

double crowding() noexcept {
  constexpr double kNoCrowd = 4;
  std::FILE* file = std::fopen("/proc/loadavg", "re");
  if (file == nullptr) return 1;
  double minute = 0;
  double now = 0;
  const bool known = std::fscanf(file, "%lf %*f %*f %lf/", &minute, &now) == 2;
  std::fclose(file);
  const double cores = static_cast<double>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return known ? std::max(std::min(minute, now) / (cores * kNoCrowd), 1.0) : 1;
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
