// The control channel between processes and inside one: set-up, secrets, unauthenticated peers, descriptors, ends.
#include "job/control/control.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

#include "base/wait.hpp"
#include "child.hpp"
#include "environment.hpp"
#include "job/control/handshake.hpp"
#include "job/liveness.hpp"
#include "proto/stack.hpp"
#include "transport/registry.hpp"

using namespace ulfm;
using namespace ulfm::control;
using namespace std::chrono_literals;

namespace {

ControlSettings settings_for(control::SocketKind kind) {
  ControlSettings settings;
  settings.kind = kind;
  return settings;
}

std::unique_ptr<Control> start(control::SocketKind kind, const std::string& identity, Source source = {}) {
  return Control::start(settings_for(kind), identity, std::move(source)).value();
}

/// Sets up, and waits for what becomes of it.
Result<void> connect(Control& from, const std::string& card, std::uint16_t to = 1, std::uint16_t port = 1) {
  if (auto ok = from.set_up(card, to, port); !ok) return ok;
  return from.await(identity_of(card));
}

EndpointKey key_of(const Control& control) { return decode_key(key_in(control.card())).value(); }

/// Asks again and again, with the threads of the channels at work, for at most 20 s.
template <typename Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!condition())
    if (std::chrono::steady_clock::now() > until) return false;
    else std::this_thread::yield();
  return true;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

Fd raw_connection(const Control& control) {
  Fd fd = begin_connect(key_of(control)).value();
  pollfd p{fd.get(), POLLOUT, 0};
  REQUIRE(poll(&p, 1, 20000) == 1);
  REQUIRE(outcome(fd) == 0);
  return fd;
}

/// The other side has closed it.
bool is_closed(const Fd& fd) {
  char bytes[256];
  pollfd p{fd.get(), POLLIN, 0};
  while (poll(&p, 1, 20000) == 1) {
    const ssize_t got = recv(fd.get(), bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
    if (got < 0) return false;
  }
  return false;
}

void send_to(const Fd& fd, const Bytes& bytes) { (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

}  // namespace

TEST_CASE("a first set-up connects, the other direction uses the same connection", "[control]") {
  const control::SocketKind kind = GENERATE(control::SocketKind::tcp, control::SocketKind::unix_socket);
  const auto a = start(kind, "card:a"), b = start(kind, "card:b");
  REQUIRE(connect(*a, b->card(), 1, 2));
  CHECK(a->connections() == 1);
  CHECK(b->connections() == 1);
  REQUIRE(b->set_up("card:a", 2, 1));  // as data from it name it: without a key
  REQUIRE(b->set_up(a->card(), 2, 3));
  CHECK(b->connections() == 1);
  CHECK(contains(a->statistics("rank 0"), std::string("control ") + kKindNames[static_cast<std::size_t>(kind)] +
                                              ": connections 1 made 0 accepted"));
  CHECK(contains(b->statistics("rank 1"), "connections 0 made 1 accepted"));
  CHECK(eventually([&] { return contains(a->statistics("rank 0"), "set-ups 1 sent 2 received"); }));
  CHECK(b->unauthenticated().all() == 0);
}

TEST_CASE("a process needs no control connection to itself, nor to one without a control channel", "[control]") {
  const auto a = start(control::SocketKind::tcp, "card:a");
  CHECK(a->set_up(a->card(), 1, 1));
  CHECK(a->set_up("card:without", 1, 1));
  CHECK(a->connections() == 0);
  CHECK(a->await("card:without").error().code == Errc::unavailable);
}

TEST_CASE("who leaves at once still makes the connection that was begun", "[control]") {
  const auto a = start(control::SocketKind::tcp, "card:a");
  {
    const auto b = start(control::SocketKind::tcp, "card:b");
    REQUIRE(b->set_up(a->card(), 1, 1));
  }
  CHECK(eventually([&] { return contains(a->statistics("rank 0"), "set-ups 0 sent 1 received"); }));
  CHECK(a->unauthenticated().all() == 0);
  CHECK(contains(a->statistics("rank 0"), "ended without goodbye 0"));
}

TEST_CASE("an address that names nobody is refused in words", "[control]") {
  const auto a = start(control::SocketKind::tcp, "card:a");
  std::string card;
  {
    const auto gone = start(GENERATE(control::SocketKind::tcp, control::SocketKind::unix_socket), "card:gone");
    card = gone->card();
  }
  const auto refused = connect(*a, card);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::peer_failed);
  CHECK(contains(refused.error().what, "card:gone: nobody listens"));
  CHECK_FALSE(contains(refused.error().what, std::string(key_in(card))));  // a secret is not for messages
  CHECK(a->set_up("card:b+nonsense", 1, 1).error().code == Errc::protocol);
}

TEST_CASE("who does not know the secret is refused on either side", "[control]") {
  const auto a = start(control::SocketKind::tcp, "card:a"), b = start(control::SocketKind::tcp, "card:b");
  EndpointKey wrong = key_of(*b);
  wrong.secret[31] ^= 1;
  // The acceptor shows first that it knows the secret that we expect.
  const auto refused = connect(*a, join_card("card:b", wrong));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::peer_failed);
  CHECK(contains(refused.error().what, "another process listens"));
  // A connector that pretends: the right format, a proof with the wrong secret.
  const Fd fd = raw_connection(*b);
  send_to(fd, greeting(random_nonce()));
  send_to(fd, proof_packet(proof_of(wrong.secret, kConnectorLabel, random_nonce(), random_nonce())));
  CHECK(is_closed(fd));
  CHECK(eventually([&] { return b->unauthenticated().refused == 1 && b->unauthenticated().left == 1; }));
  CHECK(b->connections() == 0);
  CHECK(connect(*a, b->card()));
}

TEST_CASE("the acceptor's own proof is none for a connector", "[control]") {
  const auto a = start(control::SocketKind::tcp, "card:a");
  const Fd fd = raw_connection(*a);
  send_to(fd, greeting(Nonce{}));
  PacketReader reader;
  reader.expect(Type::challenge);
  for (auto step = PacketReader::Step::more; step != PacketReader::Step::whole;) {
    pollfd p{fd.get(), POLLIN, 0};
    REQUIRE(poll(&p, 1, 20000) == 1);
    const auto room = reader.room();
    const ssize_t got = recv(fd.get(), room.data(), room.size(), 0);
    REQUIRE(got > 0);
    step = reader.took(static_cast<std::size_t>(got));
    REQUIRE(step != PacketReader::Step::broken);
  }
  send_to(fd, proof_packet(read_challenge(reader.body()).value().second));
  CHECK(is_closed(fd));
  CHECK(a->unauthenticated().refused == 1);
}

TEST_CASE("unauthenticated peers who say nothing, or too slowly, are timed out", "[control]") {
  ControlSettings settings;
  settings.handshake_time = 100ms;
  const auto a = Control::start(settings, "card:a").value();
  const Fd silent = raw_connection(*a), slow = raw_connection(*a);
  const Bytes bytes = greeting(Nonce{});
  std::size_t sent = 0;
  // A byte at a time: the time counts from the beginning, not from the last byte.
  while (a->unauthenticated().timed_out < 2 && sent < 3)
    if (send(slow.get(), &bytes[sent], 1, MSG_NOSIGNAL) == 1) ++sent;
  CHECK(is_closed(silent));
  CHECK(is_closed(slow));
  CHECK(a->unauthenticated().timed_out == 2);
}

TEST_CASE("unauthenticated peers have a bounded number of places and keep no peer out", "[control]") {
  ControlSettings settings;
  settings.unauthenticated_limit = 8;
  const auto a = Control::start(settings, "card:a").value(), b = start(control::SocketKind::tcp, "card:b");
  std::vector<Fd> unauthenticated;
  for (int i = 0; i < 50; ++i) unauthenticated.push_back(raw_connection(*a));
  CHECK(connect(*b, a->card()));
  CHECK(a->unauthenticated().crowded_out >= 50 - 8);
  CHECK(is_closed(unauthenticated.front()));
  unauthenticated.clear();
  CHECK(eventually([&] { return a->unauthenticated().all() == 50; }));
}

TEST_CASE("descriptors go by Unix-domain sockets, and only there", "[control]") {
  const auto source = [](std::uint32_t what) {
    if (what != 7) return Fd{};
    Fd fd(memfd_create("passed", MFD_CLOEXEC));
    (void)!write(fd.get(), "seven", 5);
    return fd;
  };
  const auto a = start(control::SocketKind::unix_socket, "card:a", source);
  const auto b = start(control::SocketKind::unix_socket, "card:b", source);
  REQUIRE(a->set_up(b->card(), 1, 1));  // which fetch() waits for
  REQUIRE(a->fetch("card:b", 7));
  for (Control* from : {a.get(), b.get()}) {
    const char* to = from == a.get() ? "card:b" : "card:a";
    for (int i = 0; i < 100; ++i) {
      const auto fd = from->fetch(to, 7);
      REQUIRE(fd);
      char text[6] = {};
      CHECK(pread(fd->get(), text, 5, 0) == 5);
      CHECK(text == std::string("seven"));
    }
    CHECK(from->fetch(to, 8).error().code == Errc::not_found);
    CHECK(from->fetch("card:c", 7).error().code == Errc::unavailable);
  }
  const auto t = start(control::SocketKind::tcp, "card:t", source);
  REQUIRE(connect(*a, t->card()));
  CHECK(a->fetch("card:t", 7).error().code == Errc::unavailable);
}

TEST_CASE("everybody connects to everybody at once", "[control]") {
  const control::SocketKind kind = GENERATE(control::SocketKind::tcp, control::SocketKind::unix_socket);
  constexpr std::size_t kAll = 12;
  std::vector<std::unique_ptr<Control>> all;
  for (std::size_t i = 0; i < kAll; ++i) all.push_back(start(kind, "card:" + std::to_string(i)));
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (std::size_t i = 0; i < kAll; ++i)
    threads.emplace_back([&, i] {
      for (std::size_t j = 0; j < kAll; ++j)
        if (i != j && !connect(*all[i], all[j]->card())) ++failed;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  for (const auto& one : all) {
    CHECK(one->connections() >= kAll - 1);
    CHECK(one->unauthenticated().all() == 0);
  }
}

TEST_CASE("a killed process is known as gone, one that leaves in good order is not", "[control]") {
  const control::SocketKind kind = GENERATE(control::SocketKind::tcp, control::SocketKind::unix_socket);
  test::Child child([&](test::Pipe& parent) {
    const auto mine = start(kind, "card:child");
    parent.send(mine->card());
    parent.receive();
  });
  const std::string card = child.pipe().receive();
  const auto a = start(kind, "card:a");
  REQUIRE(connect(*a, card));
  const bool kill = GENERATE(true, false);
  if (kill) child.strike();
  else child.pipe().send("go");
  CHECK(eventually([&] { return a->connections() == 0; }));
  CHECK(contains(a->statistics("rank 0"), kill ? "ended without goodbye 1" : "ended without goodbye 0"));
  CHECK(connect(*a, card).error().code == Errc::peer_failed);
}

TEST_CASE("a process that gives up tells its peers why", "[control]") {
  test::Child child([&](test::Pipe& parent) {
    const auto mine = start(control::SocketKind::tcp, "card:child");
    parent.send(mine->card());
    parent.receive();
    mine->abort(3, "it has lost its way");
    _exit(3);
  });
  const auto a = start(control::SocketKind::tcp, "card:a");
  REQUIRE(connect(*a, child.pipe().receive()));
  child.pipe().send("go");
  CHECK(eventually([&] { return a->connections() == 0; }));
  CHECK(contains(a->statistics("rank 0"), "aborts 1, ended without goodbye 1"));
}

TEST_CASE("a forked child has no part in the channel and keeps nobody's connection open", "[control]") {
  test::Child parent([&](test::Pipe& out) {
    auto mine = start(control::SocketKind::tcp, "card:parent");
    out.send(mine->card());
    const std::string other = out.receive();
    test::Child lives_on([&](test::Pipe& up) {
      up.send(mine->set_up(other, 1, 1) ? "took part" : "refused");
      mine.reset();
      up.send("closed");
      (void)!pause();
    });
    const std::string first = lives_on.pipe().receive();
    out.send(first + " " + lives_on.pipe().receive());
    (void)!pause();
  });
  const auto b = start(control::SocketKind::tcp, "card:b");  // no threads before the fork
  REQUIRE(connect(*b, parent.pipe().receive()));
  parent.pipe().send(b->card());
  CHECK(parent.pipe().receive() == "refused closed");
  CHECK(b->connections() == 1);
  parent.strike();
  CHECK(eventually([&] { return b->connections() == 0; }));
}

TEST_CASE("direct reaches a process whose /proc is closed when descriptors are passed", "[control][direct]") {
  const char* control = GENERATE("auto", "unix");
  const bool passed = std::string(control) == "unix";
  // Another user than root, for whom nothing is closed; and undumpable, as a set-uid program is.
  const auto drop = [] {
    if (geteuid() == 0) (void)!setresuid(65534, 65534, 65534);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  };
  const auto stack_of = [&] {
    test::Environment environment;
    environment.set("ULFM_CONTROL", control);
    const Config config = Config::load().value();
    return make_stack(config, *select_transport("direct").value(), 0).value();
  };
  test::Child receiver([&](test::Pipe& parent) {
    drop();
    TransportStack stack = stack_of();
    auto inlet = stack.transport->open(5, {}).value();
    parent.send(stack.transport->card());
    Frame frame;
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (passed && !inlet->next(frame) && std::chrono::steady_clock::now() < until) yield_now();
    parent.send(passed && frame.length == 3 ? "three bytes" : "nothing");
    parent.receive();
  });
  const std::string card = receiver.pipe().receive();
  test::Child sender([&](test::Pipe& parent) {
    drop();
    TransportStack stack = stack_of();
    PortCounters counters;
    auto outlet = stack.transport->connect(card, 5, kNoPort, {}, counters);
    if (outlet) {
      char text[] = "abc";
      const iovec piece{text, 3};
      Gather data(std::span(&piece, 1));
      parent.send((*outlet)->push(ulfm::Kind::first, {}, data, 3) ? "sent" : "full");
      parent.receive();
    } else {
      parent.send(outlet.error().what);
    }
  });
  const std::string said = sender.pipe().receive();
  if (passed) CHECK(said == "sent");
  else CHECK(contains(said, "must run as the same user in the same pid namespace (or ULFM_CONTROL=unix)"));
  CHECK(receiver.pipe().receive() == (passed ? "three bytes" : "nothing"));
}
