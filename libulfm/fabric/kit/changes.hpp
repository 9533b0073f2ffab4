// The schedule of a model whose faults are switches and links of a topology.
#pragma once

#include <span>

#include "fabric/kit/schedule.hpp"
#include "fabric/topology/timeline.hpp"

namespace ulfm::fabric {

/// steps | links that change. A view, as one process has it; see Schedule.
class Changes {
 public:
  /// How many of each; kept by the model in front of them, and copied before others can write there.
  struct Size {
    std::uint32_t steps = 0, links = 0;
    static Size of(const std::vector<TopologyChange>& changes) noexcept;
    bool is_sane() const noexcept { return steps <= kMostSteps && links < 1u << 24; }
    std::size_t bytes() const noexcept {
      return Schedule<Step>::bytes(steps) + up_to_line(std::size_t{links} * sizeof(SwitchPort));
    }
  };
  static void write(std::byte* memory, const std::vector<TopologyChange>& changes);
  Changes(std::byte* memory, Size size) noexcept
      : schedule_(memory, size.steps),
        links_(reinterpret_cast<const SwitchPort*>(memory + Schedule<Step>::bytes(size.steps)), size.links) {}

  /// Number of the first that has not happened.
  std::uint32_t next() const noexcept { return schedule_.next(); }
  std::uint64_t due() const noexcept { return schedule_.due(); }
  /// Lets everything happen that is due by then: set_switch(index, up), set_link(port, up).
  template <typename Before, typename SetSwitch, typename SetLink>
  void advance(std::uint64_t nanoseconds, Before before, SetSwitch set_switch, SetLink set_link) {
    schedule_.advance(nanoseconds, [&](const Step& now) {
      before(now.at);
      if (now.dead_switch >= 0) set_switch(static_cast<std::uint32_t>(now.dead_switch), now.up != 0);
      const std::size_t first = std::min<std::size_t>(now.first_link, links_.size());
      for (const SwitchPort& link : links_.subspan(first, std::min<std::size_t>(now.links, links_.size() - first)))
        set_link(link, now.up != 0);
    });
  }

 private:
  struct Step {
    std::uint64_t at;
    std::int64_t dead_switch;
    std::uint32_t first_link, links;
    std::uint32_t up;
  };
  Schedule<Step> schedule_;
  std::span<const SwitchPort> links_;
};

}  // namespace ulfm::fabric
