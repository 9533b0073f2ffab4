#include "failing_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
std::atomic<std::int64_t> left{kNever};  // allocations until the one that fails

void* take(std::size_t size) {
  if (left.load(std::memory_order_relaxed) != kNever && left.fetch_sub(1) == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The other forms without an alignment come down to these.
void* operator new(std::size_t size) { return take(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace test {

FailingAllocation::FailingAllocation(std::int64_t before) noexcept { left.store(before); }
FailingAllocation::~FailingAllocation() { left.store(kNever); }
bool FailingAllocation::is_over() const noexcept { return left.load() < 0; }

}  // namespace test
