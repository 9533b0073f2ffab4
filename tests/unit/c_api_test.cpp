#include <ulfm/interrupt.h>
#include <ulfm/ulfm.h>

#include <string>
#include <vector>

#include "environment.hpp"
#include "pattern.hpp"
#include "property.hpp"

namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

/// A job alone with two ports; leaves when it dies.
struct Pair {
  explicit Pair(std::uint32_t depth = 8, std::uint32_t slot = 0) {
    REQUIRE(ulfm_job_alone(&job) == ULFM_OK);
    const ulfm_port_options options{ULFM_ANY_PORT, slot, depth};
    REQUIRE(ulfm_port_open(job, &options, &a) == ULFM_OK);
    REQUIRE(ulfm_port_open(job, &options, &b) == ULFM_OK);
    REQUIRE(ulfm_job_address(job, 0, static_cast<std::uint16_t>(ulfm_port_number(b)), &to_b) == ULFM_OK);
  }
  ~Pair() { ulfm_job_leave(job); }

  int send(std::uint32_t seed, std::size_t size) {
    void* buffer = nullptr;
    if (const int rc = ulfm_compose(a, size, &buffer); rc < 0) return rc;
    test::fill({static_cast<std::byte*>(buffer), size}, seed);
    return ulfm_post(a, to_b);
  }

  test::Environment environment;
  ulfm_job job = 0;
  ulfm_port a = 0, b = 0;
  ulfm_address to_b{};
};

bool matches(const ulfm_message& m, std::uint32_t seed) {
  return test::matches({static_cast<const std::byte*>(m.bytes), m.size}, seed);
}
std::string error() { return ulfm_last_error(); }

}  // namespace

TEST_CASE("C: names and texts", "[c_api]") {
  CHECK_FALSE(std::string(ulfm_version()).empty());
  CHECK(std::string(ulfm_error_name(0)) == "ok");
  CHECK(std::string(ulfm_error_name(ULFM_ERR_PEER_FAILED)) == "peer_failed");
  CHECK(std::string(ulfm_error_name(ULFM_ERR_SYSTEM)) == "system");
  CHECK(std::string(ulfm_error_name(-1000)) == "unknown");
  CHECK(ulfm_transport_count() >= 1);
  CHECK(ulfm_transport_name(-1) == nullptr);
  CHECK(ulfm_transport_name(ulfm_transport_count()) == nullptr);
  CHECK_FALSE(std::string(ulfm_transport_unavailable(-1)).empty());
  CHECK(std::string(ulfm_transport_name(0)) == "direct");
  CHECK(std::string(ulfm_transport_unavailable(0)).empty());
}

TEST_CASE("C: a message is composed in place and read in place", "[c_api]") {
  Pair p;
  REQUIRE(p.send(1, 100) == ULFM_OK);
  ulfm_message m;
  REQUIRE(ulfm_wait(p.b, kMinute, &m) == 1);
  CHECK(m.size == 100);
  CHECK(matches(m, 1));
  CHECK(m.source.port == ulfm_port_number(p.a));
  CHECK(ulfm_release(p.b, &m) == ULFM_OK);
  CHECK(ulfm_poll(p.b, &m) == 0);

  // The source is an address to answer to.
  void* buffer = nullptr;
  REQUIRE(ulfm_compose(p.b, 0, &buffer) == ULFM_OK);
  REQUIRE(ulfm_post(p.b, m.source) == ULFM_OK);
  REQUIRE(ulfm_wait(p.a, kMinute, &m) == 1);
  CHECK(m.size == 0);
  CHECK(m.source.port == ulfm_port_number(p.b));
}

TEST_CASE("C: handles that are not valid are stale", "[c_api]") {
  ulfm_message m{};
  ulfm_address address{};
  void* buffer = nullptr;
  char text[8];
  int which = 0;
  const auto all_stale = [&](ulfm_port port) {
    CHECK(ulfm_port_number(port) == ULFM_ERR_STALE);
    CHECK(ulfm_compose(port, 1, &buffer) == ULFM_ERR_STALE);
    CHECK(ulfm_post(port, address) == ULFM_ERR_STALE);
    CHECK(ulfm_discard(port) == ULFM_ERR_STALE);
    CHECK(ulfm_poll(port, &m) == ULFM_ERR_STALE);
    CHECK(ulfm_wait(port, 0, &m) == ULFM_ERR_STALE);
    CHECK(ulfm_wait_any(&port, 1, 0, &which, &m) == ULFM_ERR_STALE);
    CHECK(ulfm_release(port, &m) == ULFM_ERR_STALE);
    CHECK(ulfm_flush(port, 0) == ULFM_ERR_STALE);
    CHECK(ulfm_port_close(port) == ULFM_ERR_STALE);
    CHECK(error().find("handle is not valid") != std::string::npos);
  };
  for (const ulfm_port port : {ulfm_port{0}, ulfm_port{1}, ~ulfm_port{0}, ulfm_port{0x100000001}}) all_stale(port);
  for (const ulfm_job job : {ulfm_job{0}, ulfm_job{1} << 40, ~ulfm_job{0}, ulfm_job{65}}) {
    CHECK(ulfm_job_rank(job) == ULFM_ERR_STALE);
    CHECK(ulfm_job_size(job) == ULFM_ERR_STALE);
    CHECK(ulfm_job_barrier(job) == ULFM_ERR_STALE);
    CHECK(ulfm_job_put(job, "k", "v") == ULFM_ERR_STALE);
    CHECK(ulfm_job_get(job, "k", text, sizeof text) == ULFM_ERR_STALE);
    CHECK(ulfm_job_card(job, text, sizeof text) == ULFM_ERR_STALE);
    CHECK(ulfm_job_address(job, 0, 0, &address) == ULFM_ERR_STALE);
    CHECK(ulfm_job_address_of_card(job, "x", 0, &address) == ULFM_ERR_STALE);
    ulfm_port port = 0;
    CHECK(ulfm_port_open(job, nullptr, &port) == ULFM_ERR_STALE);
    CHECK(ulfm_job_leave(job) == ULFM_ERR_STALE);
  }

  ulfm_port closed = 0, orphan = 0;
  ulfm_job left = 0;
  {
    Pair p;
    closed = p.a;
    orphan = p.b;
    left = p.job;
    CHECK(ulfm_port_close(p.a) == ULFM_OK);
    all_stale(closed);
    // The same number again is another port.
    const ulfm_port_options options{0, 0, 0};
    ulfm_port again = 0;
    REQUIRE(ulfm_port_open(p.job, &options, &again) == ULFM_OK);
    CHECK(again != closed);
    all_stale(closed);
    CHECK(ulfm_port_number(again) == 0);
  }
  all_stale(orphan);
  CHECK(ulfm_job_leave(left) == ULFM_ERR_STALE);
}

TEST_CASE("C: random handles are never a crash", "[c_api]") {
  Pair p;
  test::property("handles near real ones", [&](test::Draw& draw) {
    while (draw.more()) {
      const ulfm_port port =
          p.b ^ (ulfm_port{1} << draw.below(64)) ^ (draw.one_in(2) ? ulfm_port{draw.any()} << 16 : 0);
      if (port == p.b || port == p.a) continue;
      test::must(ulfm_port_number(port) == ULFM_ERR_STALE, "port " + std::to_string(port));
      const ulfm_job job = p.job ^ (ulfm_job{1} << draw.below(64));
      test::must(ulfm_job_rank(job) == ULFM_ERR_STALE, "job " + std::to_string(job));
    }
  });
}

TEST_CASE("C: a port number is opened once", "[c_api]") {
  Pair p;
  ulfm_port port = 0;
  ulfm_port_options options{static_cast<std::uint16_t>(ulfm_port_number(p.a)), 0, 0};
  CHECK(ulfm_port_open(p.job, &options, &port) == ULFM_ERR_BUSY);
  CHECK(error().find("open already") != std::string::npos);
  options.number = 64;
  CHECK(ulfm_port_open(p.job, &options, &port) == ULFM_ERR_INVALID);
  options.number = 63;
  CHECK(ulfm_port_open(p.job, &options, &port) == ULFM_OK);
  CHECK(ulfm_port_close(port) == ULFM_OK);
  CHECK(ulfm_port_open(p.job, &options, &port) == ULFM_OK);
}

TEST_CASE("C: all 64 ports, and no more", "[c_api]") {
  test::Environment environment;
  environment.set("ULFM_LANES", "1");
  ulfm_job job = 0;
  REQUIRE(ulfm_job_alone(&job) == ULFM_OK);
  const ulfm_port_options options{ULFM_ANY_PORT, 128, 2};
  std::vector<ulfm_port> ports(64);
  for (int i = 0; i < 64; ++i) {
    REQUIRE(ulfm_port_open(job, &options, &ports[static_cast<std::size_t>(i)]) == ULFM_OK);
    CHECK(ulfm_port_number(ports[static_cast<std::size_t>(i)]) == i);
  }
  ulfm_port more = 0;
  CHECK(ulfm_port_open(job, &options, &more) == ULFM_ERR_FULL);
  CHECK(ulfm_port_close(ports[17]) == ULFM_OK);
  CHECK(ulfm_port_open(job, &options, &more) == ULFM_OK);
  CHECK(ulfm_port_number(more) == 17);
  CHECK(ulfm_job_leave(job) == ULFM_OK);
}

TEST_CASE("C: sizes above the limits are refused", "[c_api]") {
  Pair p;
  ulfm_port port = 0;
  for (const auto& [slot, depth] : {std::pair<std::uint32_t, std::uint32_t>{(1u << 21) + 1, 1},
                                    {64, 65537},
                                    {64, 0xffffffff},
                                    {0xffffffff, 1},
                                    {0xfffffff0, 1},
                                    {0xffffffb8, 4}}) {
    INFO("slot " << slot << " depth " << depth);
    const ulfm_port_options options{ULFM_ANY_PORT, slot, depth};
    CHECK(ulfm_port_open(p.job, &options, &port) == ULFM_ERR_TOO_LARGE);
  }
  void* buffer = nullptr;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end the program instead
  CHECK(ulfm_compose(p.a, std::size_t{1} << 62, &buffer) == ULFM_ERR_NO_MEMORY);
#endif
  CHECK(ulfm_compose(p.a, 10, &buffer) == ULFM_OK);
}

TEST_CASE("C: one message is composed at a time", "[c_api]") {
  Pair p;
  void* buffer = nullptr;
  CHECK(ulfm_post(p.a, p.to_b) == ULFM_ERR_INVALID);
  CHECK(ulfm_discard(p.a) == ULFM_ERR_INVALID);
  REQUIRE(ulfm_compose(p.a, 10, &buffer) == ULFM_OK);
  CHECK(ulfm_compose(p.a, 10, &buffer) == ULFM_ERR_BUSY);
  CHECK(ulfm_discard(p.a) == ULFM_OK);
  CHECK(ulfm_compose(p.a, 10, &buffer) == ULFM_OK);
  CHECK(ulfm_post(p.a, p.to_b) == ULFM_OK);
  CHECK(ulfm_post(p.a, p.to_b) == ULFM_ERR_INVALID);
}

TEST_CASE("C: a post that fails leaves the message composed", "[c_api]") {
  Pair p;
  void* buffer = nullptr;
  REQUIRE(ulfm_compose(p.a, 10, &buffer) == ULFM_OK);
  test::fill({static_cast<std::byte*>(buffer), 10}, 4);
  CHECK(ulfm_post(p.a, {p.to_b.process, 40, 0}) == ULFM_ERR_NOT_FOUND);  // not open
  CHECK(error().find("port 40") != std::string::npos);
  CHECK(ulfm_post(p.a, {p.to_b.process + 17, 1, 0}) == ULFM_ERR_INVALID);
  CHECK(ulfm_post(p.a, {p.to_b.process, 64, 0}) == ULFM_ERR_INVALID);
  CHECK(ulfm_post(p.a, p.to_b) == ULFM_OK);
  ulfm_message m;
  REQUIRE(ulfm_wait(p.b, kMinute, &m) == 1);
  CHECK(matches(m, 4));
}

TEST_CASE("C: send buffers run out while nobody reads, and come back", "[c_api]") {
  Pair p(1, 64);
  int posted = 0, rc = 0;
  while ((rc = p.send(static_cast<std::uint32_t>(posted), 40)) == ULFM_OK && posted < 1000) ++posted;
  CHECK(rc == ULFM_ERR_FULL);
  CHECK(error().find("on the way") != std::string::npos);
  CHECK(posted >= 2);  // one in the receive buffer, one in the send buffer
  CHECK(ulfm_flush(p.a, 0) == ULFM_ERR_TIMED_OUT);
  for (int i = 0; i < posted; ++i) {
    ulfm_message m;
    REQUIRE(ulfm_wait(p.b, kMinute, &m) == 1);
    CHECK(matches(m, static_cast<std::uint32_t>(i)));
    CHECK(ulfm_release(p.b, &m) == ULFM_OK);
  }
  CHECK(ulfm_flush(p.a, kMinute) == ULFM_OK);
  CHECK(p.send(9, 40) == ULFM_OK);
}

TEST_CASE("C: a message is released once", "[c_api]") {
  Pair p;
  REQUIRE(p.send(1, 20) == ULFM_OK);
  REQUIRE(p.send(2, 20) == ULFM_OK);
  ulfm_message first, second;
  REQUIRE(ulfm_wait(p.b, kMinute, &first) == 1);
  CHECK(ulfm_release(p.b, &first) == ULFM_OK);
  CHECK(ulfm_release(p.b, &first) == ULFM_ERR_STALE);
  CHECK(error().find("released before") != std::string::npos);
  // Also when its buffer holds another message by now.
  REQUIRE(ulfm_wait(p.b, kMinute, &second) == 1);
  CHECK(ulfm_release(p.b, &first) == ULFM_ERR_STALE);
  CHECK(matches(second, 2));
  CHECK(ulfm_release(p.b, &second) == ULFM_OK);
  second.handle = 1u << 30;
  CHECK(ulfm_release(p.b, &second) == ULFM_ERR_STALE);
  second.handle = ~std::uint64_t{0};
  CHECK(ulfm_release(p.b, &second) == ULFM_ERR_STALE);
}

TEST_CASE("C: buffers for texts must be large enough", "[c_api]") {
  Pair p;
  char card[128];
  REQUIRE(ulfm_job_card(p.job, card, sizeof card) == ULFM_OK);
  const std::size_t needed = std::string(card).size() + 1;
  CHECK(ulfm_job_card(p.job, card, needed) == ULFM_OK);
  CHECK(ulfm_job_card(p.job, card, needed - 1) == ULFM_ERR_TOO_LARGE);
  CHECK(error().find(std::to_string(needed) + " are needed") != std::string::npos);
  CHECK(ulfm_job_card(p.job, nullptr, 0) == ULFM_ERR_TOO_LARGE);
}

TEST_CASE("C: alone there are rank 0 of 1 and nobody to exchange keys with", "[c_api]") {
  Pair p;
  CHECK(ulfm_job_rank(p.job) == 0);
  CHECK(ulfm_job_size(p.job) == 1);
  CHECK(ulfm_job_barrier(p.job) == ULFM_OK);
  char value[16];
  CHECK(ulfm_job_put(p.job, "key", "value") == ULFM_ERR_UNAVAILABLE);
  CHECK(ulfm_job_get(p.job, "key", value, sizeof value) == ULFM_ERR_UNAVAILABLE);
  ulfm_address address;
  CHECK(ulfm_job_address(p.job, 1, 0, &address) == ULFM_ERR_INVALID);
  CHECK(ulfm_job_address(p.job, -1, 0, &address) == ULFM_ERR_INVALID);
  CHECK(ulfm_job_address(p.job, 0, 64, &address) == ULFM_ERR_INVALID);
  CHECK(ulfm_job_address_of_card(p.job, "", 0, &address) == ULFM_ERR_PROTOCOL);
  CHECK(ulfm_job_address_of_card(p.job, std::string(5000, 'x').c_str(), 0, &address) == ULFM_ERR_PROTOCOL);
}

TEST_CASE("C: an address of nonsense is an error when it is used", "[c_api]") {
  Pair p;
  ulfm_address address;
  if (ulfm_job_address_of_card(p.job, "nonsense", 1, &address) == ULFM_OK) {
    void* buffer = nullptr;
    REQUIRE(ulfm_compose(p.a, 1, &buffer) == ULFM_OK);
    CHECK(ulfm_post(p.a, address) == ULFM_ERR_PROTOCOL);
  }
  CHECK_FALSE(error().empty());
}

TEST_CASE("C: waits end at their time and name the port", "[c_api]") {
  Pair p;
  ulfm_message m;
  CHECK(ulfm_wait(p.b, 0, &m) == ULFM_ERR_TIMED_OUT);
  CHECK(ulfm_wait(p.b, 20'000'000, &m) == ULFM_ERR_TIMED_OUT);
  CHECK(error().find("port " + std::to_string(ulfm_port_number(p.b))) != std::string::npos);
  REQUIRE(p.send(1, 5) == ULFM_OK);
  CHECK(ulfm_wait(p.b, -1, &m) == 1);
  REQUIRE(p.send(2, 5) == ULFM_OK);
  CHECK(ulfm_wait(p.b, INT64_MAX, &m) == 1);
}

TEST_CASE("C: waiting for any of several ports", "[c_api]") {
  Pair p;
  const ulfm_port both[] = {p.a, p.b};
  int which = -1;
  ulfm_message m;
  CHECK(ulfm_wait_any(both, 2, 1'000'000, &which, &m) == ULFM_ERR_TIMED_OUT);
  CHECK(ulfm_wait_any(both, 0, 0, &which, &m) == ULFM_ERR_INVALID);
  CHECK(ulfm_wait_any(both, 65, 0, &which, &m) == ULFM_ERR_INVALID);
  REQUIRE(p.send(7, 9) == ULFM_OK);
  REQUIRE(ulfm_wait_any(both, 2, kMinute, &which, &m) == 1);
  CHECK(which == 1);
  CHECK(matches(m, 7));
  Pair other;
  const ulfm_port mixed[] = {p.a, other.a};
  CHECK(ulfm_wait_any(mixed, 2, 0, &which, &m) == ULFM_ERR_INVALID);
}

TEST_CASE("C: a watch ends when it is told to, and gives no message", "[c_api]") {
  Pair p;
  REQUIRE(ulfm_watch_end(p.b) == ULFM_OK);
  CHECK(ulfm_watch_interrupts(p.b, -1) == ULFM_ERR_INVALID);
  CHECK(error().find("thread -1") != std::string::npos);
  CHECK(ulfm_watch_interrupts(p.b, 0) == ULFM_OK);
  CHECK(ulfm_give_way(p.b) == ULFM_OK);
  const ulfm_port stale = 0;
  CHECK(ulfm_watch_end(stale) == ULFM_ERR_STALE);
  CHECK(ulfm_watch_interrupts(stale, 0) == ULFM_ERR_STALE);
  CHECK(ulfm_give_way(stale) == ULFM_ERR_STALE);
}

TEST_CASE("C: a bad setting stops the job with a sentence", "[c_api]") {
  test::Environment environment;
  ulfm_job job = 0;
  environment.set("ULFM_DEPTH", "deep");
  CHECK(ulfm_job_alone(&job) == ULFM_ERR_INVALID);
  CHECK(error().find("ULFM_DEPTH=\"deep\"") != std::string::npos);
  environment.unset("ULFM_DEPTH");
  environment.set("ULFM_TRANSPORT", "driect");
  CHECK(ulfm_job_alone(&job) == ULFM_ERR_NOT_FOUND);
  CHECK(error().find("did you mean direct?") != std::string::npos);
}

TEST_CASE("C: at most 64 jobs at a time", "[c_api]") {
  test::Environment environment;
  std::vector<ulfm_job> jobs;
  ulfm_job job = 0;
  while (jobs.size() < 100 && ulfm_job_alone(&job) == ULFM_OK) jobs.push_back(job);
  CHECK(jobs.size() == 64);
  for (const ulfm_job j : jobs) CHECK(ulfm_job_leave(j) == ULFM_OK);
  CHECK(ulfm_job_alone(&job) == ULFM_OK);
  CHECK(ulfm_job_leave(job) == ULFM_OK);
}
