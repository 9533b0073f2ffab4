// A lack of memory at a chosen place: operator new of the unit tests is ours.
#pragma once

#include <cstdint>

namespace test {

/// While it lives, one allocation fails: the first one behind `before` others, whichever thread makes it. One at a
/// time.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::int64_t before) noexcept;
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  /// It has failed.
  bool is_over() const noexcept;
};

}  // namespace test
