// The serializer of a source, and the status that comes back to it.
#include <algorithm>

#include "fabric/dcm/network.hpp"

namespace ulfm::fabric::dcm {
namespace {

/// What of a run lies at or before that cycle: words begun.
std::uint32_t begun_of(std::uint64_t start, std::uint32_t words, std::int64_t cycle) {
  const auto since = static_cast<std::int64_t>(static_cast<std::uint64_t>(cycle) - start);
  if (since < 0) return 0;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(words, since / kWordNibbles + 1));
}

}  // namespace

// ---- what was sent when
// ---------------------------------------------------------------------------------------------

std::uint32_t Network::begun(const CubeMessage& m, std::int64_t cycle) const noexcept {
  std::uint32_t sum = m.older_words;
  for (std::uint32_t i = 0; i < m.run_count; ++i) {
    const Run& run = m.runs[(m.run_first + i) % kRuns];
    sum += begun_of(run.start, run.words, cycle);
  }
  return m.running != 0 ? sum + begun_of(m.run_start, m.total - m.sent, cycle) : sum;
}

std::uint32_t Network::interrupted(const CubeMessage& m, std::int64_t cycle) const noexcept {
  std::uint32_t sum = m.older_runs;
  for (std::uint32_t i = 0; i < m.run_count; ++i) {
    const Run& run = m.runs[(m.run_first + i) % kRuns];
    const bool last = m.finished != 0 && i + 1u == m.run_count;
    sum += !last && static_cast<std::int64_t>(run.start + std::uint64_t{kWordNibbles} * run.words) <= cycle ? 1 : 0;
  }
  return sum;
}

std::uint64_t Network::begins_word(const CubeMessage& m, std::uint32_t n) const noexcept {
  if (n <= m.older_words || n > m.total) return n > m.total ? kNever : 0;
  n -= m.older_words;
  for (std::uint32_t i = 0; i < m.run_count; ++i) {
    const Run& run = m.runs[(m.run_first + i) % kRuns];
    if (n <= run.words) return run.start + std::uint64_t{kWordNibbles} * (n - 1);
    n -= run.words;
  }
  return m.running != 0 ? m.run_start + std::uint64_t{kWordNibbles} * (n - 1) : kNever;
}

void Network::end_run(CubeMessage& m, std::uint64_t t) {
  const auto words = static_cast<std::uint32_t>((t - m.run_start) / kWordNibbles);
  if (m.run_count == kRuns) {
    m.older_words += m.runs[m.run_first % kRuns].words;
    ++m.older_runs;
    m.run_first = static_cast<std::uint8_t>((m.run_first + 1) % kRuns);
    --m.run_count;
  }
  m.runs[(m.run_first + m.run_count++) % kRuns] = {m.run_start, words};
  m.sent += words;
  m.running = 0;
}

// ---- the serializer
// -------------------------------------------------------------------------------------------------

void Network::serialize(FrameId frame, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  if (m.finished != 0) return;
  if (m.running == 0) {
    if (m.ready == 0) return;
    m.running = 1;
    m.run_start = t;
    schedule(timer(frame, kSerializer), t + std::uint64_t{kWordNibbles} * (m.total - m.sent) - 1, kSend);
    return plan(frame, t);
  }
  const std::uint64_t end = m.run_start + std::uint64_t{kWordNibbles} * (m.total - m.sent);
  if (t + 1 == end) {  // the last nibble of the checksum
    end_run(m, end);
    m.finished = 1;
    m.finished_at = end;
    m.change_count = 0;
    cancel(timer(frame, kReady));
    if (m.hops != 0) schedule(timer(frame, kPath), end, kRelease);
    const std::uint32_t index = source_index(m.from);
    arena_.source(index).current = kNone;
    schedule(starter(index), end, kBegin);
  } else if (m.ready == 0) {  // throttled
    end_run(m, t);
  }
  plan(frame, t);
}

// ALLOW DATA, from that cycle on. A word that was begun is sent to its end.
void Network::set_ready(FrameId frame, bool ready, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  if (m.finished != 0) return;
  m.ready = ready ? 1 : 0;
  if (m.running == 0) {
    if (ready) schedule(timer(frame, kSerializer), t, kSend);
    else cancel(timer(frame, kSerializer));
    return;
  }
  const std::uint64_t end = m.run_start + std::uint64_t{kWordNibbles} * (m.total - m.sent);
  const std::uint64_t since = t > m.run_start ? t - m.run_start : 0;
  const std::uint64_t stop = m.run_start + (since + kWordNibbles - 1) / kWordNibbles * kWordNibbles;
  schedule(timer(frame, kSerializer), ready || stop >= end ? end - 1 : stop, kSend);
}

// ---- the status path
// ------------------------------------------------------------------------------------------------

// The first cycle from `t` on in which a channel carries RDY: all but those within a probe or a word.
std::uint64_t Network::slot(std::uint32_t index, std::uint64_t t) const {
  const Out& out = arena_.out(index);
  if (t > out.busy_from && t < out.busy_until) return out.busy_until;
  if (out.holder >= g_.frames) return t;
  const CubeMessage& m = arena_.message(out.holder);
  const std::int64_t then = at_source(t, out.hop);
  const auto within = [&](std::uint64_t start, std::uint64_t words) {
    const auto since = static_cast<std::int64_t>(static_cast<std::uint64_t>(then) - start);
    return since > 0 && since < static_cast<std::int64_t>(kWordNibbles * words) ? since % kWordNibbles : 0;
  };
  std::int64_t into = m.running != 0 ? within(m.run_start, m.total - m.sent) : 0;
  for (std::uint32_t i = 0; i < m.run_count && into == 0; ++i) {
    const Run& run = m.runs[(m.run_first + i) % kRuns];
    into = within(run.start, run.words);
  }
  return into == 0 ? t : t + kWordNibbles - static_cast<std::uint64_t>(into);
}

// A change of RDY leaves the router behind a hop, over the channel that leads back.
void Network::send_ready(FrameId frame, std::uint32_t hop, bool ready, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  if (m.finished != 0) return;
  if (m.change_count >= kChanges) return damage();
  m.changes[m.change_count++] = {slot(way_back(m, hop), t) + p_.hop_cycles, static_cast<std::uint8_t>(hop), ready};
  std::uint64_t first = kNever;
  for (std::uint32_t i = 0; i < m.change_count; ++i) first = std::min(first, m.changes[i].at);
  schedule(timer(frame, kReady), first, kArrive);
}

// Those that arrive in one cycle at one router arrived in the order in which they left.
void Network::ready_arrives(FrameId frame, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  ReadyChange due[kChanges];
  std::uint32_t n = 0, left = 0;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(m.change_count, kChanges); ++i)
    if (m.changes[i].at <= t) due[n++] = m.changes[i];
    else m.changes[left++] = m.changes[i];
  m.change_count = static_cast<std::uint8_t>(left);
  if (left != 0) {
    std::uint64_t first = kNever;
    for (std::uint32_t i = 0; i < left; ++i) first = std::min(first, m.changes[i].at);
    schedule(timer(frame, kReady), first, kArrive);
  }
  for (std::uint32_t i = 0; i < n; ++i)
    if (due[i].hop == 0) set_ready(frame, due[i].value != 0, t);
    else send_ready(frame, due[i].hop - 1u, due[i].value != 0, t);
}

}  // namespace ulfm::fabric::dcm
