// What lies where in an arena.
#pragma once

#include "base/align.hpp"

namespace ulfm::fabric {

/// Places of tables, one after the other, each at the beginning of a cache line.
class Shelf {
 public:
  template <typename T>
  std::size_t put(std::size_t count) {
    return put_bytes(count * sizeof(T));
  }
  std::size_t put_bytes(std::size_t bytes) {
    const std::size_t at = end_;
    end_ += up_to_line(bytes);
    return at;
  }
  std::size_t end() const { return end_; }

 private:
  std::size_t end_ = 0;
};

}  // namespace ulfm::fabric
