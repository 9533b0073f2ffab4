#include "base/trace.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "base/job_record.hpp"
#include "base/trace_format.hpp"
#include "base/virtual_time.hpp"

namespace ulfm::trace {
namespace {

using record::kMostEvents;

// One to a process. Its memory is never given back: any thread may note something until the very end.
struct Recorder {
  record::Own job;                          // who collects, if anybody does
  record::RecordedEvent* events = nullptr;  // else
  // Places given out, each counted before its event is in it: the count orders no event, and as_json() may find the
  // last ones half written.
  std::atomic<std::uint64_t> count{0};
  int fd = -1;
  int rank = 0;
  pid_t owner = 0;
};
Recorder recorder;
std::atomic<bool> active{false};  // begin() to on() and finish(): the recorder is filled in

std::uint64_t nanoseconds_of(std::chrono::steady_clock::time_point at) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count());
}

void keep(const record::RecordedEvent& event) noexcept {
  if (recorder.job.place != nullptr) {
    (void)recorder.job.record->note(*recorder.job.place, event);
    return;
  }
  recorder.events[recorder.count.fetch_add(1, std::memory_order_relaxed) % kMostEvents] = event;
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
  if (!active.load(std::memory_order_acquire) || recorder.owner != getpid() || recorder.fd < 0) return;
  if (write_all(recorder.fd, as_json())) return;
  const int error = errno;
  char file[PATH_MAX] = "";
  (void)!readlink(fmt::format("/proc/self/fd/{}", recorder.fd).c_str(), file, sizeof file - 1);
  std::fprintf(stderr, "ulfm: rank %d: the trace %s could not be written: %s\n", recorder.rank, file,
               std::strerror(error));
}

}  // namespace

bool on() noexcept { return active.load(std::memory_order_acquire); }  // pairs with begin()

std::uint64_t now() noexcept {
  // Behind the end of its clock a process may still say goodbye: at the last moment that it had.
  static std::atomic<std::uint64_t> last{0};
  if (const VirtualTime* clock = VirtualTime::of_process()) {
    last.store(clock->now() / 1000, std::memory_order_relaxed);
    return clock->now() / 1000;
  }
  const std::uint64_t end = last.load(std::memory_order_relaxed);
  return end != 0 ? end : nanoseconds_of(std::chrono::steady_clock::now());
}

void note(const Event& event) noexcept {
  if (!on()) return;
  record::RecordedEvent noted;
  noted.begin = event.at != 0 ? event.at : now();
  noted.bytes = event.bytes;
  noted.number = event.number;
  noted.peer = event.peer;
  noted.own_port = event.own_port;
  noted.peer_port = event.peer_port;
  noted.kind = event.way == Direction::sent ? record::RecordedKind::sent : record::RecordedKind::arrived;
  noted.control = event.channel == Channel::control;
  std::strncpy(noted.name, event.name, sizeof noted.name - 1);
  std::strncpy(noted.over, event.carrier, sizeof noted.over - 1);
  keep(noted);
}

static void keep_wait(std::uint64_t began) noexcept {
  record::RecordedEvent noted;
  noted.begin = began;
  noted.duration = now() - began;
  noted.kind = record::RecordedKind::waited;
  std::strncpy(noted.name, "wait", sizeof noted.name - 1);
  keep(noted);
}

void note_wait(std::chrono::steady_clock::time_point began) noexcept {
  if (on() && VirtualTime::of_process() == nullptr) keep_wait(nanoseconds_of(began));
}

void note_virtual_wait(std::uint64_t began) noexcept {
  if (on() && now() > began) keep_wait(began);
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
  recorder.rank = rank;
  recorder.owner = getpid();
  recorder.job = record::of_process(rank);
  if (recorder.job.place != nullptr && recorder.job.record->has_events()) {
    // A forked child is another process and begins anew if it wants to.
    (void)pthread_atfork(nullptr, nullptr, [] { active.store(false); });
    active.store(true, std::memory_order_release);  // pairs with on()
    return {};
  }
  recorder.job = {};
  std::string path = fmt::format("{}.{}", file, rank);
  if (std::getenv("PMI_SPAWNED") != nullptr) path += fmt::format(".{}", getpid());
  recorder.fd = make_file(path);
  if (recorder.fd < 0) return fail_errno(fmt::format("making the trace {}", path));
  void* memory = mmap(nullptr, kMostEvents * sizeof(record::RecordedEvent), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail(Errc::no_memory, "no memory for the events of a trace");
  recorder.events = static_cast<record::RecordedEvent*>(memory);
  active.store(true, std::memory_order_release);  // pairs with on()
  return {};
}

std::string as_json() {
  const std::uint64_t count = recorder.count.load(std::memory_order_acquire);
  const std::uint64_t kept = std::min(count, kMostEvents);
  std::string text = trace_head(count, count - kept);
  text += trace_process({recorder.rank, fmt::format("rank {} {}", recorder.rank, program_invocation_short_name),
                         recorder.owner, recorder.rank});
  for (std::uint64_t i = count - kept; i < count; ++i)
    text += trace_event(recorder.rank, recorder.events[i % kMostEvents], {});
  return text.append(kTraceEnd);
}

}  // namespace ulfm::trace
