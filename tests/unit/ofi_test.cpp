// Other hosts: cards, which address is tried first, and what two processes show each other.
#include <catch2/catch.hpp>

#include <arpa/inet.h>

#include "environment.hpp"
#include "proto/stack.hpp"
#include "transport/mux/mux.hpp"
#include "transport/ofi/card.hpp"
#include "transport/ofi/greeting.hpp"
#include "transport/ofi/interfaces.hpp"
#include "transport/registry.hpp"

using namespace ulfm;
using namespace ulfm::ofi;

namespace {

std::uint32_t ip(const char* text) { return ntohl(inet_addr(text)); }

Interface interface(const char* name, const char* address, int bits, Link link = Link::physical) {
  return {name, {ip(address), link}, ~std::uint32_t{0} << (32 - bits), false};
}

Card card_with(std::vector<Address> addresses) { return {1, 2, 3, 4, std::move(addresses)}; }

std::vector<std::string> order(const std::vector<Interface>& own, const Card& peer, bool same_host = false) {
  std::vector<Candidate> left_out;
  std::vector<std::string> texts;
  for (const Candidate& one : candidates(own, peer, same_host, left_out)) texts.push_back(text_of(one.ip));
  return texts;
}

Config config_with(std::initializer_list<std::pair<const char*, const char*>> rows) {
  test::Environment environment;
  Config config = Config::load().value();
  for (const auto& [row, value] : rows) REQUIRE(config.set(row, value, Origin::command_line, "test"));
  return config;
}

std::string refused(std::initializer_list<std::pair<const char*, const char*>> rows) {
  auto made = select_transport("ofi").value()->make(config_with(rows));
  REQUIRE_FALSE(made);
  return made.error().what;
}

}  // namespace

TEST_CASE("ofi: a card says everything and nothing else is a card", "[ofi]") {
  Card card = card_with({{ip("10.77.0.1"), Link::veth}, {ip("172.17.0.1"), Link::virtual_link}});
  card.host = 0x1234567890abcdef;
  card.token = ~std::uint64_t{0};
  card.port = 65535;
  const std::string text = encode(card);
  const auto back = decode(text);
  REQUIRE(back);
  CHECK(back->host == card.host);
  CHECK(back->token == card.token);
  CHECK(back->pid == card.pid);
  CHECK(back->port == card.port);
  CHECK(back->addresses == card.addresses);
  CHECK(decode(encode(card_with({}))).has_value());
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    const auto part = decode(text.substr(0, cut));
    if (part) CHECK(encode(*part) == text.substr(0, cut));
  }
  CHECK_FALSE(decode(text + "x"));
  CHECK_FALSE(decode("direct:00"));
  CHECK_FALSE(decode(encode(card_with({})) + "0a4d000190a4d000290a4d00039"));
}

TEST_CASE("ofi: the same network first, bridges and tunnels last", "[ofi]") {
  const std::vector<Interface> own{interface("eth0", "10.1.0.1", 24),
                                   interface("docker0", "172.17.0.1", 16, Link::virtual_link)};
  SECTION("physical before bridge, whatever the order of the card") {
    CHECK(order(own, card_with({{ip("172.17.0.2"), Link::virtual_link}, {ip("10.1.0.2"), Link::physical}})) ==
          std::vector<std::string>{"10.1.0.2", "172.17.0.2"});
  }
  SECTION("same network before one behind a router") {
    CHECK(order(own, card_with({{ip("192.0.2.9"), Link::physical}, {ip("10.1.0.2"), Link::physical}})) ==
          std::vector<std::string>{"10.1.0.2", "192.0.2.9"});
  }
  SECTION("a network of ours by a bridge comes after a physical one behind a router") {
    CHECK(order(own, card_with({{ip("172.17.0.9"), Link::virtual_link}, {ip("192.0.2.9"), Link::physical}})) ==
          std::vector<std::string>{"192.0.2.9", "172.17.0.9"});
  }
  SECTION("an address that is ours too leads to ourselves and is left out, with the reason") {
    std::vector<Candidate> left_out;
    const auto tried = candidates(
        own, card_with({{ip("172.17.0.1"), Link::virtual_link}, {ip("10.1.0.2"), Link::physical}}), false, left_out);
    REQUIRE(tried.size() == 1);
    CHECK(tried[0].ip == ip("10.1.0.2"));
    REQUIRE(left_out.size() == 1);
    CHECK(left_out[0].ip == ip("172.17.0.1"));
  }
  SECTION("a process of this host by the loopback address") {
    CHECK(order(own, card_with({{ip("10.1.0.1"), Link::physical}}), true) ==
          std::vector<std::string>{"127.0.0.1", "10.1.0.1"});
  }
}

TEST_CASE("ofi: ULFM_INTERFACE takes a name, an address or a network", "[ofi]") {
  std::vector<Interface> all{interface("eth0", "10.1.0.1", 24), interface("eth1", "10.2.0.1", 24)};
  all.push_back({"lo", {ip("127.0.0.1"), Link::physical}, ip("255.0.0.0"), true});
  const auto chosen = [&](const char* wanted) {
    std::string names;
    const std::vector<Interface> some = choose_interfaces(all, wanted).value();
    for (const Interface& one : some) names += one.name + " ";
    return names;
  };
  CHECK(chosen("") == "eth0 eth1 ");
  CHECK(chosen("eth1") == "eth1 ");
  CHECK(chosen("10.1.0.1") == "eth0 ");
  CHECK(chosen("10.2.0.0/16") == "eth1 ");
  CHECK(chosen("10.0.0.0/8") == "eth0 eth1 ");
  CHECK(chosen("lo") == "lo ");
  for (const char* wrong : {"eth9", "10.3.0.1", "10.3.0.0/16", "10.1.0.0/33", "10.1.0.0/x", "/8"}) {
    const auto none = choose_interfaces(all, wrong);
    REQUIRE_FALSE(none);
    CHECK(none.error().what.find("there is: eth0 10.1.0.1, eth1 10.2.0.1, lo 127.0.0.1") != std::string::npos);
  }
}

TEST_CASE("ofi: a greeting counts only from who knows token and secret", "[ofi]") {
  const Key key = key_for("secret", 42);
  const Nonce nonce = random_nonce();
  const Greeting g = greeting(key, 1, 2, 3, nonce);
  const auto bytes = std::as_bytes(std::span(&g, 1));
  Greeting out{};
  CHECK(check(bytes, key, out) == Refusal::none);
  CHECK(out.to == 1);
  CHECK(out.from == 2);
  CHECK(check(bytes, key_for("secret", 43), out) == Refusal::unknown_secret);
  CHECK(check(bytes, key_for("Secret", 42), out) == Refusal::unknown_secret);
  CHECK(check(bytes.first(bytes.size() - 1), key, out) == Refusal::unknown_secret);
  for (std::size_t i = 0; i < sizeof g; ++i) {
    Greeting changed = g;
    reinterpret_cast<unsigned char*>(&changed)[i] ^= 1;
    CHECK(check(std::as_bytes(std::span(&changed, 1)), key, out) != Refusal::none);
  }
}

TEST_CASE("ofi: an answer counts only from who was meant, and to this greeting", "[ofi]") {
  const Key key = key_for("", 7);
  const Nonce nonce = random_nonce();
  const Welcome w = welcome(key, nonce, 5, 6);
  Welcome out{};
  CHECK(check(std::as_bytes(std::span(&w, 1)), key, nonce, out));
  CHECK(out.connection == 5);
  CHECK_FALSE(check(std::as_bytes(std::span(&w, 1)), key, random_nonce(), out));
  CHECK_FALSE(check(std::as_bytes(std::span(&w, 1)), key_for("", 8), nonce, out));
  CHECK_FALSE(check({}, key, nonce, out));
  const Welcome no = refusal(key, nonce, Refusal::no_such_port);
  CHECK(check(std::as_bytes(std::span(&no, 1)), key, nonce, out));
  CHECK(out.refusal == Refusal::no_such_port);
}

TEST_CASE("ofi: settings that cannot be are refused in words", "[ofi]") {
  CHECK(refused({{"PORTS", "5000"}}).find("two TCP ports") != std::string::npos);
  CHECK(refused({{"PORTS", "5001-5000"}}).find("ULFM_PORTS=\"5001-5000\"") != std::string::npos);
  CHECK(refused({{"PORTS", "0-70000"}}).find("two TCP ports") != std::string::npos);
  CHECK(refused({{"INTERFACE", "nosuch0"}}).find("names no interface") != std::string::npos);
  CHECK(refused({{"TRANSPORT", "ofi,color=red"}}).find("no option of ofi") != std::string::npos);
  CHECK(refused({{"TRANSPORT", "ofi,provider=nosuch"}}).find("no provider nosuch") != std::string::npos);
}

TEST_CASE("ofi: a port that is not open and a process that has ended are told apart", "[ofi]") {
  const auto make = [] { return select_transport("ofi").value()->make(config_with({})).value(); };
  auto here = make(), there = make();
  PortCounters counters;
  const auto closed = here->connect(there->card(), 9, 1, {}, counters);
  REQUIRE_FALSE(closed);
  CHECK(closed.error().code == Errc::not_found);
  const std::string card = there->card();
  there.reset();
  const auto gone = here->connect(card, 9, 1, {}, counters);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == Errc::peer_failed);
  CHECK(gone.error().what.find("127.0.0.1:") != std::string::npos);
  CHECK(gone.error().what.find("Connection refused") != std::string::npos);
}

TEST_CASE("ofi: each process of a range of ports gets one, and one too many is told so", "[ofi]") {
  const auto make = [] { return select_transport("ofi").value()->make(config_with({{"PORTS", "47110-47111"}})); };
  auto a = make(), b = make(), c = make();
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE_FALSE(c);
  CHECK(c.error().what.find("none of these 2 ports is free") != std::string::npos);
}

TEST_CASE("mux: the launcher's numbers say whether a job is on several hosts", "[ofi]") {
  test::Environment environment;
  environment.unset("MPI_LOCALNRANKS");
  environment.unset("PMI_SIZE");
  CHECK_FALSE(spans_hosts());
  environment.set("PMI_SIZE", "4");
  CHECK_FALSE(spans_hosts());
  environment.set("MPI_LOCALNRANKS", "4");
  CHECK_FALSE(spans_hosts());
  CHECK(std::string(select_transport("auto").value()->name) == "direct");
  environment.set("MPI_LOCALNRANKS", "2");
  CHECK(spans_hosts());
  CHECK(std::string(select_transport("auto").value()->name) == "mux");
}
