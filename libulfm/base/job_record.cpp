#include "base/job_record.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

#include <fmt/core.h>

namespace ulfm::record {
namespace {

constexpr std::uint64_t kMagic = 0x554c464d'5245'4331;  // of this layout
constexpr std::size_t kAnyPage = 64 * 1024;             // of any processor
constexpr std::size_t kPlaceBytes = kAnyPage;
constexpr std::size_t kEventBytes = kMostEvents * sizeof(RecordedEvent);
constexpr std::uint64_t kChunk = 4096;  // events that memory is asked for at once
static_assert(kEventBytes % kAnyPage == 0 && kChunk * sizeof(RecordedEvent) % kAnyPage == 0 &&
              kMostEvents % kChunk == 0);

std::mutex own_lock;  // of joining
std::optional<JobRecord> own_record;
std::atomic<Place*> own_place{nullptr};  // of_process(rank) to any thread that notes
bool tried = false;
std::atomic<bool> out_of_memory{false};  // of events; nothing is noted from then on

}  // namespace

struct JobRecord::Head {
  std::uint64_t magic;
  std::uint32_t places, has_events;
  std::atomic<std::uint32_t> used;  ///< places given out
};

std::size_t JobRecord::offset_of(std::uint32_t index) const noexcept {
  return kAnyPage + index * (kPlaceBytes + (has_events_ ? kEventBytes : 0));
}

Result<JobRecord> JobRecord::create(std::uint32_t places, bool events) {
  const std::size_t each = kPlaceBytes + (events ? kEventBytes : 0);
  auto segment = Segment::create("ulfm-record", kAnyPage + places * each);
  if (!segment) return fail(std::move(segment.error()));
  if (auto ok = segment->commit(0, kAnyPage); !ok) return fail(std::move(ok.error()));
  auto* head = new (segment->base()) Head{kMagic, places, events ? 1u : 0u, {}};
  JobRecord record(std::move(*segment));
  record.places_ = head->places;
  record.has_events_ = events;
  return record;
}

Result<JobRecord> JobRecord::join() {
  const char* text = std::getenv("ULFM_RECORD");
  int pid = 0, fd = -1;
  if (text == nullptr || std::sscanf(text, "%d:%d", &pid, &fd) != 2)
    return fail(Errc::not_found, "nobody collects what this process notes");
  auto segment = Segment::attach(pid, fd);
  if (!segment) return fail(Errc::not_found, segment.error().what);
  const auto* head = segment->at<Head>(0);
  if (segment->size() < kAnyPage || head->magic != kMagic)
    return fail(Errc::not_found, "another process has that number");
  const std::uint64_t places = head->places;
  const bool events = head->has_events != 0;
  if (kAnyPage + places * (kPlaceBytes + (events ? kEventBytes : 0)) > segment->size())
    return fail(Errc::protocol, "ULFM_RECORD names a memory that is shorter than it says");
  JobRecord record(std::move(*segment));
  record.places_ = static_cast<std::uint32_t>(places);
  record.has_events_ = events;
  return record;
}

std::string JobRecord::address() const { return fmt::format("{}:{}", getpid(), segment_.fd()); }

Place* JobRecord::take(int rank) noexcept {
  const std::uint32_t index = segment_.at<Head>(0)->used.fetch_add(1, std::memory_order_relaxed);
  if (index >= places_ || !segment_.commit(offset_of(index), kPlaceBytes)) return nullptr;
  auto* place = segment_.at<Place>(offset_of(index));
  place->rank = rank;
  place->pid = getpid();
  place->spawned = std::getenv("PMI_SPAWNED") != nullptr ? 1 : 0;
  std::snprintf(place->program, sizeof place->program, "%s", program_invocation_short_name);
  place->taken.store(1, std::memory_order_release);
  return place;
}

const Place* JobRecord::place(std::uint32_t index) const noexcept {
  if (index >= std::min(places_, segment_.at<Head>(0)->used.load(std::memory_order_acquire))) return nullptr;
  const auto* place = segment_.at<Place>(offset_of(index));
  return place->taken.load(std::memory_order_acquire) == 1 ? place : nullptr;
}

std::size_t JobRecord::events_of(const Place& place) const noexcept {
  return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&place) - segment_.base()) + kPlaceBytes;
}

bool JobRecord::note(Place& place, const RecordedEvent& event) noexcept {
  if (out_of_memory.load(std::memory_order_relaxed)) return false;
  const std::uint64_t at = place.events.fetch_add(1, std::memory_order_relaxed);
  const std::size_t events = events_of(place);
  // Of several threads that get into a new piece at once each of the first ones asks: it may be the first to write.
  if (at < kMostEvents && at % kChunk < 16 &&
      !segment_.commit(events + at / kChunk * kChunk * sizeof(RecordedEvent), kChunk * sizeof(RecordedEvent))) {
    out_of_memory.store(true, std::memory_order_relaxed);
    return false;
  }
  segment_.at<RecordedEvent>(events)[at % kMostEvents] = event;
  return true;
}

const RecordedEvent& JobRecord::event(const Place& place, std::uint64_t number) const noexcept {
  return segment_.at<RecordedEvent>(events_of(place))[number % kMostEvents];
}

void JobRecord::put_text(Place& place, std::string_view text) noexcept {
  const std::uint32_t before = std::min<std::uint32_t>(place.text.load(std::memory_order_relaxed), kMostText);
  const std::size_t size = std::min(text.size(), kMostText - before);
  std::memcpy(place.counters.data() + before, text.data(), size);
  place.text.store(before + static_cast<std::uint32_t>(size), std::memory_order_release);
}

Own of_process() noexcept {
  Place* const place = own_place.load(std::memory_order_acquire);
  return place != nullptr ? Own{&*own_record, place} : Own{};
}

Own of_process(int rank) {
  const std::scoped_lock lock(own_lock);
  if (!std::exchange(tried, true)) {
    // A forked child is another process and takes a place of its own.
    (void)pthread_atfork(nullptr, nullptr, [] { own_place.store(nullptr), tried = false; });
    if (auto joined = JobRecord::join()) own_record.emplace(std::move(*joined));
  }
  if (own_record && own_place.load(std::memory_order_relaxed) == nullptr)
    own_place.store(own_record->take(rank), std::memory_order_release);
  return of_process();
}

void leave_counters(const std::string& file, int rank, std::string_view text) {
  if (file.empty()) return;
  if (const Own own = of_process(rank); own.place != nullptr) return JobRecord::put_text(*own.place, text);
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    std::fprintf(stderr, "ulfm: rank %d: ULFM_STATS_FILE %s: %s\n", rank, file.c_str(), std::strerror(errno));
  if (fd >= 0) close(fd);
}

}  // namespace ulfm::record
