// The protocol between real processes over a direct that loses, damages, doubles, reorders and delays frames.
#include <ulfm/ulfm.hpp>

#include "child.hpp"
#include "environment.hpp"
#include "pattern.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kPort = 7;
constexpr const char* kHeavy = "drop=0.1,corrupt=0.05,duplicate=0.05,reorder=0.1,delay=0.05:500us,seed=11";

/// Children are forked before the parent has one: a fork in the middle of what its helper thread does would copy
/// that, and the sanitizers' allocator locks itself for ever.
struct End {
  End() : job(Job::alone().value()), port(job.open_port({.number = kPort, .depth = 16}).value()) {}
  Job job;
  Port port;
};

}  // namespace

TEST_CASE("processes exchange messages of any length over a bad network", "[reliable][process]") {
  test::Environment environment;
  environment.set("ULFM_FAULT", kHeavy);
  test::Child child([&](test::Pipe& parent) {
    const std::string card = parent.receive();
    End guest;
    const Address to = guest.job.address_of_card(card, kPort).value();
    parent.send(guest.job.card());
    for (std::uint32_t i = 0; i < 300; ++i) {
      auto in = guest.port.wait(60s);
      if (!in) _exit(3);
      const std::vector<std::byte> copy(in->bytes().begin(), in->bytes().end());
      if (!guest.port.send(copy, to, 60s)) _exit(4);
    }
  });
  End host;
  child.pipe().send(host.job.card());
  const Address to = host.job.address_of_card(child.pipe().receive(), kPort).value();
  std::uint32_t asked = 0;
  for (std::uint32_t answered = 0; answered < 300; ++answered) {
    for (; asked < 300 && asked < answered + 5; ++asked)
      REQUIRE(host.port.send(test::pattern_bytes(asked, asked * asked * 7 % 300000), to, 60s));
    auto in = host.port.wait(60s);
    INFO((in ? std::string() : in.error().what));
    REQUIRE(in);
    REQUIRE(in->bytes().size() == answered * answered * 7 % 300000);
    REQUIRE(test::matches(in->bytes(), answered));
  }
  CHECK(child.wait() == 0);
}

TEST_CASE("what a process sent before it ended in good order arrives over a bad network", "[reliable][process]") {
  test::Environment environment;
  environment.set("ULFM_FAULT", kHeavy);
  for (int round = 0; round < 5; ++round) {
    test::Child child([&](test::Pipe& parent) {
      const std::string card = parent.receive();
      End guest;
      const Address to = guest.job.address_of_card(card, kPort).value();
      for (std::uint32_t i = 0; i < 50; ++i)
        if (!guest.port.send(test::pattern_bytes(i, 1000), to, 60s)) _exit(3);
    });
    End host;
    child.pipe().send(host.job.card());
    for (std::uint32_t i = 0; i < 50; ++i) {
      auto in = host.port.wait(60s);
      REQUIRE(in);
      CHECK(test::matches(in->bytes(), i));
    }
    CHECK(child.wait() == 0);
  }
}

TEST_CASE("a process that computes for long is not given up", "[reliable][process]") {
  test::Environment environment;
  environment.set("ULFM_FAULT", "drop=0.05,seed=2");
  environment.set("ULFM_GIVE_UP", "300ms");
  test::Child child([&](test::Pipe& parent) {
    const std::string card = parent.receive();
    End guest;
    parent.send(guest.job.card());
    parent.receive();  // it does not look at its port for longer than anyone's patience
    for (std::uint32_t i = 0; i < 200; ++i) {
      auto in = guest.port.wait(60s);
      if (!in || !test::matches(in->bytes(), i)) _exit(3);
    }
  });
  End host;
  child.pipe().send(host.job.card());
  const Address to = host.job.address_of_card(child.pipe().receive(), kPort).value();
  std::uint32_t sent = 0;
  for (; sent < 10; ++sent) REQUIRE(host.port.send(test::pattern_bytes(sent, 100), to, 60s));
  const auto waited = host.port.wait(1s);  // three times the patience
  REQUIRE_FALSE(waited);
  INFO(waited.error().what);
  CHECK(waited.error().code == Errc::timed_out);
  child.pipe().send("go on");
  for (; sent < 200; ++sent) REQUIRE(host.port.send(test::pattern_bytes(sent, 100), to, 60s));
  REQUIRE(host.port.flush(60s));
  CHECK(child.wait() == 0);
}

TEST_CASE("over a network that loses everything a peer is given up in time and by name", "[reliable][process]") {
  test::Environment environment;
  environment.set("ULFM_FAULT", "drop=1");
  environment.set("ULFM_GIVE_UP", "400ms");
  test::Child child([&](test::Pipe& parent) {
    End guest;
    parent.send(guest.job.card());
    parent.receive();
  });
  End host;
  const Address to = host.job.address_of_card(child.pipe().receive(), kPort).value();
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(host.port.send(test::pattern_bytes(1, 100), to, 60s));
  const auto waited = host.port.wait(60s);
  const auto took = std::chrono::steady_clock::now() - start;
  REQUIRE_FALSE(waited);
  INFO(waited.error().what);
  CHECK(waited.error().code == Errc::peer_failed);
  CHECK(waited.error().what.find("process " + std::to_string(child.pid())) != std::string::npos);
  CHECK(waited.error().what.find("1 frame with 100 bytes of data to it") != std::string::npos);
  CHECK(took >= 400ms);
  CHECK(took < 10s);
  child.pipe().send("done");
  CHECK(child.wait() == 0);
}

TEST_CASE("a peer that is killed is reported over a bad network too", "[reliable][process]") {
  test::Environment environment;
  environment.set("ULFM_FAULT", kHeavy);
  test::Child child([&](test::Pipe& parent) {
    const std::string card = parent.receive();
    End guest;
    if (!guest.port.send(test::pattern_bytes(1, 10), guest.job.address_of_card(card, kPort).value(), 60s)) _exit(3);
    if (!guest.port.flush(60s)) _exit(4);
    parent.receive();
  });
  End host;
  child.pipe().send(host.job.card());
  REQUIRE(host.port.wait(60s));
  child.kill();
  const auto waited = host.port.wait(60s);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == Errc::peer_failed);
}
