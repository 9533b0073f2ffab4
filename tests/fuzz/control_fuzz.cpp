// What comes from a control connection, before and after the other side is known, in pieces; and endpoint keys.
#include "fuzz.hpp"
#include "job/control/handshake.hpp"

using namespace ulfm::control;

namespace {

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void read_packet(Type type, std::span<const std::byte> body) {
  switch (type) {
    case Type::set_up: (void)read_set_up(body); break;
    case Type::descriptor_request: (void)read_descriptor_request(body); break;
    case Type::descriptor: (void)read_descriptor_answer(body); break;
    case Type::abort:
      if (const auto abort = read_abort(body)) must(abort->sentence.size() <= kMostSentence, "a sentence is bounded");
      break;
    case Type::goodbye: must(body.empty(), "a goodbye says nothing more"); break;
    default: must(false, "a packet that belongs to the set-up came through");
  }
}

/// Hands the input to a reader in pieces whose sizes its bytes give; `take` gets whole packets and ends it with false.
template <typename Take>
void feed(PacketReader& reader, std::string_view bytes, Take take) {
  while (!bytes.empty()) {
    const auto room = reader.room();
    must(!room.empty() && room.size() <= kMostBody, "the room is bounded and there is some");
    const std::size_t piece = 1u + static_cast<unsigned char>(bytes[0]) % 9;
    const std::size_t n = std::min({room.size(), bytes.size(), piece});
    std::memcpy(room.data(), bytes.data(), n);
    bytes.remove_prefix(n);
    const auto step = reader.took(n);
    if (step == PacketReader::Step::broken) return;
    if (step == PacketReader::Step::more) continue;
    read_all(reader.body().data(), reader.body().size());
    if (!take()) return;
    reader.next();
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const Secret secret{};
  const Identity who{1, 2, 3, 4, "direct:0"};
  const std::string greeted = text_of(greeting(Nonce{})) + text_of(proof_packet(Proof{})) + text_of(packet(who));
  const std::string session = text_of(packet(SetUp{1, 2})) + text_of(packet(DescriptorRequest{1, 0})) +
                              text_of(packet(DescriptorAnswer{1, Passing::here})) + text_of(packet(Abort{1, "why"})) +
                              text_of(goodbye());
  return {std::string(1, '\0') + greeted, "\1" + session,
          "\2" + text_of(challenge(Nonce{}, Proof{})) + text_of(packet(who)),
          "\3" + encode({SocketKind::tcp, 0x7f000001, 1, "", secret}),
          "\3" + encode({SocketKind::unix_socket, 0, 0, "0f", secret})};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzInput input(bytes, size);
  const Secret secret{7};
  const auto which = input.take<std::uint8_t>() % 4;
  PacketReader reader;
  Bytes out;
  if (which == 0) {
    Acceptor acceptor(secret);
    feed(reader, input.rest(), [&] {
      const bool good = acceptor.take(reader.body(), out).has_value();
      reader.expect(acceptor.expects());
      return good;
    });
    must(!acceptor.done(), "an unauthenticated peer was let in");
    must(out.size() <= kHead + 48, "an unauthenticated peer gets one answer");
  } else if (which == 1) {
    reader.expect_session();
    feed(reader, input.rest(), [&] { return read_packet(reader.type(), reader.body()), true; });
  } else if (which == 2) {
    Connector connector(secret, Identity{}, Nonce{});
    reader.expect(connector.expects());
    feed(reader, input.rest(), [&] {
      const bool good = connector.take(reader.body(), out).has_value();
      reader.expect(connector.expects());
      return good;
    });
    must(!connector.done() && out.empty(), "an unauthenticated peer was told something");
  } else {
    const std::string text(input.rest());
    if (const auto key = decode_key(text)) must(encode(*key) == text, "a key has one text");
    must(identity_of(text).size() + key_in(text).size() <= text.size(), "a card has two parts");
  }
  return 0;
}
