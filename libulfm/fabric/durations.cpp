#include "fabric/durations.hpp"

#include <string>

namespace ulfm::fabric {
namespace {

constexpr std::uint64_t kNanosecond = 1000;
constexpr std::uint64_t kMicrosecond = 1000 * kNanosecond;

struct Preset {
  const char* name;
  const char* model;
  Durations durations;
};

// In the order of the words in kDurationRows.
constexpr Preset kPresets[] = {
    // Fitted to the two figures of Zhou et al. 1999, section 4: 16 B in 6 us and 2 KB at 40.26 MB/s, one way, user to
    // user through one switch. How the time is shared between software, cards and link is ours.
    {"thgbnet",
     "xswitch",
     {8 * kNanosecond, 1500 * kNanosecond, 0, 1442 * kNanosecond, 0, 1200 * kNanosecond, 7040, 500 * kNanosecond, 1000,
      100 * kNanosecond}},
    // Pierce: about 350 us for a message without data, 95 % of it software; the channels are the model's own.
    {"ipsc2",
     "dcm",
     {142857, 165 * kMicrosecond, 0, 165 * kMicrosecond, 0, 0, 0, 100 * kMicrosecond, 100 * kNanosecond,
      10 * kMicrosecond}},
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
  take("cycle_ps", d.cycle, 1);
  take("send_ns", d.send, kNanosecond);
  take("send_byte_ps", d.send_byte, 1);
  take("receive_ns", d.receive, kNanosecond);
  take("receive_byte_ps", d.receive_byte, 1);
  take("card_ns", d.card, kNanosecond);
  take("card_byte_ps", d.card_byte, 1);
  take("local_ns", d.local, kNanosecond);
  take("local_byte_ps", d.local_byte, 1);
  take("look_ns", d.look, kNanosecond);
  return d;
}

}  // namespace ulfm::fabric
