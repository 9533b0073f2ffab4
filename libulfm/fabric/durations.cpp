#include "fabric/durations.hpp"

#include <string>

namespace ulfm::fabric {
namespace {

constexpr std::uint64_t kNanosecond = 1000;

struct Preset {
  const char* name;
  const char* model;
  Durations durations;
};

// A row of times as ulfm-time(7) has them: a cycle in picoseconds; then nanoseconds of a message and picoseconds of a
// byte for send, receive, card and neighbours; then a look, and the system's own messages.
constexpr Durations times(std::uint64_t cycle, std::uint64_t send, std::uint64_t receive, std::uint64_t card,
                          std::uint64_t card_byte, std::uint64_t local, std::uint64_t local_byte, std::uint64_t look,
                          std::uint64_t system, std::uint64_t forward = 0) {
  Durations d{cycle,      send * kNanosecond,
              0,          receive * kNanosecond,
              0,          card * kNanosecond,
              card_byte,  local * kNanosecond,
              local_byte, look * kNanosecond,
              0,          0,
              0,          0};
  d.system_send = system != 0 ? system * kNanosecond : d.send;
  d.system_receive = system != 0 ? system * kNanosecond : d.receive;
  d.forward = forward * kNanosecond;
  return d;
}

// In the order of the words in kDurationRows; the first of a model is what it has without a word.
constexpr Preset kPresets[] = {
    // Fitted to the two figures of Zhou et al. 1999, section 4: 16 B in 6 us and 2 KB at 40.26 MB/s, one way, user to
    // user through one switch. How the time is shared between software, cards and link is ours.
    {"thgbnet", "xswitch", times(8000, 1500, 1442, 1200, 7040, 500, 1000, 100, 0)},
    // The same two figures, with cards that have a PCI bus of 32 bits at 33 MHz to themselves; the link has the rest.
    // The paper of THNPC-II has no figures in its text.
    {"thnpc2", "xswitch", times(6928, 1500, 1476, 1200, 7576, 500, 1000, 100, 0)},
    // Pierce: about 350 us for a message without data, 95 % of it software, and less for the system's own messages; how
    // much less the text does not have. The channels are the model's own.
    {"ipsc2", "dcm", times(142857, 165000, 165000, 0, 0, 100000, 100000, 10000, 70000)},
    // The thesis's cycle; everything else is ours.
    {"pointdesign", "pointdesign", times(10000, 500, 500, 0, 0, 200, 125, 50, 0)},
    // A cycle is a nanosecond; o is the model's own option.
    {"loggp", "ideal", times(1000, 0, 0, 0, 0, 200, 125, 50, 0)},
    // A byte on a lane of PCI Express, 8 of 10 bits (128 of 130 in the third generation) being data. The software is
    // ours.
    {"gen2", "pcie", times(2000, 1000, 1000, 0, 0, 500, 250, 50, 0)},
    {"gen1", "pcie", times(4000, 1000, 1000, 0, 0, 500, 250, 50, 0)},
    {"gen3", "pcie", times(1016, 1000, 1000, 0, 0, 500, 250, 50, 0)},
    // Store and forward by the nodes on the way, five times the latency of ipsc2 (Nugent: it has "less than one-fifth"
    // of its predecessor's). Channels of 10 Mbit/s, and what a node on the way takes, are ours.
    {"ipsc1", "dcm", times(320000, 860000, 860000, 0, 0, 100000, 100000, 10000, 400000, 860000)},
};

const Preset* preset_of(std::string_view model, std::int64_t number) {
  if (number >= 0 && number < static_cast<std::int64_t>(std::size(kPresets))) return &kPresets[number];
  if (number >= 0) return nullptr;
  for (const Preset& preset : kPresets)
    if (model == preset.model) return &preset;
  return nullptr;
}

}  // namespace

Result<Durations> durations_of(std::string_view model, std::string_view options) {
  const Options given = Options::durations(options);
  const Preset* preset = preset_of(model, given.number("preset", -1));
  if (preset == nullptr || model != preset->model)
    return fail(Errc::invalid,
                std::string(model) + ": " +
                    (preset == nullptr ? "no durations are known for it, so it cannot run in virtual time"
                                       : "preset " + std::string(preset->name) + " is for " + preset->model));
  Durations d = preset->durations;
  const auto take = [&given](const char* name, std::uint64_t& value, std::uint64_t unit) {
    if (const std::int64_t number = given.number(name, -1); number >= 0)
      value = static_cast<std::uint64_t>(number) * unit;
  };
  // What models say in options of their own.
  if (model == "pointdesign") d.cycle = static_cast<std::uint64_t>(Options::one(options, "cycle", 10)) * kNanosecond;
  take("cycle_ps", d.cycle, 1);
  if (model == "ideal") {
    d.send = d.receive = static_cast<std::uint64_t>(Options::one(options, "overhead", 4)) * d.cycle;
    d.system_send = d.system_receive = d.send;
  }
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
  if (d.forward + d.forward_byte != 0 && model != "dcm")
    return fail(Errc::invalid, std::string(model) +
                                   ": only the nodes of dcm's cube store and forward; leave forward_ns and "
                                   "forward_byte_ps out");
  return d;
}

}  // namespace ulfm::fabric
