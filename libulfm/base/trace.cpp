#include "base/trace.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace ulfm::trace {
namespace {

struct Noted {
  std::uint64_t nanoseconds;
  Event event;
};

// One to a process. Its memory is never given back: any thread may note something until the very end.
struct Recorder {
  Noted* events = nullptr;
  // Places given out, each counted before its event is in it: the count orders no event, and as_json() may find the
  // last ones half written.
  std::atomic<std::uint64_t> count{0};
  int fd = -1;
  int rank = 0;
  pid_t owner = 0;
};
Recorder recorder;
std::atomic<bool> active{false};  // begin() to on() and finish(): the recorder is filled in

std::uint64_t now() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

void append(std::string& text, const Noted& noted) {
  static constexpr const char* kChannels[] = {"control", "data"};
  static constexpr const char* kWays[] = {"sent", "arrived"};
  const Event& e = noted.event;
  const auto channel = static_cast<std::size_t>(e.channel);
  char line[320];
  std::snprintf(line, sizeof line,
                ",\n{\"name\":\"%s %s\",\"cat\":\"%s\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%" PRIu64 ".%03" PRIu64
                ",\"pid\":%d,\"tid\":%zu,\"args\":{\"bytes\":%" PRIu64 ",\"peer\":%" PRIu32
                ",\"channel\":\"%s\",\"over\":\"%s\"}}",
                e.name, kWays[static_cast<std::size_t>(e.way)], kChannels[channel], noted.nanoseconds / 1000,
                noted.nanoseconds % 1000, recorder.rank, channel, e.bytes, e.peer, kChannels[channel], e.carrier);
  text += line;
}

bool write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = write(fd, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

// Also for a process that ends without leaving the job: that is when one wants to know. Not for a forked child.
__attribute__((destructor)) void finish() {
  if (!active.load(std::memory_order_acquire) || recorder.owner != getpid()) return;
  if (!write_all(recorder.fd, as_json()))
    std::fprintf(stderr, "ulfm: rank %d: the trace could not be written: %s\n", recorder.rank, std::strerror(errno));
}

}  // namespace

bool on() noexcept { return active.load(std::memory_order_acquire); }  // pairs with begin()

void note(const Event& event) noexcept {
  if (!on()) return;
  const std::uint64_t at = recorder.count.fetch_add(1, std::memory_order_relaxed);
  recorder.events[at % kMostEvents] = {now(), event};
}

// A file of ours and nobody else's, in place of one that we made before. In a folder where others may write, such as
// /tmp, neither their links nor their files are written to.
static int make_file(const std::string& path) {
  const auto make = [&] { return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); };
  const int fd = make();
  if (fd >= 0 || errno != EEXIST) return fd;
  struct stat old {};
  const bool ours = lstat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode) && old.st_uid == geteuid();
  if (ours && unlink(path.c_str()) == 0) return make();
  errno = EEXIST;
  return -1;
}

Result<void> begin(const std::string& file, int rank) {
  if (on()) return {};
  std::string path = file + "." + std::to_string(rank);
  if (std::getenv("PMI_SPAWNED") != nullptr) path += "." + std::to_string(getpid());
  recorder.fd = make_file(path);
  if (recorder.fd < 0) return fail_errno("making the trace " + path);
  void* memory = mmap(nullptr, kMostEvents * sizeof(Noted), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail(Errc::no_memory, "no memory for the events of a trace");
  recorder.events = static_cast<Noted*>(memory);
  recorder.rank = rank;
  recorder.owner = getpid();
  active.store(true, std::memory_order_release);  // pairs with on()
  return {};
}

std::string as_json() {
  const std::uint64_t count = recorder.count.load(std::memory_order_acquire);
  const std::uint64_t kept = std::min<std::uint64_t>(count, kMostEvents);
  char head[400];
  std::snprintf(head, sizeof head,
                "{\"otherData\":{\"events\":%" PRIu64 ",\"lost\":%" PRIu64
                "},\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d "
                "(process %d)\"}},\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":"
                "\"control\"}},\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":1,\"args\":{\"name\":"
                "\"data\"}}",
                count, count - kept, recorder.rank, recorder.rank, static_cast<int>(recorder.owner), recorder.rank,
                recorder.rank);
  std::string text = head;
  for (std::uint64_t i = count - kept; i < count; ++i) append(text, recorder.events[i % kMostEvents]);
  return text + "\n]}\n";
}

}  // namespace ulfm::trace
