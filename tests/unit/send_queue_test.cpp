#include "port/send_queue.hpp"

#include <deque>
#include <map>
#include <thread>

#include "property.hpp"

using namespace ulfm;

TEST_CASE("the send queue keeps order and knows its bounds", "[send_queue]") {
  SendQueue queue(4);
  std::uint16_t port = 99;
  CHECK(queue.empty());
  CHECK_FALSE(queue.pop(port));
  CHECK(port == 99);
  for (std::uint16_t i = 0; i < 4; ++i) CHECK(queue.push(i));
  CHECK_FALSE(queue.push(4));
  CHECK_FALSE(queue.empty());
  for (std::uint16_t i = 0; i < 4; ++i) {
    CHECK(queue.pop(port));
    CHECK(port == i);
  }
  CHECK(queue.empty());
  CHECK(queue.push(63));
  CHECK(queue.pop(port));
  CHECK(port == 63);
}

TEST_CASE("a capacity that is no power of two is rounded up", "[send_queue]") {
  SendQueue queue(5);
  for (std::uint16_t i = 0; i < 8; ++i) CHECK(queue.push(i));
  CHECK_FALSE(queue.push(8));
}

TEST_CASE("the send queue behaves as a bounded deque", "[send_queue]") {
  test::property("push and pop against a deque", [](test::Draw& draw) {
    SendQueue queue(8);
    std::deque<std::uint16_t> model;
    while (draw.more()) {
      const auto number = static_cast<std::uint16_t>(draw.below(64));
      if (draw.below(2) == 0) {
        test::must(queue.push(number) == (model.size() < 8), "full at the wrong time");
        if (model.size() < 8) model.push_back(number);
      } else {
        std::uint16_t got = 0;
        test::must(queue.pop(got) == !model.empty(), "empty at the wrong time");
        if (!model.empty()) {
          test::must(got == model.front(), "out of order");
          model.pop_front();
        }
      }
      test::must(queue.empty() == model.empty(), "empty() is wrong");
    }
  });
}

TEST_CASE("numbers pushed by several threads all come out, each thread's in order", "[send_queue]") {
  constexpr std::uint16_t kEach = 5000;
  SendQueue queue(64);
  // The upper bits say which thread, the lower ones count.
  const auto produce = [&](std::uint16_t who) {
    for (std::uint16_t i = 0; i < kEach; ++i)
      while (!queue.push(static_cast<std::uint16_t>(who << 13 | i))) std::this_thread::yield();
  };
  std::vector<std::thread> threads;
  for (std::uint16_t t = 0; t < 3; ++t) threads.emplace_back(produce, t);
  std::map<int, int> next;
  for (int taken = 0; taken < 3 * kEach;) {
    std::uint16_t port = 0;
    if (!queue.pop(port)) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    if (next[port >> 13]++ != (port & 0x1fff)) FAIL("thread " << (port >> 13) << " out of order");
  }
  for (std::thread& t : threads) t.join();
  CHECK(queue.empty());
}
