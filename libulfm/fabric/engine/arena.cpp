#include "fabric/engine/arena.hpp"

#include <unistd.h>

#include <bit>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "base/align.hpp"
#include "fabric/models.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {

std::string ArenaSizes::name_of(std::uint32_t endpoint) const {
  return is_host(endpoint) ? "the host" : fmt::format("rank {}", endpoint);
}

std::string encode(const ArenaAddress& address) {
  return fmt::format("{}.{}.{:016x}", address.pid, address.fd, address.token);
}

Result<ArenaAddress> decode_arena_address(std::string_view text) {
  ArenaAddress address;
  const std::string copy(text.substr(0, 64));  // bounded: the text comes from outside
  if (std::sscanf(copy.c_str(), "%" SCNd32 ".%" SCNd32 ".%16" SCNx64, &address.pid, &address.fd, &address.token) != 3 ||
      address.pid <= 0 || address.fd < 0 || encode(address) != text)
    return fail(Errc::protocol, fmt::format("\"{}\" is no address of an emulated interconnect; ulfmrun sets it", copy));
  return address;
}

bool is_sane(const ArenaSizes& s) {
  return s.endpoints >= 1 && s.endpoints <= kMaxEndpoints && std::has_single_bit(s.slots) && s.slots <= 65536 &&
         s.all_slots() <= (1u << 20) && s.slot_bytes >= 64 && s.slot_bytes <= (1u << 20) && s.frame_bytes >= 1 &&
         s.pieces() <= 65535 && s.records >= 1 && s.records <= (1u << 20) && std::has_single_bit(s.box_entries) &&
         s.box_entries >= s.all_slots() && s.box_entries <= (1u << 21) && s.processes >= 1 &&
         s.processes <= kMaxEndpoints && s.nodes >= 1 && s.nodes <= 65536 && s.timed <= 1 && s.hosts <= 1 &&
         s.gateways <= s.hosts && s.gateways < s.nodes && s.model_bytes <= (std::uint64_t{1} << 34);
}

FabricArena::Layout::Layout(const ArenaSizes& s) {
  box_bytes = up_to(sizeof(PortBox) + std::size_t{s.box_entries} * 4, kPage);
  slot_bytes = sizeof(Slot) + up_to(s.slot_bytes, 64);
  endpoints = up_to(sizeof(ArenaHeader), kPage);
  queues = up_to(endpoints + std::size_t{s.endpoints} * sizeof(Endpoint), kPage);
  slot_progress = up_to(queues + std::size_t{s.all_slots()} * 4, kPage);
  clocks = up_to(slot_progress + std::size_t{s.all_slots()} * sizeof(SlotProgress), kPage);
  slot_times = up_to(clocks + s.timed * std::size_t{s.endpoints} * sizeof(ProcessClock), kPage);
  events = up_to(slot_times + s.timed * std::size_t{s.all_slots()} * sizeof(SlotTime), kPage);
  card_times = up_to(events + s.timed * std::size_t{s.all_slots()} * sizeof(TimedEvent), kPage);
  model = up_to(card_times + s.timed * std::size_t{s.nodes} * sizeof(CardTimes), kPage);
  records = up_to(model + s.model_bytes, kPage);
  boxes = up_to(records + std::size_t{s.records} * sizeof(Record), kPage);
  slots = boxes + std::size_t{s.endpoints} * kPorts * box_bytes;
  end = up_to(slots + std::size_t{s.all_slots()} * slot_bytes, kPage);
}

std::uint64_t monotonic_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

Result<FabricArena> FabricArena::create(const ModelKind& kind, const ArenaSizes& sizes, const std::string& title) {
  if (!is_sane(sizes))
    return fail(Errc::too_large,
                fmt::format("{}: more processes, frames or nodes than an arena holds (at most {} processes)", title,
                            kMaxEndpoints));
  if (kind.object != nullptr && std::strlen(kind.object) >= sizeof ArenaHeader::object)
    return fail(Errc::too_large, fmt::format("{}: the path of a shared object has at most {} characters", kind.object,
                                             sizeof ArenaHeader::object - 1));
  FabricArena arena;
  arena.sizes_ = sizes;
  arena.at_ = Layout(sizes);
  auto segment = Segment::create(kArenaLabel, arena.at_.end);
  if (!segment) return fail(segment.error());
  arena.segment_ = std::move(*segment);
  if (auto ok = arena.segment_.commit(0, arena.at_.records); !ok) return fail(ok.error());
  ArenaHeader& header = arena.header();
  header.version = kArenaVersion;
  header.token = random_token();
  header.sizes = sizes;
  header.began = monotonic_now();
  std::snprintf(header.model, sizeof header.model, "%s", kind.name);
  if (kind.object != nullptr) std::snprintf(header.object, sizeof header.object, "%s", kind.object);
  std::snprintf(header.title, sizeof header.title, "%s", title.c_str());
  header.magic = kArenaMagic;
  return arena;
}

Result<const ModelKind*> FabricArena::kind() const {
  const ArenaHeader& h = *segment_.at<ArenaHeader>(0);
  const std::string object(h.object, strnlen(h.object, sizeof h.object));
  const std::string name(h.model, strnlen(h.model, sizeof h.model));
  auto found = find_model(object.empty() ? name : object);
  if (!found)
    return fail(Errc::unavailable, fmt::format("the emulated interconnect of this job: {}", found.error().what));
  if (name != (*found)->name)
    return fail(Errc::unavailable,
                fmt::format("shared object {} has another model now than when this job began", object));
  return found;
}

Result<FabricArena> FabricArena::map(std::int32_t pid, std::int32_t fd) {
  auto segment = Segment::attach(pid, fd);
  if (!segment) return fail(std::move(segment.error()).within("the emulated interconnect of this job"));
  FabricArena arena;
  const auto* header = segment->at<ArenaHeader>(0);
  if (segment->size() < sizeof(ArenaHeader) || header->magic != kArenaMagic || header->version != kArenaVersion)
    return fail(Errc::protocol,
                fmt::format("process {} holds no emulated interconnect of this version of the library", pid));
  arena.sizes_ = header->sizes;
  if (!is_sane(arena.sizes_) || Layout(arena.sizes_).end > segment->size())
    return fail(Errc::protocol, "the emulated interconnect of this job has impossible sizes");
  arena.at_ = Layout(arena.sizes_);
  arena.segment_ = std::move(*segment);
  return arena;
}

Result<FabricArena> FabricArena::look_at(std::int32_t pid, std::int32_t fd) { return map(pid, fd); }

Result<FabricArena> FabricArena::attach(const ArenaAddress& address) {
  auto arena = map(address.pid, address.fd);
  if (arena && arena->header().token != address.token)
    return fail(
        Errc::protocol,
        fmt::format("process {} holds the emulated interconnect of another job than ULFM_FABRIC says", address.pid));
  return arena;
}

Result<FabricArena> FabricArena::of_this_job() {
  const char* text = std::getenv("ULFM_FABRIC");
  if (text == nullptr || *text == '\0') return fail(Errc::unavailable, "ULFM_FABRIC is not set");
  auto address = decode_arena_address(text);
  if (!address) return fail(std::move(address.error()).within("ULFM_FABRIC"));
  return attach(*address);
}

ArenaAddress FabricArena::address() const noexcept { return {getpid(), segment_.fd(), header().token}; }

Result<void> FabricArena::commit_slots(std::uint32_t endpoint) {
  return segment_.commit(at_.slots + std::size_t{endpoint} * sizes_.slots * at_.slot_bytes,
                         std::size_t{sizes_.slots} * at_.slot_bytes);
}

Result<void> FabricArena::commit_box(std::uint32_t endpoint, std::uint32_t port) {
  return segment_.commit(at_.boxes + (std::size_t{endpoint} * kPorts + port) * at_.box_bytes, at_.box_bytes);
}

Result<void> FabricArena::commit_record(std::uint32_t i) {
  return segment_.commit(at_.records + std::size_t{i} * sizeof(Record), sizeof(Record));
}

}  // namespace ulfm::fabric
