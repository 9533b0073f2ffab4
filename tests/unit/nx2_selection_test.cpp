// Which types a typesel of NX/2 selects, and its message ids.
#include <catch2/catch.hpp>

#include <set>

#include "../../nx2compat/src/list.hpp"
#include "../../nx2compat/src/message_ids.hpp"
#include "../../nx2compat/src/selection.hpp"
#include "property.hpp"

using namespace nx2;

namespace {
constexpr std::int32_t mask(std::initializer_list<int> bits) {
  std::uint32_t value = 0x80000000u;
  for (const int bit : bits) value |= 1u << bit;
  return static_cast<std::int32_t>(value);
}
}  // namespace

TEST_CASE("a typesel selects a type, all types, or a set", "[nx2]") {
  CHECK(selects_type(7, 7));
  CHECK_FALSE(selects_type(7, 8));
  for (const std::int32_t type : {0, 30, kLastUserType, kFirstForceType, kLastForceType})
    CHECK(selects_type(kAny, type));
  CHECK(selects_type(mask({0, 29}), 0));
  CHECK(selects_type(mask({0, 29}), 29));
  CHECK_FALSE(selects_type(mask({0, 29}), 1));
  CHECK_FALSE(selects_type(mask({0, 29}), 30));
  CHECK(selects_type(mask({30}), 30));
  CHECK(selects_type(mask({30}), kLastUserType));
  CHECK_FALSE(selects_type(mask({30}), 29));
  CHECK_FALSE(selects_type(mask({30}), kFirstForceType));
}

TEST_CASE("messages of global operations are selected by their type only", "[nx2]") {
  for (const std::int32_t typesel : {kAny, mask({30}), mask({0, 1, 2})})
    CHECK_FALSE(selects_type(typesel, kFirstSystemType));
  CHECK(selects_type(kFirstSystemType, kFirstSystemType));
  CHECK_FALSE(is_user_type(kFirstSystemType));
}

TEST_CASE("types that may be sent", "[nx2]") {
  for (const std::int32_t type : {0, kLastUserType, kFirstForceType, kLastForceType}) CHECK(is_user_type(type));
  for (const std::int32_t type : {-1, kLastUserType + 1, kFirstForceType - 1, kLastForceType + 1})
    CHECK_FALSE(is_user_type(type));
}

TEST_CASE("node and process type select too", "[nx2]") {
  const Selector selector{5, 3, 0};
  CHECK(selector.selects(5, 3, 0));
  CHECK_FALSE(selector.selects(5, 2, 0));
  CHECK_FALSE(selector.selects(5, 3, 1));
  CHECK(Selector{}.selects(5, 2, 9));
}

TEST_CASE("message ids are positive, limited, and not reused at once", "[nx2]") {
  MessageIds ids;
  Request* first = ids.take();
  REQUIRE(first != nullptr);
  CHECK(first->id > 0);
  CHECK(ids.find(first->id) == first);
  const std::int32_t id = first->id;
  ids.release(*first);
  CHECK(ids.find(id) == nullptr);
  CHECK(ids.take()->id != id);
  std::set<std::int32_t> seen;
  while (Request* request = ids.take()) seen.insert(request->id);
  CHECK(seen.size() == MessageIds::kMost - 1);
  CHECK(ids.find(0) == nullptr);
  CHECK(ids.find(-1) == nullptr);
  CHECK(ids.find(MessageIds::kMost + 1) == nullptr);
}

TEST_CASE("an id that was merged into another is not the program's any more", "[nx2]") {
  MessageIds ids;
  Request* request = ids.take();
  ids.take_name(*request);
  CHECK(ids.find(request->id) == nullptr);
  ids.release(*request);
}

TEST_CASE("a list keeps order, and elements leave from anywhere", "[nx2]") {
  struct Number : Link {
    int value = 0;
  };
  Number numbers[5];
  List<Number> list;
  for (int i = 0; i < 5; ++i) {
    numbers[i].value = i;
    if (i != 2) list.push_back(numbers[i]);
  }
  list.push_before(numbers[2], &numbers[3]);
  numbers[0].unlink();
  numbers[4].unlink();
  CHECK_FALSE(numbers[0].linked());
  std::vector<int> values;
  for (Number* n = list.first(); n != nullptr; n = list.next(*n)) values.push_back(n->value);
  CHECK(values == std::vector<int>{1, 2, 3});
  for (Number& n : numbers) n.unlink();
  CHECK(list.empty());
}
