#include "base/trace_format.hpp"

#include <cstring>

#include <fmt/format.h>

namespace ulfm::trace {
namespace {

enum Track { kControl, kData, kWaits };
constexpr const char* kTracks[] = {"control", "data", "waits"};

std::string microseconds(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

// Names come out of memory that others may write.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) out += c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c;
  return out;
}

std::string_view text_of(const char* text, std::size_t most) { return {text, strnlen(text, most)}; }

Track track_of(const record::RecordedEvent& e) {
  return e.kind == record::RecordedKind::waited ? kWaits : e.control ? kControl : kData;
}

// Perfetto draws an arrow between slices, so what is sent or arrives is a slice too, a short one.
constexpr std::uint64_t kShort = 100;

}  // namespace

std::string trace_head(std::uint64_t events, std::uint64_t lost) {
  return fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"events\":{},\"lost\":{}}},\"traceEvents\":[\n"
      "{{\"name\":\"trace\",\"ph\":\"M\",\"pid\":0,\"args\":{{}}}}",
      events, lost);
}

std::string trace_process(const TracedProcess& p) {
  std::string text = fmt::format(
      ",\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{0},\"args\":{{\"name\":\"{1} (process {2})\"}}}}"
      ",\n{{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":{0},\"args\":{{\"sort_index\":{3}}}}}",
      p.number, plain(p.name), p.pid, p.order);
  for (const Track track : {kControl, kData, kWaits})
    text +=
        fmt::format(",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}}}",
                    p.number, static_cast<int>(track), kTracks[track]);
  return text;
}

std::string trace_event(int process, const record::RecordedEvent& e, const EventContext& context) {
  const Track track = track_of(e);
  const std::string where =
      fmt::format("\"ts\":{},\"pid\":{},\"tid\":{}", microseconds(e.begin), process, static_cast<int>(track));
  if (track == kWaits)
    return fmt::format(",\n{{\"name\":\"wait\",\"cat\":\"wait\",\"ph\":\"X\",{},\"dur\":{}}}", where,
                       microseconds(e.duration));
  const bool sent = e.kind == record::RecordedKind::sent;
  std::string text = fmt::format(
      ",\n{{\"name\":\"{} {}\",\"cat\":\"{}\",\"ph\":\"X\",{},\"dur\":{},\"args\":{{\"bytes\":{},\"peer\":{},"
      "\"channel\":\"{}\",\"over\":\"{}\"",
      plain(text_of(e.name, sizeof e.name)), sent ? "sent" : "arrived", kTracks[track], where, microseconds(kShort),
      e.bytes, e.peer, kTracks[track], plain(text_of(e.over, sizeof e.over)));
  if (context.peer_rank >= 0) text += fmt::format(",\"peer_rank\":{}", context.peer_rank);
  if (track == kData) text += fmt::format(",\"port\":{},\"peer_port\":{}", e.own_port, e.peer_port);
  text += "}}";
  if (context.flow == 0) return text;
  return text + fmt::format(",\n{{\"name\":\"frame\",\"cat\":\"data\",\"ph\":\"{}\",{}\"id\":{},{}}}", sent ? "s" : "f",
                            sent ? "" : "\"bp\":\"e\",", context.flow, where);
}

}  // namespace ulfm::trace
