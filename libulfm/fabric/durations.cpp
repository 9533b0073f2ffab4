#include "fabric/durations.hpp"

#include <string>

#include <fmt/core.h>

#include "fabric/model.hpp"

namespace ulfm::fabric {
namespace {

constexpr std::uint64_t kNanosecond = kPicosecondsPerNanosecond;

Durations durations(const Times& times) {
  Durations d;
  d.cycle = times.cycle_ps;
  d.send = times.send_ns * kNanosecond;
  d.receive = times.receive_ns * kNanosecond;
  d.card = times.card_ns * kNanosecond;
  d.card_byte = times.card_byte_ps;
  d.local = times.local_ns * kNanosecond;
  d.local_byte = times.local_byte_ps;
  d.look = times.look_ns * kNanosecond;
  d.system_send = times.system_ns != 0 ? times.system_ns * kNanosecond : d.send;
  d.system_receive = times.system_ns != 0 ? times.system_ns * kNanosecond : d.receive;
  d.forward = times.forward_ns * kNanosecond;
  return d;
}

// Takes the options that are given in place of what is there.
void take_options(const Options& given, Durations& d) {
  const auto take = [&given](const char* name, std::uint64_t& value, std::uint64_t unit) {
    if (const std::int64_t number = given.number(name, -1); number >= 0)
      value = static_cast<std::uint64_t>(number) * unit;
  };
  take("send_ns", d.send, kNanosecond);
  take("send_byte_ps", d.send_byte, 1);
  take("receive_ns", d.receive, kNanosecond);
  take("receive_byte_ps", d.receive_byte, 1);
  take("card_ns", d.card, kNanosecond);
  take("card_byte_ps", d.card_byte, 1);
  take("local_ns", d.local, kNanosecond);
  take("local_byte_ps", d.local_byte, 1);
  take("look_ns", d.look, kNanosecond);
  if (given.number("send_ns", -1) >= 0 && d.system_send > d.send) d.system_send = d.send;
  if (given.number("receive_ns", -1) >= 0 && d.system_receive > d.receive) d.system_receive = d.receive;
  take("system_send_ns", d.system_send, kNanosecond);
  take("system_receive_ns", d.system_receive, kNanosecond);
  take("forward_ns", d.forward, kNanosecond);
  take("forward_byte_ps", d.forward_byte, 1);
}

}  // namespace

Result<Durations> durations_of(const ModelKind& kind, std::string_view options) {
  if (kind.presets.empty())
    return fail(Errc::invalid,
                fmt::format("{}: no durations are known for it, so it cannot run in virtual time", kind.name));
  auto given = read_options(kind, options);
  if (!given) return fail(std::move(given.error()));
  Durations d = durations(kind.presets[static_cast<std::size_t>(given->number("preset", 0))].times);
  given->set(d.cycle, "cycle_ps");
  if (kind.adjust_durations != nullptr) kind.adjust_durations(*given, d);
  take_options(*given, d);
  if (d.forward + d.forward_byte != 0 && !kind.forwards)
    return fail(Errc::invalid, fmt::format("{}: its nodes do not store and forward; leave forward_ns and "
                                           "forward_byte_ps out",
                                           kind.name));
  return d;
}

}  // namespace ulfm::fabric
