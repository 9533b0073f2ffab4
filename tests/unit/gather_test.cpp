#include "base/gather.hpp"

#include <deque>

#include "property.hpp"

using namespace ulfm;

namespace {

// Pieces of 0 to 69 bytes, counted through; `whole` is what they make.
std::deque<std::vector<std::byte>> draw_pieces(test::Draw& draw, std::vector<std::byte>& whole) {
  std::deque<std::vector<std::byte>> pieces;
  for (std::uint32_t n = draw.below(12); n != 0; --n) {
    pieces.emplace_back(draw.one_in(4) ? 0 : draw.below(70));
    for (std::byte& b : pieces.back()) whole.push_back(b = static_cast<std::byte>(whole.size()));
  }
  return pieces;
}

}  // namespace

TEST_CASE("however a message lies in pieces and is taken, its bytes come in order", "[gather]") {
  test::property("steps of any length over pieces of any length", [](test::Draw& draw) {
    std::vector<std::byte> whole, taken;
    const auto parts = draw_pieces(draw, whole);
    std::vector<iovec> pieces;
    for (const auto& part : parts) pieces.push_back({const_cast<std::byte*>(part.data()), part.size()});
    Gather gather(pieces);
    while (taken.size() < whole.size()) {
      const std::size_t left = whole.size() - taken.size();
      const std::size_t n = draw.more() ? std::min<std::size_t>(draw.below(90), left) : left;
      test::must(gather.remaining() == left, "as much remains as was not taken");
      taken.resize(taken.size() + n);
      gather.copy(taken.data() + taken.size() - n, n);
    }
    test::must(taken == whole, "the bytes are the message's");
    test::must(gather.remaining() == 0, "nothing remains");
  });
}

TEST_CASE("what a message's owner writes is asked for once, in order and as long as the steps", "[gather]") {
  test::property("steps of any length", [](test::Draw& draw) {
    struct Message {
      std::size_t written = 0;
      std::vector<std::size_t> steps;
    } message;
    std::vector<std::byte> taken(draw.below(500));
    Gather gather(
        [](void* to_write, void* to, std::size_t n) {
          Message& m = *static_cast<Message*>(to_write);
          for (std::size_t i = 0; i < n; ++i) static_cast<std::byte*>(to)[i] = static_cast<std::byte>(m.written++);
          m.steps.push_back(n);
        },
        &message, taken.size());
    std::vector<std::size_t> steps;
    for (std::size_t at = 0; at < taken.size();) {
      const std::size_t left = taken.size() - at, n = std::min<std::size_t>(1 + draw.below(90), left);
      test::must(gather.remaining() == left, "as much remains as was not taken");
      test::must(!gather.in_one_piece(n), "it does not lie anywhere");
      gather.copy(taken.data() + at, n);
      steps.push_back(n);
      at += n;
    }
    test::must(message.steps == steps, "each step asked for its bytes");
    for (std::size_t i = 0; i < taken.size(); ++i) test::must(taken[i] == static_cast<std::byte>(i), "in order");
    test::must(gather.remaining() == 0, "nothing remains");
  });
}
