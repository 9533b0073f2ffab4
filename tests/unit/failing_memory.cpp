#include "failing_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
std::atomic<std::int64_t> left{kNever};  // allocations until the one that fails

void* take(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  if (left.load(std::memory_order_relaxed) != kNever && left.fetch_sub(1) == 0) throw std::bad_alloc();
  if (void* memory = std::aligned_alloc(alignment, size / alignment * alignment + alignment)) return memory;
  throw std::bad_alloc();
}

void* take_or_none(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept try {
  return take(size, alignment);
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace

// The other forms come down to these. Under a sanitizer those that do not throw would be its own if they were not here.
void* operator new(std::size_t size) { return take(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take_or_none(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take_or_none(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace test {

FailingAllocation::FailingAllocation(std::int64_t before) noexcept { left.store(before); }
FailingAllocation::~FailingAllocation() { left.store(kNever); }
bool FailingAllocation::is_over() const noexcept { return left.load() < 0; }

}  // namespace test
