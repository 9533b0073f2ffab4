// What the transports between hosts share: where a process listens, and what is said of addresses that do not answer.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "transport/hosts/attempts.hpp"
#include "transport/hosts/network.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

hosts::ProcessCard card_with(const char* ip) {
  hosts::ProcessCard card;
  card.addresses.push_back({Ip::parse(ip).value(), hosts::LinkKind::physical});
  return card;
}

struct FailedTry final : hosts::Try {
  explicit FailedTry(int error) { fail(std::strerror(error)); }
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
  CHECK(attempts.over(hosts::Clock::now()));
  const std::string said = attempts.error("process 4711", 1, 5000).what;
  CHECK(said.find("[fd00::2]:5000") != std::string::npos);
  CHECK(said.find(std::strerror(error)) != std::string::npos);
  CHECK(said.find(remedy) != std::string::npos);
}
