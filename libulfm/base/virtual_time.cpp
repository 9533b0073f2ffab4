#include "base/virtual_time.hpp"

namespace ulfm {

Clock& clock_of_job() noexcept {
  class Virtual final : public Clock {
    std::chrono::nanoseconds now() noexcept override {
      const VirtualTime* time = VirtualTime::of_process();
      // Never 0, which whoever keeps time-outs takes for "not set".
      return time != nullptr ? std::chrono::nanoseconds(1'000'000'000 + time->now() / 1000) : Clock::steady().now();
    }
  };
  static Virtual clock;
  return VirtualTime::of_process() != nullptr ? clock : Clock::steady();
}

}  // namespace ulfm
