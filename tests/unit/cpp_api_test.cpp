#include <ulfm/ulfm.hpp>

#include <vector>

#include "environment.hpp"
#include "pattern.hpp"
#include "property.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

struct PortPair {
  test::Environment environment;
  Job job = Job::alone().value();
  Port a = job.open_port({.depth = 8}).value();
  Port b = job.open_port({.number = 9, .depth = 8}).value();
  Address to_b = job.address(0, 9).value();
};

}  // namespace

TEST_CASE("C++: the example of the architecture", "[cpp_api]") {
  PortPair w;
  auto out = w.a.compose(300).value();
  CHECK(out.bytes().size() == 300);
  test::fill(out.bytes(), 3);
  REQUIRE(w.a.post(std::move(out), w.to_b));
  {
    auto in = w.b.wait(60s);
    REQUIRE(in);
    CHECK(test::matches(in->bytes(), 3));
    CHECK(in->source().port == w.a.number());
  }
  CHECK_FALSE(w.b.poll().value());
  CHECK(w.b.wait(1ms).error().code == Errc::timed_out);
}

TEST_CASE("C++: what is composed dies unsent unless posted", "[cpp_api]") {
  PortPair w;
  { auto out = w.a.compose(10).value(); }
  {
    auto out = w.a.compose(10).value();
    CHECK(w.a.compose(10).error().code == Errc::busy);
    CHECK(w.a.post(std::move(out), {w.to_b.process, 33, 0}).error().code == Errc::not_found);
  }
  CHECK(w.a.compose(10).has_value());
  CHECK(w.b.wait(1ms).error().code == Errc::timed_out);
}

TEST_CASE("C++: a message is posted through the port it was composed in", "[cpp_api]") {
  PortPair w;
  auto out = w.a.compose(10).value();
  CHECK(w.b.post(std::move(out), w.to_b).error().code == Errc::invalid);
}

TEST_CASE("C++: messages are released when they die, and moved as one", "[cpp_api]") {
  PortPair w;
  for (int round = 0; round < 40; ++round) {  // more than there are buffers
    REQUIRE(w.a.send(test::pattern_bytes(static_cast<std::uint32_t>(round), 500), w.to_b, 60s));
    auto got = w.b.wait(60s);
    REQUIRE(got);
    Incoming moved(std::move(*got));
    Incoming again = std::move(moved);
    CHECK(test::matches(again.bytes(), static_cast<std::uint32_t>(round)));
  }
}

TEST_CASE("C++: a closed port is stale", "[cpp_api]") {
  PortPair w;
  auto out = w.a.compose(10);
  REQUIRE(w.a.close());
  CHECK(w.a.close().error().code == Errc::stale);
  CHECK(w.a.compose(1).error().code == Errc::stale);
  CHECK(w.a.poll().error().code == Errc::stale);
  CHECK(w.a.wait(1s).error().code == Errc::stale);
  CHECK(w.a.flush().error().code == Errc::stale);
  CHECK(w.a.number() == any_port);
}

TEST_CASE("C++: what was posted before the close arrives", "[cpp_api]") {
  PortPair w;
  for (std::uint32_t i = 0; i < 8; ++i) REQUIRE(w.a.send(test::pattern_bytes(i, 100), w.to_b, 60s));
  REQUIRE(w.a.close());
  for (std::uint32_t i = 0; i < 8; ++i) {
    auto in = w.b.wait(60s);
    REQUIRE(in);
    CHECK(test::matches(in->bytes(), i));
  }
}

TEST_CASE("C++: moved ports and jobs work on, closed once", "[cpp_api]") {
  PortPair w;
  Port moved = std::move(w.a);
  REQUIRE(moved.send(test::pattern_bytes(1, 10), w.to_b, 60s));
  CHECK(w.b.wait(60s).has_value());
  Job job = std::move(w.job);
  CHECK(job.size() == 1);
  CHECK(w.job.rank() == ULFM_ERR_STALE);
  moved = job.open_port().value();  // the old one ends when the temporary does
  CHECK(moved.number() != any_port);
}

TEST_CASE("C++: waiting for any of several ports", "[cpp_api]") {
  PortPair w;
  Port* ports[] = {&w.a, &w.b};
  CHECK(Port::wait_any(ports, 1ms).error().code == Errc::timed_out);
  CHECK(Port::wait_any({}, 1ms).error().code == Errc::invalid);
  REQUIRE(w.a.send(test::pattern_bytes(5, 10), w.to_b, 60s));
  auto got = Port::wait_any(ports, 60s);
  REQUIRE(got);
  CHECK(got->first == 1);
  CHECK(test::matches(got->second.bytes(), 5));
}

TEST_CASE("C++: jobs of one process reach each other by card", "[cpp_api]") {
  PortPair w;
  Job other = Job::alone().value();
  Port port = other.open_port().value();
  REQUIRE(port.send(test::pattern_bytes(8, 700), other.address_of_card(w.job.card(), 9).value(), 60s));
  auto in = w.b.wait(60s);
  REQUIRE(in);
  CHECK(test::matches(in->bytes(), 8));
  // And back by the source of the message.
  REQUIRE(w.b.send(test::pattern_bytes(9, 1), in->source(), 60s));
  auto back = port.wait(60s);
  REQUIRE(back);
  CHECK(test::matches(back->bytes(), 9));
}
