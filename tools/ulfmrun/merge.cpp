// The traces of a job's processes as one: ranks instead of process numbers, and an arrow from each frame's sending to
// its arrival.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include <fmt/core.h>

#include "base/trace_format.hpp"
#include "collect.hpp"
#include "failure.hpp"

namespace ulfmrun {
namespace {

using ulfm::record::JobRecord;
using ulfm::record::kMostEvents;
using ulfm::record::Place;
using ulfm::record::RecordedEvent;
using ulfm::record::RecordedKind;

constexpr int kFirstSpawned = 1'000'000;  // numbers in the trace of processes that others started

struct Process {
  const Place* place;
  int number;                        // in the trace
  std::uint64_t first = 0, end = 0;  // events that are there
};

std::vector<Process> processes_of(const JobRecord& record) {
  std::vector<Process> all;
  for (std::uint32_t i = 0; i < record.places(); ++i) {
    const Place* place = record.place(i);
    if (place == nullptr) continue;
    const std::uint64_t end = place->events.load(std::memory_order_acquire);
    const bool plain = place->spawned == 0 && std::none_of(all.begin(), all.end(), [&](const Process& other) {
                         return other.number == place->rank;
                       });
    all.push_back(
        {place, plain ? place->rank : kFirstSpawned + static_cast<int>(i), end - std::min(end, kMostEvents), end});
  }
  return all;
}

/// A frame by its connection and number. A connection that is made again counts anew, so there may be several of a key.
struct Key {
  std::uint32_t from, to;
  std::uint16_t from_port, to_port;
  std::uint64_t number;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& k) const noexcept {
    std::uint64_t h = k.number * 0x9e3779b97f4a7c15u;
    for (const std::uint64_t part :
         {std::uint64_t{k.from}, std::uint64_t{k.to}, std::uint64_t{k.from_port}, std::uint64_t{k.to_port}})
      h = (h ^ part) * 0xff51afd7ed558ccdu, h ^= h >> 32;
    return h;
  }
};

struct Sending {
  std::uint64_t at;
  std::uint64_t flow;
  bool arrived = false;
};

/// Which sending belongs to which arrival.
class Flows {
 public:
  void add_sending(std::uint32_t pid, const RecordedEvent& e) {
    sendings_[{pid, e.peer, e.own_port, e.peer_port, e.number}].push_back({e.begin, ++last_});
  }
  /// The last one before the arrival; 0: none.
  std::uint64_t arrival(std::uint32_t pid, const RecordedEvent& e) {
    const auto found = sendings_.find({e.peer, pid, e.peer_port, e.own_port, e.number});
    if (found == sendings_.end()) return 0;
    Sending* best = nullptr;
    for (Sending& sending : found->second)
      if (!sending.arrived && (best == nullptr || (sending.at <= e.begin && sending.at > best->at))) best = &sending;
    if (best == nullptr) return 0;
    best->arrived = true;
    return best->flow;
  }
  std::uint64_t sending(std::uint32_t pid, const RecordedEvent& e) const {
    const auto found = sendings_.find({pid, e.peer, e.own_port, e.peer_port, e.number});
    if (found == sendings_.end()) return 0;
    for (const Sending& sending : found->second)
      if (sending.at == e.begin) return sending.arrived ? sending.flow : 0;
    return 0;
  }

 private:
  std::unordered_map<Key, std::vector<Sending>, KeyHash> sendings_;
  std::uint64_t last_ = 0;
};

bool is_data(const RecordedEvent& e, RecordedKind kind) { return e.kind == kind && !e.control; }

template <typename Visit>
void for_events(const JobRecord& record, const Process& process, Visit visit) {
  for (std::uint64_t i = process.first; i < process.end; ++i) {
    const RecordedEvent& event = record.event(*process.place, i);
    if (event.begin != 0) visit(event);  // else counted and not written: its process was killed in between
  }
}

}  // namespace

void write_trace(const JobRecord& record, const std::string& file) {
  const std::vector<Process> all = processes_of(record);
  std::unordered_map<std::uint32_t, int> number_of;  // by pid
  Flows flows;
  std::uint64_t events = 0, lost = 0;
  for (const Process& p : all) {
    number_of[static_cast<std::uint32_t>(p.place->pid)] = p.number;
    events += p.end, lost += p.first;
    for_events(record, p, [&](const RecordedEvent& e) {
      if (is_data(e, RecordedKind::sent)) flows.add_sending(static_cast<std::uint32_t>(p.place->pid), e);
    });
  }
  std::vector<std::vector<std::uint64_t>> arrivals(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    for_events(record, all[i], [&](const RecordedEvent& e) {
      arrivals[i].push_back(
          is_data(e, RecordedKind::arrived) ? flows.arrival(static_cast<std::uint32_t>(all[i].place->pid), e) : 0);
    });

  std::FILE* out = make_result_file("--trace", file);
  const auto put = [&](const std::string& text) { std::fputs(text.c_str(), out); };
  put(ulfm::trace::trace_head(events, lost));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Process& p = all[i];
    const auto pid = static_cast<std::uint32_t>(p.place->pid);
    const std::string program(p.place->program, strnlen(p.place->program, sizeof p.place->program));
    put(ulfm::trace::trace_process(
        {p.number, fmt::format("rank {} {}{}", p.place->rank, program, p.number >= kFirstSpawned ? ", spawned" : ""),
         p.place->pid, p.number}));
    std::size_t at = 0;
    for_events(record, p, [&](const RecordedEvent& e) {
      const auto peer = number_of.find(e.peer);
      ulfm::trace::EventContext context;
      if (e.kind != RecordedKind::waited && peer != number_of.end()) context.peer_rank = peer->second;
      const std::uint64_t arrival = at < arrivals[i].size() ? arrivals[i][at++] : 0;
      context.flow = is_data(e, RecordedKind::sent) ? flows.sending(pid, e) : arrival;
      put(ulfm::trace::trace_event(p.number, e, context));
    });
  }
  put(std::string(ulfm::trace::kTraceEnd));
  const bool bad = std::ferror(out) != 0;
  if (std::fclose(out) != 0 || bad) fail(kInstallation, fmt::format("--trace {}: {}", file, std::strerror(errno)));
}

}  // namespace ulfmrun
