// A fuzz target: one function, and the seeds a run without a corpus begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
std::vector<std::string> fuzz_seeds();

/// What must hold for any input.
inline void must(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// The input, taken from the front piece by piece; zeros behind its end.
class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* bytes, std::size_t size) : rest_(reinterpret_cast<const char*>(bytes), size) {}
  template <typename T>
  T take() {
    T value{};
    const std::size_t n = rest_.size() < sizeof(T) ? rest_.size() : sizeof(T);
    if (n != 0) std::memcpy(static_cast<void*>(&value), rest_.data(), n);
    rest_.remove_prefix(n);
    return value;
  }
  std::string_view rest() const { return rest_; }
  bool more() const { return !rest_.empty(); }

 private:
  std::string_view rest_;
};

/// Keeps a sum of bytes that were announced as readable, so that the sanitizer sees each one read.
inline void read_all(const std::byte* bytes, std::size_t n) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<unsigned>(bytes[i]);
  asm volatile("" : : "r"(sum));  // somebody wants it
}
