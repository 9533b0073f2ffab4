#include "base/wake_source.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/frame.hpp"
#include "base/timespec.hpp"
#include "base/wait_word.hpp"

namespace ulfm {
namespace {

bool sleep_on_descriptors(std::span<pollfd> sets, std::chrono::nanoseconds limit) noexcept {
  const timespec time = timespec_of(limit);
  return ppoll(sets.data(), sets.size(), &time, nullptr) > 0;
}

}  // namespace

bool sleep_on_any(std::span<WakeSource* const> sources, std::chrono::nanoseconds limit, WaitWord other,
                  const Look& look) {
  WakeSource& first = *sources.front();
  if (sources.size() == 1) return first.sleep(limit, other, look);
  std::array<WaitWord, kPortsPerProcess + 1> words;
  std::array<pollfd, kPortsPerProcess> sets;
  std::size_t with_word = 0, with_descriptor = 0;
  for (WakeSource* source : sources) {
    if (const WaitWord word = source->await(); word) words[with_word++] = word;
    else if (source->descriptor() >= 0) sets[with_descriptor++] = {source->descriptor(), POLLIN, 0};
  }
  if (with_word == sources.size()) {
    if (other) words[with_word++] = other;
    return sleep_on_any(std::span(words).first(with_word), limit, look);
  }
  const std::span<pollfd> found = std::span(sets).first(with_descriptor);
  if (found.size() != sources.size() || other)
    return first.sleep(std::min<std::chrono::nanoseconds>(limit, kShortNap), other, look);
  // A descriptor of the process: the sleep of one source is that of all.
  if (std::ranges::all_of(found, [&](const pollfd& set) { return set.fd == found[0].fd; })) return first.sleep(limit);
  return sleep_on_descriptors(found, limit);
}

}  // namespace ulfm
