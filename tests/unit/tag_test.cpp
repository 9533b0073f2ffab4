#include "port/tag.hpp"

#include "property.hpp"

using namespace ulfm;

TEST_CASE("a tag changes state as figure 5 of the paper says", "[tag]") {
  Tag tag;
  CHECK_FALSE(tag.valid());
  CHECK(tag.set());
  CHECK(tag.valid());
  CHECK(tag.clear());
  CHECK_FALSE(tag.valid());
}

TEST_CASE("a buffer with valid data is not overwritten, a free one not freed again", "[tag]") {
  Tag tag;
  CHECK_FALSE(tag.clear());
  CHECK(tag.set());
  CHECK_FALSE(tag.set());
  CHECK(tag.valid());
  CHECK(tag.clear());
  CHECK_FALSE(tag.clear());
  CHECK_FALSE(tag.valid());
}

TEST_CASE("a tag is one bit whatever the order of operations", "[tag]") {
  test::property("set and clear against a boolean", [](test::Draw& draw) {
    Tag tag;
    bool model = false;
    while (draw.more()) {
      const bool set = draw.below(2) == 0;
      const bool changed = set ? tag.set() : tag.clear();
      test::must(changed == (model != set), "an operation that changes nothing must say so");
      model = set;
      test::must(tag.valid() == model, "valid() differs from the model");
    }
  });
}
