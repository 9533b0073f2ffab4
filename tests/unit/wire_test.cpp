// The test vectors of docs/wire.md, both ways: what is written there is what goes over the wire.
#include <catch2/catch.hpp>

#include <span>
#include <string>
#include <vector>

#include "base/crc32c.hpp"
#include "fabric/pcie/packet.hpp"
#include "job/control/handshake.hpp"
#include "proto/framing.hpp"
#include "proto/reliable/wire.hpp"

using namespace ulfm;

namespace {

std::string hex(std::span<const std::byte> bytes) {
  static constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += digits[static_cast<unsigned>(b) >> 4];
    text += digits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
  return bytes;
}

}  // namespace

TEST_CASE("a control packet of a board is as docs/wire.md has it", "[wire][pcie]") {
  const fabric::pcie::ControlPacket packet{1, 0x0a0b0c0d, 2, 7, 33, 118, 70000};
  const std::string wire = "000100000d0c0b0a020007002100760070110100";
  CHECK(hex(encode(packet)) == wire);
  fabric::pcie::ControlPacket read;
  REQUIRE(decode(bytes_of(wire), read));
  CHECK(read == packet);
  fabric::pcie::DataHeader other;
  CHECK_FALSE(decode(bytes_of(wire), other));
  CHECK_FALSE(decode(bytes_of(wire.substr(0, 38)), read));
  CHECK_FALSE(decode(bytes_of("000101000d0c0b0a020007002100760070110100"), read));
}

TEST_CASE("a data packet of a board is as docs/wire.md has it", "[wire][pcie]") {
  const fabric::pcie::DataHeader header{0x0a0b0c0d, 3, 4096};
  const std::string wire = "010000000d0c0b0a0300000000100000";
  CHECK(hex(encode(header)) == wire);
  fabric::pcie::DataHeader read;
  REQUIRE(decode(bytes_of(wire), read));
  CHECK(read == header);
  fabric::pcie::ControlPacket other;
  CHECK_FALSE(decode(bytes_of(wire + "00000000"), other));
  CHECK_FALSE(decode(bytes_of(wire.substr(0, 30)), read));
  CHECK_FALSE(decode(bytes_of("010000000d0c0b0a0300000100100000"), read));
}

TEST_CASE("the header of a message on ports is as docs/wire.md has it", "[wire]") {
  std::byte header[kMessageHeader];
  put_length(header, 0x123456789aull);
  CHECK(hex(header) == "9a78563412000000");
  CHECK(get_length(bytes_of("9a78563412000000").data()) == 0x123456789aull);
}

TEST_CASE("the header of the protocol is as docs/wire.md has it", "[wire][reliable]") {
  // The frame "hello" with the header 05 00 00 00 00 00 00 00 of a message on ports.
  const auto body = bytes_of("050000000000000068656c6c6f");
  reliable::WireHeader header;
  header.payload = reliable::Payload::first;
  header.header = 8;
  header.has_ack = true;
  header.stream = 1;
  header.number = 42;
  header.ack = {7, 17, 0x5, 1024};
  std::byte wire[reliable::kWireMost];
  encode(header, crc32c(body.data(), body.size()), wire);
  const std::string text = hex(std::span(wire, header.size()));
  CHECK(text == "4f58e9ef05080004010000002a00000007000000110000000500000000000000");

  std::vector<std::byte> frame_header = bytes_of(text);
  frame_header.insert(frame_header.end(), body.begin(), body.begin() + 8);
  Frame frame;
  frame.header = frame_header.data();
  frame.header_length = static_cast<std::uint8_t>(frame_header.size());
  frame.data = body.data() + 8;
  frame.length = 5;
  reliable::WireHeader read;
  REQUIRE(reliable::decode(frame, read));
  CHECK(read.number == 42);
  CHECK(read.ack.next == 17);
  CHECK(read.ack.credit == 1024);
  frame_header[9] ^= std::byte{1};
  CHECK_FALSE(reliable::decode(frame, read));
}

TEST_CASE("the checksum is as docs/wire.md has it", "[wire]") {
  const std::string_view text = "123456789";
  CHECK(crc32c(reinterpret_cast<const std::byte*>(text.data()), text.size()) == 0xe3069283);
}

TEST_CASE("the packets of the control channel are as docs/wire.md has them", "[wire][control]") {
  using namespace control;
  Secret secret{};
  Nonce a{}, b{};
  for (std::uint8_t i = 0; i < 32; ++i) secret[i] = i;
  for (std::uint8_t i = 0; i < 16; ++i) a[i] = 0xa0 + i, b[i] = 0xb0 + i;
  const Proof acceptor = proof_of(secret, kAcceptorLabel, a, b), connector = proof_of(secret, kConnectorLabel, a, b);
  const std::string greeting_wire = "010018007563746c01000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf";
  const std::string challenge_wire =
      "02003000b0b1b2b3b4b5b6b7b8b9babbbcbdbebff02442e32c3ae34782f1202ed14035101cf11a7c958b082d1cbcb639"
      "3e2c7ad2";
  const std::string proof_wire = "0300200001becc963f99fad4d816ae02a6ae05a4cd5b3df6f56a2b69aa1e7873ec7df051";
  const std::string identity_wire =
      "040025006712000003000000887766554433221100ffeeddccbbaa990b006469726563743a30313233";
  const std::string abort_wire = "08000c0007000000060069742069732e";
  CHECK(hex(greeting(a)) == greeting_wire);
  CHECK(hex(challenge(b, acceptor)) == challenge_wire);
  CHECK(hex(proof_packet(connector)) == proof_wire);
  CHECK(hex(packet(Identity{4711, 3, 0x1122334455667788, 0x99aabbccddeeff00, "direct:0123"})) == identity_wire);
  CHECK(hex(packet(SetUp{1, 63})) == "0500040001003f00");
  CHECK(hex(packet(Abort{7, "it is."})) == abort_wire);

  const auto body = [](const std::string& wire) { return bytes_of(std::string_view(wire).substr(2 * kHead)); };
  CHECK(read_greeting(body(greeting_wire)).value() == a);
  CHECK(read_challenge(body(challenge_wire)).value() == std::pair{b, acceptor});
  CHECK(read_proof(body(proof_wire)).value() == connector);
  CHECK(read_identity(body(identity_wire))->card == "direct:0123");
  CHECK(read_identity(body(identity_wire))->host == 0x99aabbccddeeff00);
  CHECK(read_abort(body(abort_wire))->code == 7);
}
