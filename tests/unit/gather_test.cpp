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
