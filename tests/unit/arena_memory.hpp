// Memory for a model under test.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/align.hpp"

namespace test {

/// Zeroed and aligned to 64, as an arena is.
class ArenaMemory {
 public:
  explicit ArenaMemory(std::size_t bytes)
      : bytes_(ulfm::up_to_line(bytes)), memory_(std::aligned_alloc(64, bytes_), &std::free) {
    std::memset(memory_.get(), 0, bytes_);
  }
  std::byte* get() const { return static_cast<std::byte*>(memory_.get()); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::unique_ptr<void, decltype(&std::free)> memory_;
};

}  // namespace test
