#include "api/netmod/two_ways.hpp"

#include <algorithm>
#include <bit>

namespace ulfm::netmod {
namespace {

constexpr int kSeries = 4;        // blocks of a series of trials: each way twice, for the first one finds cold memory
constexpr double kBetter = 0.95;  // of the cost of the way so far, to change it

TwoWays::Way other(TwoWays::Way way) { return way == TwoWays::frames ? TwoWays::kernel : TwoWays::frames; }

}  // namespace

// As the nearest smaller class goes that knows.
void TwoWays::start(std::size_t index) noexcept {
  Class& c = classes_[index];
  c.known = true;
  c.trials = kSeries;
  for (std::size_t i = index; i-- > 0;)
    if (classes_[i].known && classes_[i].trials == 0) {
      c.way = classes_[i].way;
      break;
    }
}

TwoWays::Way TwoWays::begins(std::size_t bytes, Time now) noexcept {
  const std::size_t index = size_class(bytes);
  Class& c = classes_[index];
  if (!c.known) start(index);
  if (c.messages >= kMostBusy + (c.trials > 0 ? kBlock : c.rest)) end_busy(now);
  if (on_their_way_++ == 0) since_ = now;
  touched_ |= std::uint64_t{1} << index;
  ++c.messages;
  return c.way;
}

void TwoWays::ends(std::size_t bytes, Time now) noexcept {
  bytes_ += static_cast<double>(bytes);
  if (--on_their_way_ == 0) end_busy(now);
}

// The time since then is that of every class that took part: what the others did, they did both times.
void TwoWays::end_busy(Time now) noexcept {
  const double took = std::chrono::duration<double, std::nano>(now - since_).count();
  for (; touched_ != 0; touched_ &= touched_ - 1) {
    Class& c = classes_[static_cast<std::size_t>(std::countr_zero(touched_))];
    c.time_ns += took;
    c.bytes += bytes_;
    if (c.messages >= (c.trials > 0 ? kBlock : c.rest)) end_block(c);
  }
  bytes_ = 0;
  since_ = now;
}

void TwoWays::end_block(Class& c) noexcept {
  if (c.trials > 0) {
    if (c.bytes > 0) {
      double& cost = c.cost[c.way];
      const double one = c.time_ns / c.bytes;
      cost = cost > 0 ? std::min(cost, one) : one;
    }
    if (--c.trials > 0) c.way = other(c.way);
    else decide(c);
  } else {
    c.cost = {};
    c.trials = kSeries;
  }
  c.messages = 0;
  c.time_ns = c.bytes = 0;
}

// A series ends with the other way; what was the way before it is the first one's.
void TwoWays::decide(Class& c) noexcept {
  const Way before = other(c.way);
  const double now = c.cost[before], then = c.cost[c.way];
  const bool changes = then > 0 && (now <= 0 || then < kBetter * now);
  if (!changes) c.way = before;
  c.rest = changes ? kFirstRest : std::min(2 * c.rest, kMostRest);
}

}  // namespace ulfm::netmod
