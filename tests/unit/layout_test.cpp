#include "transport/direct/layout.hpp"

#include "property.hpp"
#include "proto/framing.hpp"

using namespace ulfm;
using namespace ulfm::direct;

namespace {

bool same(const DirectCard& a, const DirectCard& b) {
  return a.host == b.host && a.token == b.token && a.started == b.started && a.pid == b.pid && a.fd == b.fd;
}

}  // namespace

TEST_CASE("a card survives its text", "[card]") {
  const DirectCard card{0x0123456789abcdef, 1, 42, 4711, 3};
  const auto back = decode(encode(card));
  REQUIRE(back);
  CHECK(same(*back, card));
  CHECK(encode(card).size() < 100);
  CHECK(encode(card).find_first_of(" \n=") == std::string::npos);
}

TEST_CASE("any card survives its text", "[card]") {
  test::property("encode and decode", [](test::Draw& draw) {
    const auto wide = [&] { return std::uint64_t{draw.any()} << 32 | draw.any(); };
    const DirectCard card{wide(), wide(), wide(), 1 + static_cast<std::int32_t>(draw.any() >> 2),
                          static_cast<std::int32_t>(draw.any() >> 1)};
    const std::string text = encode(card);
    test::must(text.size() < 100, "a card is below 100 bytes");
    const auto back = decode(text);
    test::must(back && same(*back, card), text);
  });
}

TEST_CASE("what is no card is refused", "[card]") {
  const std::string good = encode(DirectCard{1, 2, 3, 4, 5});
  for (const std::string& bad :
       {std::string(), std::string("direct:"), std::string("ofi:0000"), good + " ", good + "x", good + '\0',
        good.substr(0, good.size() - 1), good.substr(1), std::string(10000, '0'), "direct:" + std::string(200, 'f'),
        std::string("direct:00000000000000010000000000000002.3.4.5"), encode(DirectCard{1, 2, 3, 0, 5}),
        encode(DirectCard{1, 2, 3, -4, 5}), encode(DirectCard{1, 2, 3, 4, -1})}) {
    INFO(bad);
    const auto card = decode(bad);
    REQUIRE_FALSE(card);
    CHECK(card.error().code == Errc::protocol);
    CHECK(card.error().what.size() < 150);
  }
}

TEST_CASE("one card has one text", "[card]") {
  // Two texts for one process would be two processes for the port table.
  const std::string good = encode(DirectCard{1, 2, 3, 4, 5});
  std::string blank = good;
  blank.replace(7, 2, " 0");
  CHECK_FALSE(decode(blank));
  std::string hex = good;
  hex.replace(7, 2, "0x");
  CHECK_FALSE(decode(hex));
  std::string sign = good;
  sign.replace(sign.rfind('.') + 1, 1, "+5");
  CHECK_FALSE(decode(sign));
}

TEST_CASE("garbage is a card that survives its text, or an error", "[card]") {
  test::property("a changed card", [](test::Draw& draw) {
    std::string text = encode(DirectCard{draw.any(), draw.any(), draw.any(), 1, 1});
    for (int i = 0; i < 3 && draw.more(); ++i)
      text[draw.below(static_cast<std::uint32_t>(text.size()))] = static_cast<char>(draw.any());
    if (const auto card = decode(text)) {
      const auto again = decode(encode(*card));
      test::must(again && same(*again, *card), text);
      test::must(card->pid > 0 && card->fd >= 0, text);
    }
  });
}

namespace {

void check_layout(const PortGeometry& g) {
  const Layout at(g);
  test::must(at.slots >= sizeof(PortHeader), "header");
  test::must(at.controls >= at.slots + std::size_t{g.depth} * g.slot_bytes, "slots overlap controls");
  test::must(at.peers >= at.controls + std::size_t{g.lanes} * sizeof(LaneControl), "controls overlap peers");
  test::must(at.lanes >= at.peers + std::size_t{g.peers} * sizeof(PeerRecord), "peers overlap lanes");
  test::must(at.lane_size >= std::size_t{g.lane_cells} * sizeof(Cell) + g.lane_bytes, "lane");
  test::must(at.end == at.lanes + std::size_t{g.lanes} * at.lane_size, "end");
  for (const std::size_t offset : {at.peers, at.slots, at.controls, at.lanes, at.lane_size})
    test::must(offset % kPage == 0, "each part begins with a page");
  test::must(at.end < std::size_t{1} << 40, "no sum overflows");
}

}  // namespace

TEST_CASE("whatever sizes are asked for, a port's geometry is sane", "[layout]") {
  test::property("normalised", [](test::Draw& draw) {
    PortGeometry g;
    g.depth = draw.below(65537);
    g.slot_bytes = draw.below(1 << 20) + 1;
    g.lanes = draw.below(4097);
    g.lane_cells = draw.below(65537);
    g.lane_bytes = draw.below((1 << 26) + 1);
    g.max_frame = draw.below(1 << 22);
    g.peers = draw.below(65537);
    g = normalised(g);
    test::must(is_sane(g), "a geometry of our own is not sane");
    check_layout(g);
    const OpenMemory ring{nullptr, nullptr, g.depth, g.slot_bytes};
    test::must(ring.room(kMessageHeader) <= g.max_frame, "a frame cut for a slot must fit a lane");
    // The contract: a header of up to 255 bytes.
    test::must(body_bytes(255, 0) <= g.slot_bytes - sizeof(Cell), "no room for a header of 255 bytes");
    test::must(ring.room(255) < g.slot_bytes, "room() underflows");
  });
}

TEST_CASE("a geometry read from another process is believed only when it is sane", "[layout]") {
  const PortGeometry good = normalised(PortGeometry{});
  REQUIRE(is_sane(good));
  const auto with = [&](auto change) {
    PortGeometry g = good;
    change(g);
    return is_sane(g);
  };
  CHECK_FALSE(with([](auto& g) { g.depth = 0; }));
  CHECK_FALSE(with([](auto& g) { g.depth = 3; }));
  CHECK_FALSE(with([](auto& g) { g.depth = 1u << 31; }));
  CHECK_FALSE(with([](auto& g) { g.slot_bytes = 0; }));
  CHECK_FALSE(with([](auto& g) { g.slot_bytes = 64; }));
  CHECK_FALSE(with([](auto& g) { g.slot_bytes = 128; }));  // not even a header
  CHECK_FALSE(with([](auto& g) { g.slot_bytes = 1000; }));
  CHECK_FALSE(with([](auto& g) { g.slot_bytes = 0xffffffc0; }));
  CHECK_FALSE(with([](auto& g) { g.lane_cells = 0; }));
  CHECK_FALSE(with([](auto& g) { g.lane_cells = 100; }));
  CHECK_FALSE(with([](auto& g) { g.lane_bytes = 3 << 16; }));
  CHECK_FALSE(with([](auto& g) { g.lane_bytes = 1u << 31; }));
  CHECK_FALSE(with([](auto& g) { g.lanes = 1u << 20; }));
  CHECK_FALSE(with([](auto& g) { g.max_frame = g.lane_bytes; }));
  CHECK_FALSE(with([](auto& g) { g.max_frame = 0; }));  // a sender would never end
  CHECK_FALSE(with([](auto& g) { g.peers = 0; }));
  CHECK_FALSE(with([](auto& g) { g.peers = 1u << 30; }));
  test::property("is_sane", [](test::Draw& draw) {
    PortGeometry g;
    const auto number = [&] { return draw.one_in(2) ? 1u << draw.below(32) : draw.any(); };
    g = {number(), number(), number(), number(), number(), number(), number(), number()};
    if (is_sane(g)) check_layout(g);
  });
}
