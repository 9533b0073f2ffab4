// Packets of the control channel and the states of its set-up, from any bytes in any pieces.
#include <catch2/catch.hpp>

#include <algorithm>

#include "job/control/handshake.hpp"
#include "property.hpp"

using namespace ulfm;
using namespace ulfm::control;

namespace {

const Identity kSomebody{4711, 3, 0x1122334455667788, 0x99aabbccddeeff00, "direct:0123"};

/// Feeds bytes in pieces of drawn sizes, never more than there is room for, and hands packets to `take`; false as soon
/// as one breaks or is not taken.
template <typename Take>
bool feed(PacketReader& reader, std::span<const std::byte> bytes, test::Draw& draw, Take take) {
  while (!bytes.empty()) {
    const auto room = reader.room();
    test::must(!room.empty(), "no room");
    const std::size_t n = std::min({room.size(), bytes.size(), std::size_t{1} + draw.below(40)});
    std::copy_n(bytes.begin(), n, room.begin());
    bytes = bytes.subspan(n);
    const auto step = reader.took(n);
    if (step == PacketReader::Step::broken) return false;
    if (step == PacketReader::Step::more) continue;
    if (!take()) return false;
    reader.next();
  }
  return true;
}

std::span<const std::byte> body_of(const Bytes& packet) { return std::span(packet).subspan(kHead); }

Secret secret_of(std::uint8_t seed) {
  Secret secret{};
  secret.fill(seed);
  return secret;
}

}  // namespace

TEST_CASE("an endpoint key has one text", "[control]") {
  EndpointKey tcp{SocketKind::tcp, 0x7f000001, 41234, "", secret_of(0xa5)};
  const std::string text = encode(tcp);
  CHECK(text.substr(0, 26) == "tcp:127.0.0.1:41234:a5a5a5");
  CHECK(text.size() <= 100);
  const auto read = decode_key(text);
  REQUIRE(read);
  CHECK(read->address == tcp.address);
  CHECK(read->port == tcp.port);
  CHECK(read->secret == tcp.secret);
  EndpointKey unix_key{SocketKind::unix_socket, 0, 0, "0001f", secret_of(1)};
  CHECK(decode_key(encode(unix_key))->name == "0001f");

  const std::string card = join_card("direct:abc", tcp);
  CHECK(identity_of(card) == "direct:abc");
  CHECK(key_in(card) == text);
  CHECK(identity_of("direct:abc") == "direct:abc");
  CHECK(key_in("direct:abc").empty());

  const std::string secret = text.substr(text.rfind(':'));
  for (const std::string& wrong :
       {std::string(), std::string("tcp"), std::string("tcp:"), "tcp:127.0.0.1" + secret, "tcp:127.0.0.1:0" + secret,
        "tcp:127.0.0.1:65536" + secret, "tcp:127.0.0.256:1" + secret, "tcp:127.0.1:1" + secret,
        "tcp:127.0.0.01:1" + secret, "udp:127.0.0.1:1" + secret, "unix:" + secret, "unix:xyz" + secret,
        "unix:000000000000000000001" + secret, text + "0", text.substr(0, text.size() - 1), text + " ",
        "tcp:127.0.0.1:1:A5" + secret.substr(3)})
    CHECK_FALSE(decode_key(wrong));
}

TEST_CASE("any text is an endpoint key or an error", "[control]") {
  test::property("changed keys", [](test::Draw& draw) {
    std::string text = encode({SocketKind::tcp, 0x7f000001, 41234, "", secret_of(0xa5)});
    while (draw.more()) text[draw.below(static_cast<std::uint32_t>(text.size()))] = "019af:.+ x"[draw.below(10)];
    if (const auto key = decode_key(text)) test::must(encode(*key) == text, "two texts for one key");
  });
}

TEST_CASE("packets are read as they were written", "[control]") {
  const auto identity = read_identity(body_of(packet(kSomebody)));
  REQUIRE(identity);
  CHECK(identity->pid == kSomebody.pid);
  CHECK(identity->rank == kSomebody.rank);
  CHECK(identity->started == kSomebody.started);
  CHECK(identity->host == kSomebody.host);
  CHECK(identity->card == kSomebody.card);
  CHECK(read_set_up(body_of(packet(SetUp{1, 63})))->to_port == 63);
  CHECK(read_descriptor_request(body_of(packet(DescriptorRequest{9, 64})))->what == 64);
  const auto answer = read_descriptor_answer(body_of(packet(DescriptorAnswer{9, Passing::not_there})));
  CHECK(answer->passing == Passing::not_there);
  const auto abort = read_abort(body_of(packet(Abort{-9, "why\nnot"})));
  CHECK(abort->code == -9);
  CHECK(abort->sentence == "why?not");
  CHECK(goodbye().size() == kHead);

  Identity bad = kSomebody;
  for (const char* card : {"", "a b", "a+b", "\n"}) {
    bad.card = card;
    CHECK_FALSE(read_identity(body_of(packet(bad))));
  }
  bad = kSomebody;
  bad.card.assign(1000, 'x');
  CHECK(read_identity(body_of(packet(bad)))->card.size() == kMostCard);
  CHECK(packet(Abort{1, std::string(1000, 'x')}).size() <= kHead + kMostBody);
}

TEST_CASE("the packets of an unauthenticated peer are bounded by what is expected", "[control]") {
  PacketReader reader;
  CHECK(reader.room().size() == kHead);
  const Bytes wrong_type = packet(kSomebody);
  std::copy_n(wrong_type.begin(), kHead, reader.room().begin());
  CHECK(reader.took(kHead) == PacketReader::Step::broken);
  for (const std::uint32_t length : {0u, 23u, 25u, 508u, 65535u}) {
    PacketReader again;
    Bytes head = greeting(Nonce{});
    head[2] = static_cast<std::byte>(length & 255), head[3] = static_cast<std::byte>(length >> 8);
    std::copy_n(head.begin(), kHead, again.room().begin());
    CHECK(again.took(kHead) == PacketReader::Step::broken);
  }
}

TEST_CASE("packets survive any division", "[control]") {
  test::property("pieces", [](test::Draw& draw) {
    Bytes all;
    std::vector<Type> sent, seen;
    for (int i = 0; i < 20; ++i) {
      const Bytes one = i % 4 == 0   ? packet(SetUp{1, 2})
                        : i % 4 == 1 ? packet(Abort{1, std::string(draw.below(400), 'a')})
                        : i % 4 == 2 ? goodbye()
                                     : packet(DescriptorAnswer{1, Passing::here});
      sent.push_back(static_cast<Type>(one[0]));
      all.insert(all.end(), one.begin(), one.end());
    }
    PacketReader reader;
    reader.expect_session();
    test::must(feed(reader, all, draw, [&] { return seen.push_back(reader.type()), true; }), "broken");
    test::must(seen == sent, "other packets");
  });
}

namespace {

/// One side's bytes to the other, in pieces; the answer comes back in `out`.
template <typename Side>
Result<void> pass(const Bytes& bytes, Side& side, PacketReader& reader, Bytes& out, test::Draw& draw) {
  Result<void> result;
  reader.expect(side.expects());
  const bool whole = feed(reader, bytes, draw, [&] {
    result = side.take(reader.body(), out);
    reader.expect(side.expects());
    return result.has_value();
  });
  if (!whole && result) return fail(Errc::protocol, "broken");
  return result;
}

}  // namespace

TEST_CASE("two sides that know the secret find each other in any pieces; one changed bit ends it", "[control]") {
  test::property("handshake", [](test::Draw& draw) {
    const Secret secret = secret_of(7);
    Connector connector(secret, kSomebody);
    Acceptor acceptor(secret);
    PacketReader at_connector, at_acceptor;
    Bytes there = connector.greeting(), back;
    const bool damage = draw.one_in(2);
    const std::uint32_t which = draw.below(2), bit = draw.any();
    const auto turn = [&](Bytes& bytes) {
      // Not in the nonces of the first packet's end only: every byte counts.
      if (damage) bytes[bit / 8 % bytes.size()] ^= static_cast<std::byte>(1 << bit % 8);
    };
    if (which == 0) turn(there);
    Result<void> ok = pass(there, acceptor, at_acceptor, back, draw);
    there.clear();
    if (which == 1 && ok) turn(back);
    if (ok) ok = pass(back, connector, at_connector, there, draw);
    if (!damage) {
      test::must(ok.has_value(), "the acceptor's proof is refused");
      test::must(pass(there, acceptor, at_acceptor, back, draw).has_value(), "the connector's proof is refused");
      test::must(acceptor.done() && acceptor.peer().card == kSomebody.card, "the identity is lost");
      Bytes nothing;
      test::must(pass(packet(kSomebody), connector, at_connector, nothing, draw).has_value(), "no welcome");
      test::must(connector.done() && nothing.empty(), "not done");
    } else {
      test::must(!ok, "a changed bit went unnoticed");
    }
  });
}

TEST_CASE("secrets and proofs differ in every part", "[control]") {
  const Nonce a{1}, b{2};
  const Proof proof = proof_of(secret_of(1), kConnectorLabel, a, b);
  CHECK(proof == proof_of(secret_of(1), kConnectorLabel, a, b));
  CHECK(proof != proof_of(secret_of(2), kConnectorLabel, a, b));
  CHECK(proof != proof_of(secret_of(1), kAcceptorLabel, a, b));
  CHECK(proof != proof_of(secret_of(1), kConnectorLabel, b, a));
  CHECK(random_secret() != random_secret());
  CHECK(random_nonce() != random_nonce());
}

TEST_CASE("any bytes end a handshake or wait for more", "[control]") {
  test::property("random bytes", [](test::Draw& draw) {
    const Secret secret = secret_of(7);
    Acceptor acceptor(secret);
    PacketReader reader;
    reader.expect(acceptor.expects());
    Bytes bytes = draw.one_in(2) ? greeting(Nonce{}) : Bytes{}, out;
    while (draw.more()) bytes.push_back(static_cast<std::byte>(draw.any()));
    (void)feed(reader, bytes, draw, [&] {
      const bool good = acceptor.take(reader.body(), out).has_value();
      reader.expect(acceptor.expects());
      return good;
    });
    test::must(!acceptor.done(), "an unauthenticated peer was let in");
    test::must(out.size() <= kHead + 48, "an unauthenticated peer gets one answer");
  });
}
