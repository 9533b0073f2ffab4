// A second thread that sleeps until something arrives at a port, while the port's own thread does other
// things.
#include <catch2/catch.hpp>

#include <ulfm/ulfm.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "child.hpp"
#include "environment.hpp"

namespace {

struct Alone {
  Alone() {
    REQUIRE(ulfm_job_alone(&job) == ULFM_OK);
    const ulfm_port_options options{5, 0, 0};
    REQUIRE(ulfm_port_open(job, &options, &port) == ULFM_OK);
    REQUIRE(ulfm_job_address(job, 0, 5, &self) == ULFM_OK);
  }
  ~Alone() { ulfm_job_leave(job); }
  void send_to_itself() {
    void* buffer = nullptr;
    REQUIRE(ulfm_compose(port, 3, &buffer) == ULFM_OK);
    std::memcpy(buffer, "abc", 3);
    REQUIRE(ulfm_post(port, self) == ULFM_OK);
  }
  ulfm_job job = 0;
  ulfm_port port = 0;
  ulfm_address self{};
};

constexpr std::int64_t kLong = 60'000'000'000;

}  // namespace

TEST_CASE("an arrival after watch_begin ends the watch", "[watch]") {
  test::Environment environment;
  Alone alone;
  REQUIRE(ulfm_watch_begin(alone.port) == ULFM_OK);
  alone.send_to_itself();
  CHECK(ulfm_watch_wait(alone.port, kLong) == 1);
  // It took nothing.
  ulfm_message message;
  REQUIRE(ulfm_poll(alone.port, &message) == 1);
  CHECK(message.size == 3);
  CHECK(ulfm_release(alone.port, &message) == ULFM_OK);
}

TEST_CASE("a watcher sleeps until a message comes, and the owner's own waits go on", "[watch]") {
  test::Environment environment;
  Alone alone;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(ulfm_watch_begin(alone.port) == ULFM_OK);
    int result = 0;
    std::thread watcher([&] { result = ulfm_watch_wait(alone.port, kLong); });
    ulfm_message message;
    CHECK(ulfm_wait(alone.port, 3'000'000, &message) == ULFM_ERR_TIMED_OUT);  // the owner parks and wakes meanwhile
    alone.send_to_itself();
    watcher.join();
    CHECK(result == 1);
    REQUIRE(ulfm_wait(alone.port, kLong, &message) == 1);
    CHECK(ulfm_release(alone.port, &message) == ULFM_OK);
  }
}

TEST_CASE("without an arrival a watch ends after its time, or when it is ended", "[watch]") {
  test::Environment environment;
  Alone alone;
  REQUIRE(ulfm_watch_begin(alone.port) == ULFM_OK);
  CHECK(ulfm_watch_wait(alone.port, 1'000'000) == ULFM_ERR_TIMED_OUT);
  REQUIRE(ulfm_watch_begin(alone.port) == ULFM_OK);
  int ended = ULFM_ERR_INVALID;  // Catch's checks are for one thread
  std::thread other([&] { ended = ulfm_watch_end(alone.port); });
  CHECK(ulfm_watch_wait(alone.port, kLong) == 1);
  other.join();
  CHECK(ended == ULFM_OK);
  CHECK(ulfm_watch_wait(alone.port, -1) == ULFM_ERR_INVALID);
}

TEST_CASE("watching a port that was closed is an error", "[watch]") {
  test::Environment environment;
  Alone alone;
  REQUIRE(ulfm_port_close(alone.port) == ULFM_OK);
  CHECK(ulfm_watch_begin(alone.port) == ULFM_ERR_STALE);
  CHECK(ulfm_watch_wait(alone.port, 0) == ULFM_ERR_STALE);
  CHECK(ulfm_watch_end(alone.port) == ULFM_ERR_STALE);
}

TEST_CASE("a job names its transport", "[watch]") {
  test::Environment environment;
  Alone alone;
  CHECK(std::string(ulfm_job_transport(alone.job)) == "direct");
  CHECK(ulfm_job_transport(12345) == nullptr);
  CHECK(ulfm_job_suits(alone.job, ULFM_SUITS_PIECE) == 0);
  CHECK(ulfm_job_suits(alone.job, ULFM_SUITS_COPIES) == 0);
  CHECK(ulfm_job_suits(12345, ULFM_SUITS_PIECE) == 0);
}

TEST_CASE("errors can be told of at exit", "[watch]") {
  test::Child child([](test::Pipe&) {
    // The destructors of thread-local objects have run when this does.
    std::atexit([] {
      ulfm_port_close(0);
      _exit(std::strlen(ulfm_last_error()) > 10 ? 7 : 8);
    });
    ulfm_port_close(0);
    std::exit(1);
  });
  CHECK(child.wait() == 7);
}
