// Messages that leave from where they lie: what ulfm_send_pieces() sends, and when it leaves it to compose and post.
#include <catch2/catch.hpp>

#include <ulfm/pieces.h>
#include <ulfm/ulfm.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "environment.hpp"

namespace {

struct Alone {
  explicit Alone(std::uint32_t depth = 0) {
    REQUIRE(ulfm_job_alone(&job) == ULFM_OK);
    const ulfm_port_options options{5, 0, depth};
    REQUIRE(ulfm_port_open(job, &options, &port) == ULFM_OK);
    REQUIRE(ulfm_job_address(job, 0, 5, &self) == ULFM_OK);
  }
  ~Alone() { ulfm_job_leave(job); }
  int send(const std::vector<std::string>& pieces) {
    std::vector<iovec> all;
    for (const std::string& one : pieces) all.push_back({const_cast<char*>(one.data()), one.size()});
    return ulfm_send_pieces(port, self, all.data(), static_cast<int>(all.size()));
  }
  int post(const std::string& text) {
    void* buffer = nullptr;
    if (const int code = ulfm_compose(port, text.size(), &buffer); code < 0) return code;
    std::memcpy(buffer, text.data(), text.size());
    return ulfm_post(port, self);
  }
  std::string take() {
    ulfm_message message;
    REQUIRE(ulfm_wait(port, 60'000'000'000, &message) == 1);
    std::string text(static_cast<const char*>(message.bytes), message.size);
    REQUIRE(ulfm_release(port, &message) == ULFM_OK);
    return text;
  }
  ulfm_job job = 0;
  ulfm_port port = 0;
  ulfm_address self{};
};

}  // namespace

TEST_CASE("pieces make one message", "[pieces]") {
  test::Environment environment;
  Alone alone;
  for (const std::size_t size : {0u, 1u, 24u, 40u, 41u, 64u, 100u, 1000u}) {
    const std::string head = "head", tail(size, 'x');
    REQUIRE(alone.send({head, tail}) == 1);
    CHECK(alone.take() == head + tail);
    REQUIRE(alone.send({tail}) == 1);
    CHECK(alone.take() == tail);
  }
}

TEST_CASE("what fits no frame, or comes while one composes, is left to compose and post", "[pieces]") {
  test::Environment environment;
  Alone alone;
  const std::string much(1'000'000, 'y');
  CHECK(alone.send({"head", much}) == 0);
  REQUIRE(alone.post("head" + much) == ULFM_OK);
  CHECK(alone.take() == "head" + much);
  void* buffer = nullptr;
  REQUIRE(ulfm_compose(alone.port, 4, &buffer) == ULFM_OK);
  CHECK(alone.send({"a"}) == 0);
  CHECK(ulfm_discard(alone.port) == ULFM_OK);
  CHECK(alone.send({"a"}) == 1);
  CHECK(alone.take() == "a");
  CHECK(ulfm_send_pieces(alone.port, alone.self, nullptr, 0) == 0);
  CHECK(ulfm_send_pieces(alone.port + 1, alone.self, nullptr, 0) < 0);
}

TEST_CASE("pieces do not overtake what was posted before them", "[pieces]") {
  test::Environment environment;
  Alone alone;
  std::vector<std::string> sent, taken;
  const std::string body(900, 'z');
  // Without a receiver the ring and then the send buffers fill; whatever the way, the order is that of the calls.
  for (int i = 0; i < 5000; ++i) {
    const std::string text = std::to_string(i) + body;
    if (alone.send({std::to_string(i), body}) == 1 || alone.post(text) == ULFM_OK) sent.push_back(text);
    else break;
  }
  REQUIRE(sent.size() > 32);
  for (std::size_t i = 0; i < sent.size(); ++i) taken.push_back(alone.take());
  CHECK(taken == sent);
}
