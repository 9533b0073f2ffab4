// Waiting by looking: how the two sides of a measurement wait where no port waits for them.
#pragma once

#include "base/wait.hpp"

namespace perf {

/// Two processes measure; with a core for each a wait looks long before it yields. bind_side() asks first, while the
/// cores can still be seen: a bound process, and the child of one, sees one.
inline const ulfm::WaitPolicy& look_policy() {
  static const ulfm::WaitPolicy policy = [] {
    auto p = ulfm::WaitPolicy::for_processes(2);
    if (p.has_own_core()) p.spins = 100000;
    return p;
  }();
  return policy;
}

/// Calls `look` until it is true; false when it was not for so long that sleeping is due.
template <typename Look>
bool look_a_while(Look&& look) {
  if (look()) return true;
  ulfm::Waiter waiter(look_policy());
  while (!look())
    if (waiter.step()) return false;
  return true;
}

/// Calls `look` until it is true. A long wait calls `patient` now and then, which may throw.
template <typename Look, typename Patient>
void look_until(Look&& look, Patient&& patient) {
  while (!look_a_while(look)) {
    patient();
    ulfm::yield_now();
  }
}

}  // namespace perf
