// How long to wait for an acknowledgement: RFC 6298, with bounds for networks of microseconds and busy processes, and
// with a report of what has come twice, as in RFC 2883.
#pragma once

#include <algorithm>

#include "proto/reliable/settings.hpp"

namespace ulfm::reliable {

class RoundTrip {
 public:
  explicit RoundTrip(const ReliableSettings& settings)
      : least_(settings.least_timeout),
        most_(settings.most_timeout),
        measured_timeout_(settings.first_timeout),
        timeout_(measured_timeout_) {}

  /// A measured round trip. Only of frames sent once (Karn): of others nobody knows which one was answered.
  void sample(nanoseconds rtt) noexcept {
    if (!measured_) {
      smoothed_ = rtt;
      variation_ = rtt / 2;
      measured_ = true;
    } else {
      const nanoseconds off = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
      variation_ = (3 * variation_ + off) / 4;
      smoothed_ = (7 * smoothed_ + rtt) / 8;
    }
    timeout_ = measured_timeout_ = std::clamp(smoothed_ + 4 * variation_, least_, most_);
  }

  /// What a time-out sent again had arrived. Where many processes share a core an answer comes later than any
  /// time-out, and as all is then sent twice nothing is measured: so the next frames wait twice as long, until one is
  /// answered that went once.
  void too_short() noexcept { timeout_ = std::min(2 * timeout_, most_); }
  /// One was answered that went once, before there was a moment to measure from.
  void answered_at_once() noexcept { timeout_ = measured_timeout_; }

  /// After that many time-outs in a row.
  nanoseconds timeout(unsigned expired = 0) const noexcept {
    return std::min(timeout_ * (1 << std::min(expired, 10u)), std::max(most_, timeout_));
  }
  nanoseconds smoothed() const noexcept { return smoothed_; }

 private:
  nanoseconds least_, most_;
  nanoseconds measured_timeout_;  // what was measured asks for
  nanoseconds timeout_;
  nanoseconds smoothed_{0}, variation_{0};
  bool measured_ = false;
};

}  // namespace ulfm::reliable
