#include "port/message_cache.hpp"

#include <deque>

#include "pattern.hpp"
#include "property.hpp"

using namespace ulfm;

namespace {
PortAddress from(std::uint32_t process) { return {process, 1}; }
}  // namespace

TEST_CASE("the message cache keeps order, contents and sources", "[message_cache]") {
  MessageCache cache;
  CHECK(cache.empty());
  CHECK(cache.add(test::pattern_bytes(1, 100), from(7)));
  CHECK(cache.add({}, from(8)));
  CHECK(cache.add(test::pattern_bytes(2, 5000), from(9)));
  CHECK(cache.bytes() == 5100);
  const CachedMessage first = cache.take();
  CHECK(first.source.key() == from(7).key());
  CHECK(test::matches({first.bytes.get(), first.size}, 1));
  CHECK(cache.take().size == 0);
  const CachedMessage third = cache.take();
  CHECK(third.size == 5000);
  CHECK(test::matches({third.bytes.get(), third.size}, 2));
  CHECK(cache.empty());
  CHECK(cache.bytes() == 0);
}

TEST_CASE("a full message cache takes nothing", "[message_cache]") {
  MessageCache cache(1000);
  CHECK(cache.add(test::pattern_bytes(1, 600), from(0)));
  CHECK(cache.has_room(400));
  CHECK_FALSE(cache.has_room(401));
  CHECK_FALSE(cache.add(test::pattern_bytes(2, 401), from(0)));
  CHECK(cache.bytes() == 600);
  CHECK(cache.add(test::pattern_bytes(2, 400), from(0)));
  CHECK_FALSE(cache.add(test::pattern_bytes(2, 1), from(0)));
  cache.take();
  CHECK(cache.add(test::pattern_bytes(3, 600), from(0)));
}

TEST_CASE("a message above the limit goes into an empty cache, or nobody could take it", "[message_cache]") {
  MessageCache cache(1000);
  CHECK(cache.add(test::pattern_bytes(1, 5000), from(0)));
  CHECK_FALSE(cache.add(test::pattern_bytes(1, 1), from(0)));
  CHECK(cache.take().size == 5000);
  CHECK(cache.bytes() == 0);
}

TEST_CASE("the message cache behaves as a bounded deque of messages", "[message_cache]") {
  test::property("add and take against a deque", [](test::Draw& draw) {
    const std::size_t limit = draw.below(3) * 2000;
    MessageCache cache(limit);
    struct Model {
      std::uint32_t seed;
      std::size_t size;
    };
    std::deque<Model> model;
    std::size_t held = 0;
    while (draw.more()) {
      if (draw.below(3) != 0) {
        const std::uint32_t seed = draw.any();
        const std::size_t size = draw.below(1500);
        const bool room = limit == 0 || model.empty() || held + size <= limit;
        test::must(cache.has_room(size) == room, "has_room() is wrong");
        test::must(cache.add(test::pattern_bytes(seed, size), from(seed)) == room, "add() is wrong");
        if (room) {
          model.push_back({seed, size});
          held += size;
        }
      } else if (!model.empty()) {
        const CachedMessage got = cache.take();
        const Model want = model.front();
        model.pop_front();
        held -= want.size;
        test::must(got.source.process == want.seed && got.size == want.size, "out of order");
        test::must(test::matches({got.bytes.get(), got.size}, want.seed), "contents differ");
      }
      test::must(cache.empty() == model.empty() && cache.bytes() == held, "the books are wrong");
    }
  });
}
