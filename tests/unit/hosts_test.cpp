// What the transports between hosts share: where a process listens, and what is said of addresses that do not answer.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "transport/hosts/attempts.hpp"
#include "transport/hosts/network.hpp"
#include "transport/hosts/unreached.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

hosts::ProcessCard card_with(const char* ip) {
  hosts::ProcessCard card;
  card.addresses.push_back({Ip::parse(ip).value(), hosts::LinkKind::physical});
  return card;
}

struct FailedTry final : hosts::Try {
  explicit FailedTry(int error) { fail_by(error, std::strerror(error)); }
  bool is_host_answering() const override { return false; }
};

}  // namespace

TEST_CASE("hosts: ports of a range that are taken are passed over, and one that is free is found", "[hosts]") {
  hosts::NetworkSettings settings;
  settings.first_port = 5000;
  settings.last_port = 5009;
  auto card = card_with("10.1.0.2");
  const int taken = GENERATE(EADDRINUSE, EACCES);
  REQUIRE(hosts::listen(settings, card, [&](const hosts::SocketAddress& where) -> Result<std::uint16_t> {
    if (where.port() != 5007) return fail(hosts::listen_error(where, taken));
    return where.port();
  }));
  CHECK(card.port == 5007);
}

TEST_CASE("hosts: a process without descriptors is not told that ports are taken", "[hosts]") {
  hosts::NetworkSettings settings;
  settings.first_port = 5000;
  settings.last_port = 5999;
  auto card = card_with("10.1.0.2");
  int asked = 0;
  const auto ok = hosts::listen(settings, card, [&](const hosts::SocketAddress& where) -> Result<std::uint16_t> {
    ++asked;
    return fail(hosts::listen_error(where, EMFILE));
  });
  REQUIRE_FALSE(ok);
  CHECK(asked == 1);
  CHECK(ok.error().what.find(std::strerror(EMFILE)) != std::string::npos);
  CHECK(ok.error().what.find("widen the range") == std::string::npos);
}

TEST_CASE("hosts: each result of an attempt comes with what may help", "[hosts]") {
  const auto [error, remedy] = GENERATE(table<int, const char*>({{EMFILE, "ulimit -n"},
                                                                 {ENFILE, "ulimit -n"},
                                                                 {ECONNREFUSED, "it has ended"},
                                                                 {EHOSTUNREACH, "ULFM_INTERFACE"},
                                                                 {ENETUNREACH, "no route"}}));
  hosts::Attempts attempts({{Ip::parse("fd00::2").value(), "same network as eth0"}}, 10s, false);
  attempts.add(0, std::make_shared<FailedTry>(error), hosts::Clock::now());
  CHECK(attempts.over(hosts::Clock::now() + (error == EHOSTUNREACH ? 10s : 0s)));
  const std::string said = attempts.error("process 4711", 1, 5000).what;
  CHECK(said.find("[fd00::2]:5000") != std::string::npos);
  CHECK(said.find(std::strerror(error)) != std::string::npos);
  CHECK(said.find(remedy) != std::string::npos);
}

TEST_CASE("hosts: a host that is not found on its network is tried again until it is given up", "[hosts]") {
  const hosts::Candidate one{Ip::parse("10.1.0.2").value(), "same network as eth0"};
  const hosts::Candidate other{Ip::parse("fd00::2").value(), "same network as eth0"};

  SECTION("at each of its addresses") {
    hosts::Attempts attempts({one, other}, 10s, true);
    const auto begun = hosts::Clock::now();
    for (std::size_t i : {0, 1}) {
      REQUIRE(attempts.due(begun) == i);
      attempts.add(i, std::make_shared<FailedTry>(EHOSTUNREACH), begun);
    }
    CHECK_FALSE(attempts.due(begun));
    CHECK_FALSE(attempts.over(begun + 5s));
    CHECK(attempts.due(begun + 9s) == 0u);
    CHECK(attempts.over(hosts::Clock::now() + 10s));
    CHECK(attempts.error("process 4711", 1, 5000).code == Errc::unavailable);
  }
  SECTION("unless it has refused at another") {
    hosts::Attempts attempts({one, other}, 10s, true);
    const auto begun = hosts::Clock::now();
    attempts.add(0, std::make_shared<FailedTry>(ECONNREFUSED), begun);
    attempts.add(1, std::make_shared<FailedTry>(EHOSTUNREACH), begun);
    CHECK(attempts.over(begun));
  }
  SECTION("and a refusal by this host's own bridge is none of that host") {
    hosts::Attempts attempts({other, {Ip::parse("172.17.0.1").value(), "this host has the same address", true}}, 10s,
                             true);
    const auto begun = hosts::Clock::now();
    attempts.add(0, std::make_shared<FailedTry>(EHOSTUNREACH), begun);
    attempts.add(1, std::make_shared<FailedTry>(ECONNREFUSED), begun);
    CHECK_FALSE(attempts.over(begun + 5s));
  }
}

TEST_CASE("hosts: one that is silent is asked anew, and given up after 4.5 s unless it has been reached", "[hosts]") {
  const bool was_reached = GENERATE(false, true);
  struct SilentTry final : hosts::Try {
    bool is_host_answering() const override { return answers; }
    bool answers = false;
  };
  hosts::Attempts attempts({{Ip::parse("10.1.0.2").value(), "same network as eth0"}}, 10s, was_reached);
  const auto begun = hosts::Clock::now();
  const auto first = std::make_shared<SilentTry>(), second = std::make_shared<SilentTry>();
  CHECK(attempts.add(0, first, begun) == nullptr);
  CHECK_FALSE(attempts.due(begun + 1900ms));
  CHECK(attempts.due(begun + 2s) == 0u);
  CHECK(attempts.add(0, second, begun + 2s) == first);
  CHECK_FALSE(attempts.due(begun + 3900ms));
  CHECK(attempts.due(begun + 4s) == 0u);
  CHECK_FALSE(attempts.over(begun + 3s));
  CHECK(attempts.over(begun + 5s) == !was_reached);
  CHECK(attempts.error("process 4711", 1, 5000).what.find(was_reached ? "no answer in 10 s" : "no answer in 4.5 s") !=
        std::string::npos);
  second->answers = true;  // its process is slow: it has the whole time
  CHECK_FALSE(attempts.due(begun + 4s));
  CHECK_FALSE(attempts.over(begun + 5s));
  CHECK(attempts.over(begun + 11s));
}

TEST_CASE("hosts: who was not reached by a long attempt, or has ended, is not waited for again at once", "[hosts]") {
  hosts::Unreached unreached;
  const hosts::Unreached::Clock::time_point begun{1h};
  const Error why{Errc::unavailable, "it cannot be reached"};
  unreached.note(7, 1, begun, begun + 4s, why);
  unreached.note(8, 1, begun, begun + 20ms, why);
  unreached.note(9, 1, begun + 4s, begun + 4s + 20ms, {Errc::peer_failed, "nobody is there"});
  const auto known = unreached.error(7, 1, begun + 4900ms);
  REQUIRE(known);
  CHECK(known->code == why.code);
  CHECK(known->what == why.what);
  CHECK_FALSE(unreached.error(7, 2, begun + 4900ms));  // another port of it
  CHECK(unreached.error(9, 2, begun + 4900ms));        // a process that has ended has no other port
  CHECK_FALSE(unreached.error(8, 1, begun + 4900ms));  // an answer that comes at once is asked for again
  CHECK_FALSE(unreached.error(7, 1, begun + 5s));
  CHECK_FALSE(unreached.error(7, 1, begun + 4900ms));  // and then not known any more
}
