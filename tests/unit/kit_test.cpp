// What models have in common (fabric/kit): heaps and chains in an arena, also one that somebody has written into.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "fabric/kit/chain.hpp"
#include "fabric/kit/heap.hpp"

using namespace ulfm::fabric;

TEST_CASE("an indexed heap has the least key of all owners first", "[kit]") {
  constexpr std::uint32_t kOwners = 100;
  std::vector<HeapItem> items(kOwners);
  std::uint32_t size = 0;
  const IndexedHeap heap(items.data(), kOwners, size);
  heap.clear();
  std::map<std::uint32_t, std::uint64_t> keys;  // what ought to be in it
  std::mt19937 random(7);
  for (int turn = 0; turn < 20000; ++turn) {
    const std::uint32_t owner = random() % kOwners;
    if (random() % 3 == 0) {
      REQUIRE(heap.remove(owner));
      keys.erase(owner);
    } else {
      const std::uint64_t key = random() % 50;
      REQUIRE(heap.put(owner, key));
      keys[owner] = key;
    }
    REQUIRE(size == keys.size());
    REQUIRE(heap.empty() == keys.empty());
    REQUIRE(heap.has(owner) == (keys.count(owner) != 0));
    if (keys.empty()) continue;
    const auto least =
        std::min_element(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    REQUIRE(heap.least_key() == least->second);
    REQUIRE(keys.at(heap.first_owner()) == least->second);
  }
  CHECK_FALSE(heap.put(kOwners, 1));
  CHECK_FALSE(heap.remove(kOwners));
}

TEST_CASE("a heap that somebody has written into is not left", "[kit]") {
  constexpr std::uint32_t kOwners = 16;
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    // Items on both sides that nobody may touch.
    std::vector<HeapItem> memory(3 * kOwners, HeapItem{7, 7, 7});
    std::uint32_t size = 0;
    const IndexedHeap heap(memory.data() + kOwners, kOwners, size);
    heap.clear();
    for (std::uint32_t owner = 0; owner < kOwners; owner += 2) REQUIRE(heap.put(owner, random() % 10));
    memory[kOwners + random() % kOwners] = {random(), static_cast<std::uint32_t>(random()),
                                            static_cast<std::uint32_t>(random())};
    if (round % 3 == 0) size = static_cast<std::uint32_t>(random());
    bool sound = true;
    for (int turn = 0; turn < 50; ++turn) {
      const auto owner = static_cast<std::uint32_t>(random() % (2 * kOwners));
      sound = (random() % 2 == 0 ? heap.put(owner, random() % 10) : heap.remove(owner)) && sound;
    }
    CHECK_FALSE(sound);  // owners from kOwners on are none
    for (std::uint32_t i = 0; i < kOwners; ++i) {
      const HeapItem &before = memory[i], &behind = memory[2 * kOwners + i];
      REQUIRE((before.key == 7 && before.owner == 7 && before.place == 7));
      REQUIRE((behind.key == 7 && behind.owner == 7 && behind.place == 7));
    }
  }
}

TEST_CASE("a heap without owners hands out what was put in, in order", "[kit]") {
  std::vector<int> heap;
  const auto get = [&](std::uint32_t i) { return heap[i]; };
  const auto put = [&](std::uint32_t i, int item) { heap[i] = item; };
  std::multiset<int> in;
  std::mt19937 random(3);
  for (int turn = 0; turn < 5000; ++turn) {
    if (heap.empty() || random() % 2 == 0) {
      const int item = static_cast<int>(random() % 100);
      heap.push_back(item);
      const auto size = static_cast<std::uint32_t>(heap.size());
      fill_hole(size, size - 1, item, get, put, std::less<>());
      in.insert(item);
    } else {
      REQUIRE(heap.front() == *in.begin());
      in.erase(in.begin());
      const int last = heap.back();
      heap.pop_back();
      if (!heap.empty()) fill_hole(static_cast<std::uint32_t>(heap.size()), 0, last, get, put, std::less<>());
    }
  }
}

TEST_CASE("a chain hands out what came, in that order", "[kit]") {
  std::vector<std::uint32_t> behind(10);
  const auto next = [&](std::uint32_t i) -> std::uint32_t& { return behind[i]; };
  Chain chain;
  chain.clear();
  CHECK(chain.empty());
  for (const std::uint32_t number : {4u, 2u, 9u}) chain.append(number, next);
  CHECK(chain.take(next) == 4);
  chain.append(4, next);
  for (const std::uint32_t number : {2u, 9u, 4u}) {
    REQUIRE_FALSE(chain.empty());
    CHECK(chain.take(next) == number);
  }
  CHECK(chain.empty());
  CHECK(chain.first == Chain::kEnd);
}
