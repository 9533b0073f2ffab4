// Property tests: a body that draws numbers, run with many sequences. RapidCheck makes the sequences and
// shrinks one that fails; without it a fixed generator does, so that no property goes unchecked.
#pragma once

#include <catch2/catch.hpp>

#ifdef ULFM_HAVE_RAPIDCHECK
#include <rapidcheck/catch.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

/// The numbers of one run. When they are used up every number is 0 and more() is false.
class Draw {
 public:
  explicit Draw(const std::vector<std::uint32_t>& numbers) : numbers_(numbers) {}
  bool more() const { return at_ < numbers_.size(); }
  std::uint32_t any() { return more() ? numbers_[at_++] : 0; }
  /// 0 .. n - 1
  std::uint32_t below(std::uint32_t n) { return any() % n; }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

 private:
  const std::vector<std::uint32_t>& numbers_;
  std::size_t at_ = 0;
};

/// Inside a property: ends the run with that sentence.
inline void must(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

/// Runs `body(Draw&)` with a hundred sequences of up to `scale` times a hundred numbers.
template <typename Body>
void property(const std::string& name, Body body, double scale = 5) {
#ifdef ULFM_HAVE_RAPIDCHECK
  rc::prop(name, [&] {
    const auto numbers = *rc::gen::scale(scale, rc::gen::arbitrary<std::vector<std::uint32_t>>());
    Draw draw(numbers);
    body(draw);
  });
#else
  INFO(name);
  std::uint64_t state = 88172645463325252ull;
  for (int run = 0; run < 100; ++run) {
    std::vector<std::uint32_t> numbers(static_cast<std::size_t>(scale * run));
    for (std::uint32_t& n : numbers) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      n = static_cast<std::uint32_t>(state >> 20);
    }
    Draw draw(numbers);
    REQUIRE_NOTHROW(body(draw));
  }
#endif
}

}  // namespace test
