// Other hosts: cards, which address is tried first, and what two processes show each other.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "environment.hpp"
#include "job/control/socket.hpp"
#include "pattern.hpp"
#include "proto/stack.hpp"
#include "transport/hosts/card.hpp"
#include "transport/hosts/greeting.hpp"
#include "transport/hosts/interfaces.hpp"
#include "transport/hosts/socket_address.hpp"
#include "transport/mux/mux.hpp"
#include "transport/registry.hpp"

using namespace ulfm;
using namespace ulfm::hosts;
using namespace std::chrono_literals;

namespace {

Ip ip(const char* text) { return Ip::parse(text).value(); }

Interface interface(const char* name, const char* address, int bits, LinkKind link = LinkKind::physical) {
  return {name, {ip(address), link}, bits, false};
}

ProcessCard card_with(std::vector<Address> addresses) { return {1, 2, 3, 4, std::move(addresses)}; }

std::vector<std::string> order(const Surroundings& own, const ProcessCard& peer, bool same_host = false) {
  std::vector<std::string> texts;
  for (const Candidate& one : candidates(own, peer, same_host)) texts.push_back(one.ip.text());
  return texts;
}

std::string refused(std::initializer_list<std::pair<const char*, const char*>> rows) {
  auto made = select_transport("ofi").value()->make(test::config_with(rows));
  REQUIRE_FALSE(made);
  return made.error().what;
}

}  // namespace

TEST_CASE("ofi: a card says everything and nothing else is a card", "[ofi]") {
  ProcessCard card = card_with({{ip("10.77.0.1"), LinkKind::veth},
                                {ip("fd00::77"), LinkKind::physical},
                                {ip("172.17.0.1"), LinkKind::virtual_link}});
  card.host = 0x1234567890abcdef;
  card.token = ~std::uint64_t{0};
  card.port = 65535;
  const std::string text = encode("ofi", card);
  const auto back = decode("ofi", text);
  REQUIRE(back);
  CHECK(back->host == card.host);
  CHECK(back->token == card.token);
  CHECK(back->pid == card.pid);
  CHECK(back->port == card.port);
  CHECK(back->addresses == card.addresses);
  CHECK(decode("ofi", encode("ofi", card_with({}))).has_value());
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    const auto part = decode("ofi", text.substr(0, cut));
    if (part) CHECK(encode("ofi", *part) == text.substr(0, cut));
  }
  CHECK_FALSE(decode("ofi", text + "x"));
  CHECK_FALSE(decode("ofi", "direct:00"));
  CHECK_FALSE(decode("ofi", text + "ABCD"));
  CHECK_FALSE(decode("ofi", "ofi:"));
  CHECK_FALSE(decode("ofi", "ofi:" + std::string(1000, 'A')));
}

TEST_CASE("ofi: a card holds the likeliest addresses, as many as fit", "[ofi]") {
  std::vector<Address> many;
  for (int i = 1; i < 20; ++i) many.push_back({ip(("10.1.0." + std::to_string(i)).c_str()), LinkKind::physical});
  many.insert(many.begin() + 1, {ip("fd00::1"), LinkKind::physical});
  const auto fitting = those_that_fit(many);
  CHECK(fitting.size() == 9);  // 17 bytes and 8 times 5
  CHECK(std::equal(fitting.begin(), fitting.end(), many.begin()));
  const ProcessCard full = card_with(fitting);
  CHECK(decode("ofi", encode("ofi", full)).value().addresses == fitting);
  CHECK(encode("ofi", full).size() < kMostCard / 2);
  CHECK_FALSE(decode("ofi", encode("ofi", card_with(many))));
}

TEST_CASE("ofi: addresses of both families are read, compared and written", "[ofi]") {
  CHECK(ip("10.1.2.3").text() == "10.1.2.3");
  CHECK(ip("fd00:0:0::1").text() == "fd00::1");
  CHECK_FALSE(Ip::parse("10.1.2"));
  CHECK_FALSE(Ip::parse("eth0"));
  CHECK(ip("10.1.2.3").shares(ip("10.1.2.200"), 24));
  CHECK_FALSE(ip("10.1.2.3").shares(ip("10.1.3.3"), 24));
  CHECK(ip("10.1.2.3").shares(ip("10.1.3.3"), 23));
  CHECK(ip("fd00::1").shares(ip("fd00::ffff"), 64));
  CHECK_FALSE(ip("fd00::1").shares(ip("fd00:0:0:1::1"), 64));
  CHECK_FALSE(ip("10.0.0.1").shares(ip("fd00::1"), 0));
  CHECK(ip("127.0.0.9").is_loopback());
  CHECK(ip("::1").is_loopback());
  CHECK(ip("fe80::1").is_link_local());
  CHECK(SocketAddress(ip("fd00::2"), 5000).text() == "[fd00::2]:5000");
  CHECK(SocketAddress(ip("10.1.0.2"), 5000).text() == "10.1.0.2:5000");
}

TEST_CASE("ofi: the tables of the kernel's routes are read, and what is none is skipped", "[ofi]") {
  const auto routes = read_routes(
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth0\t00000000\t0102000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth1\t0002000A\t00000000\t0001\t0\t0\t20\t00FFFFFF\t0\t0\t0\n"
      "nonsense\n",
      "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 "
      "00000100 "
      "00000001 00000000 00000001     eth0\n"
      "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 "
      "ffffffff "
      "00000001 00000000 00200200       lo\nfd00\n");
  REQUIRE(routes.size() == 3);
  CHECK(routes[0].prefix == 0);
  CHECK(routes[0].metric == 100);
  CHECK(routes[1].network == ip("10.0.2.0"));
  CHECK(routes[1].prefix == 24);
  CHECK(routes[1].interface == "eth1");
  CHECK(routes[2].network == ip("fd00::"));
  CHECK(routes[2].prefix == 64);
}

TEST_CASE("ofi: the same network first, bridges and tunnels last", "[ofi]") {
  const Surroundings own{
      {interface("eth0", "10.1.0.1", 24), interface("docker0", "172.17.0.1", 16, LinkKind::virtual_link)}, {}};
  SECTION("physical before bridge, whatever the order of the card") {
    CHECK(order(own, card_with({{ip("172.17.0.2"), LinkKind::virtual_link}, {ip("10.1.0.2"), LinkKind::physical}})) ==
          std::vector<std::string>{"10.1.0.2", "172.17.0.2"});
  }
  SECTION("same network before one behind a router") {
    CHECK(order(own, card_with({{ip("192.0.2.9"), LinkKind::physical}, {ip("10.1.0.2"), LinkKind::physical}})) ==
          std::vector<std::string>{"10.1.0.2", "192.0.2.9"});
  }
  SECTION("a network of ours by a bridge comes after a physical one behind a router") {
    CHECK(order(own, card_with({{ip("172.17.0.9"), LinkKind::virtual_link}, {ip("192.0.2.9"), LinkKind::physical}})) ==
          std::vector<std::string>{"192.0.2.9", "172.17.0.9"});
  }
  SECTION("an address that is ours too leads to ourselves, most likely: it comes last, with the reason") {
    const auto tried = candidates(
        own, card_with({{ip("172.17.0.1"), LinkKind::virtual_link}, {ip("10.1.0.2"), LinkKind::physical}}), false);
    REQUIRE(tried.size() == 2);
    CHECK(tried[0].ip == ip("10.1.0.2"));
    CHECK_FALSE(tried[0].is_ours);
    CHECK(tried[1].ip == ip("172.17.0.1"));
    CHECK(tried[1].is_ours);
  }
  SECTION(
      "that of another host's loopback device is ours too: who is refused there was not told that nobody is there") {
    Surroundings with_loopback = own;
    with_loopback.interfaces.push_back({"lo", {ip("127.0.0.1"), LinkKind::physical}, 8, true});
    const auto tried = candidates(with_loopback, card_with({{ip("127.0.0.1"), LinkKind::physical}}), false);
    REQUIRE(tried.size() == 1);
    CHECK(tried[0].is_ours);
  }
  SECTION("a process of this host by the loopback address") {
    CHECK(order(own, card_with({{ip("10.1.0.1"), LinkKind::physical}}), true) ==
          std::vector<std::string>{"127.0.0.1", "10.1.0.1"});
  }
}

TEST_CASE("ofi: behind routers, what the kernel would take", "[ofi]") {
  const Surroundings own{
      {interface("eth0", "10.1.0.1", 24), interface("eth1", "10.2.0.1", 24),
       interface("tun0", "10.8.0.1", 32, LinkKind::virtual_link)},
      {{ip("192.0.2.0"), 24, "eth0", 600}, {ip("198.51.100.0"), 24, "eth1", 100}, {ip("203.0.113.0"), 24, "tun0", 0}}};
  CHECK(order(own, card_with({{ip("203.0.113.9"), LinkKind::physical},
                              {ip("192.88.99.9"), LinkKind::physical},
                              {ip("192.0.2.9"), LinkKind::physical},
                              {ip("198.51.100.9"), LinkKind::physical},
                              {ip("10.2.0.9"), LinkKind::physical}})) ==
        std::vector<std::string>{"10.2.0.9", "198.51.100.9", "192.0.2.9", "203.0.113.9", "192.88.99.9"});
}

TEST_CASE("ofi: ULFM_INTERFACE takes a name, an address or a network", "[ofi]") {
  std::vector<Interface> all{interface("eth0", "10.1.0.1", 24), interface("eth1", "10.2.0.1", 24)};
  all.push_back({"lo", {ip("127.0.0.1"), LinkKind::physical}, 8, true});
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
  const auto nothing = choose_interfaces({}, "");
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().what.find("no network interface that is up") != std::string::npos);
  for (const char* wrong : {"eth9", "10.3.0.1", "10.3.0.0/16", "10.1.0.0/33", "10.1.0.0/x", "/8"}) {
    const auto none = choose_interfaces(all, wrong);
    REQUIRE_FALSE(none);
    CHECK(none.error().what.find("there is: eth0 10.1.0.1, eth1 10.2.0.1, lo 127.0.0.1") != std::string::npos);
  }
}

TEST_CASE("ofi: a greeting counts only from who knows token and secret", "[ofi]") {
  const Key key = key_for("secret", 42);
  const Nonce nonce = random_nonce();
  Greeting about{};
  about.to = 1;
  about.from = 2;
  about.pid = 3;
  about.nonce = nonce;
  const Greeting g = greeting(key, about);
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
    CHECK(check(std::as_bytes(std::span(&changed, 1)), key, out) == Refusal::unknown_secret);
  }
  Greeted greeted;
  CHECK(check(bytes, key, greeted, out) == Refusal::none);
  CHECK(check(bytes, key, greeted, out) == Refusal::unknown_secret);
  about.nonce = random_nonce();
  const Greeting again = greeting(key, about);
  CHECK(check(std::as_bytes(std::span(&again, 1)), key, greeted, out) == Refusal::none);
}

TEST_CASE("ofi: an answer counts only from who was meant, and to this greeting", "[ofi]") {
  const Key key = key_for("", 7);
  const Nonce nonce = random_nonce();
  const Welcome w = welcome(key, nonce, 5, 6, 7);
  Welcome out{};
  CHECK(check(std::as_bytes(std::span(&w, 1)), key, nonce, out));
  CHECK(out.connection == 5);
  CHECK(out.most == 7);
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

TEST_CASE("ofi: a frame is as long as both ends allow, also between jobs with other settings", "[ofi]") {
  const auto make = [](auto rows) { return select_transport("ofi").value()->make(test::config_with(rows)).value(); };
  using Rows = std::initializer_list<std::pair<const char*, const char*>>;
  auto usual = make(Rows{}), brief = make(Rows{{"FRAME", "4K"}});
  PortCounters counters;
  const auto longest = [&](Transport& from, Transport& to) {
    const auto inlet = to.open(9, {}).value();
    return from.connect(to.card(), 9, 1, {}, counters).value()->max_frame(0);
  };
  CHECK(longest(*usual, *brief) == 4096);
  CHECK(longest(*brief, *usual) == 4096);
  CHECK(longest(*usual, *usual) == 128 * 1024);
}

TEST_CASE("ofi: a port that is not open and a process that has ended are told apart", "[ofi]") {
  const auto make = [] { return select_transport("ofi").value()->make(test::config_with({})).value(); };
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

TEST_CASE("ofi: a process that ends while somebody connects has ended", "[ofi]") {
  auto here = select_transport("ofi").value()->make(test::config_with({})).value();
  auto there = select_transport("ofi").value()->make(test::config_with({})).value();
  // A listener in its place that cuts off two and then is gone.
  SocketAddress where(Ip::v4(INADDR_LOOPBACK), 0);
  const control::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length = where.room();
  REQUIRE(::bind(listener.get(), where.get(), where.size()) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), where.get(), &length) == 0);
  ProcessCard card = decode("ofi", there->card()).value();
  card.port = where.port();
  std::thread ending([&] {
    for (int i = 0; i < 2; ++i) {
      const control::Fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const linger at_once{1, 0};
      (void)::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    (void)::shutdown(listener.get(), SHUT_RDWR);  // nobody listens any more
  });
  PortCounters counters;
  const auto gone = here->connect(encode("ofi", card), 9, 1, {}, counters);
  ending.join();
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == Errc::peer_failed);
}

TEST_CASE("ofi: a process that reads nothing for long is not given up", "[ofi]") {
  const auto make = [] {
    return select_transport("ofi").value()->make(test::config_with({{"GIVE_UP", "1s"}})).value();
  };
  auto here = make(), there = make();
  PortCounters counters;
  const auto inlet = there->open(9, {}).value();
  const auto outlet = here->connect(there->card(), 9, kNoPort, {}, counters).value();
  const auto bytes = test::pattern_bytes(6, 100000);
  const auto push = [&] {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    Gather data(std::span(&piece, 1));
    return outlet->push(Kind::first, {}, data, bytes.size());
  };
  // More than there is room for, from the beginning to the end.
  std::size_t sent = 0, got = 0;
  for (const auto until = std::chrono::steady_clock::now() + 5s; std::chrono::steady_clock::now() < until;) {
    while (push()) ++sent;
    REQUIRE(outlet->peer_listening());
    std::this_thread::sleep_for(10ms);
  }
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       got < sent && std::chrono::steady_clock::now() < until;) {
    Frame frame;
    if (!inlet->next(frame)) continue;
    REQUIRE(frame.length == bytes.size());
    REQUIRE(std::equal(bytes.begin(), bytes.end(), frame.data));
    inlet->release(frame);
    ++got;
  }
  CHECK(got == sent);
  CHECK(outlet->peer_listening());
}

TEST_CASE("ofi: who comes without the key is refused, counted, and keeps nobody out", "[ofi]") {
  auto here = select_transport("ofi").value()->make(test::config_with({})).value();
  auto there = select_transport("ofi").value()->make(test::config_with({})).value();
  const auto count = [&](std::string_view name) {
    std::uint64_t value = 0;
    for (const NamedCount& one : there->counts()) value += name == one.name ? one.value : 0;
    return value;
  };
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  // libfabric ends some by itself, of which one or another may be missed.
  constexpr std::uint64_t kPeers = 300, kMost = 240;
  {
    const std::string request("\3\1\0\x78", 4);  // of libfabric, with nonsense to come
    const SocketAddress where(Ip::v4(INADDR_LOOPBACK), decode("ofi", there->card())->port);
    std::vector<control::Fd> peers;  // who makes descriptors while others are counted takes those that are awaited
    for (std::uint64_t i = 0; i < kPeers; ++i) peers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (std::uint64_t i = 0; i < kPeers; ++i) {
      REQUIRE(::connect(peers[i].get(), where.get(), static_cast<socklen_t>(where.size())) == 0);
      const std::string said[] = {"", "x", std::string(500, 'x'), request, request + std::string(120, 'x')};
      const std::string& words = said[i % std::size(said)];
      (void)!::send(peers[i].get(), words.data(), words.size(), MSG_NOSIGNAL);
    }
    for (const auto until = std::chrono::steady_clock::now() + 30s;
         count("refused") < kMost && std::chrono::steady_clock::now() < until;)
      std::this_thread::sleep_for(10ms);
    CHECK(count("refused") >= kMost);
    CHECK(count("refused") <= kPeers);
    CHECK(count("accepted") == 0);
    PortCounters counters;
    const auto inlet = there->open(9, {}).value();
    const auto outlet = here->connect(there->card(), 9, kNoPort, {}, counters).value();
    CHECK(count("accepted") >= 1);  // of addresses that are raced, more
    CHECK(outlet->peer_listening());
  }
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       descriptors() > before && std::chrono::steady_clock::now() < until;)
    std::this_thread::sleep_for(10ms);
  CHECK(descriptors() <= before);
}

TEST_CASE("ofi: what another port's thread takes in ends the sleep at a port, also one that has only been announced",
          "[ofi]") {
  const auto make = [] { return select_transport("ofi").value()->make(test::config_with({})).value(); };
  const auto a = make(), b = make();
  PortCounters counters;
  const auto sleeper = b->open(1, {}).value(), other = b->open(2, {}).value();
  const auto outlet = a->connect(b->card(), 1, kNoPort, {}, counters).value();
  const auto send = [&] {
    Gather none;
    return outlet->push(Kind::first, {}, none, 0);
  };
  Frame frame{};
  for (int round = 0; round < 50; ++round) {
    WakeSource& source = sleeper->wake_source();
    source.arm();
    while (sleeper->has_frame()) {  // of the round before, or the connection's first
      REQUIRE(sleeper->next(frame));
      sleeper->release(frame);
    }
    source.cancel();
    source.arm();
    REQUIRE_FALSE(sleeper->has_frame());
    while (!send()) std::this_thread::yield();
    // The library under it takes in what has come for both, in whoever's look.
    for (int look = 0; look < 2000; ++look) CHECK_FALSE(other->next(frame));
    REQUIRE(source.sleep(20s));
    source.cancel();
    while (!sleeper->next(frame)) std::this_thread::yield();
    sleeper->release(frame);
  }
}

TEST_CASE("ofi: each process of a range of ports gets one, and one too many is told so", "[ofi]") {
  // Below the ports that the kernel gives to connections of others.
  const auto make = [] { return select_transport("ofi").value()->make(test::config_with({{"PORTS", "24710-24711"}})); };
  auto a = make(), b = make(), c = make();
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE_FALSE(c);
  CHECK(c.error().what.find("has 2 ports, and none is free here") != std::string::npos);
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
  environment.unset("MPI_LOCALNRANKS");
  environment.set("SLURM_STEP_NUM_NODES", "1");
  CHECK_FALSE(spans_hosts());
  environment.set("SLURM_STEP_NUM_NODES", "2");
  CHECK(spans_hosts());
  environment.set("MPI_LOCALNRANKS", "4");  // of mpiexec in an allocation of Slurm
  CHECK_FALSE(spans_hosts());
}
