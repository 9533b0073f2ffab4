// Sequences of frames from a sender that follows no rule: a receiver that does what FrameReader says never
// writes outside the buffer it was told to make.
#include "fuzz.hpp"
#include "proto/framing.hpp"

using namespace ulfm;

namespace {
std::string frame_text(Kind kind, std::uint8_t header, std::uint8_t length, std::uint64_t total) {
  std::string text{static_cast<char>(kind), static_cast<char>(header), static_cast<char>(length)};
  std::byte bytes[8];
  put_length(bytes, total);
  return text + std::string(reinterpret_cast<const char*>(bytes), 8);
}
}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {frame_text(Kind::first, 8, 10, 30) + frame_text(Kind::more, 0, 10, 0) + frame_text(Kind::more, 0, 10, 0),
          frame_text(Kind::first, 8, 0, 0) + frame_text(Kind::first, 8, 200, 200),
          frame_text(Kind::first, 8, 1, ~0ull) + frame_text(Kind::more, 0, 255, 0)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzInput input(bytes, size);
  FrameReader reader;
  std::uint64_t total = 0, got = 0;
  while (input.more()) {
    Frame frame;
    std::byte header[255] = {};
    frame.kind = static_cast<Kind>(input.take<std::uint8_t>());
    frame.header_length = input.take<std::uint8_t>();
    frame.length = input.take<std::uint8_t>();
    const auto announced = input.take<std::uint64_t>();
    put_length(header, announced);
    frame.header = header;
    switch (reader.step(frame)) {
      case FrameReader::Step::broken: return 0;  // the sender is cut off
      case FrameReader::Step::whole:
        must(got == total && reader.total() == frame.length && reader.total() == announced, "whole is whole");
        got = total = frame.length;
        break;
      case FrameReader::Step::begins:
        must(got == total && reader.offset() == 0 && frame.length < reader.total(), "a beginning is at the beginning");
        total = reader.total();
        got = frame.length;
        break;
      case FrameReader::Step::continues:
      case FrameReader::Step::completes: {
        must(reader.total() == total && reader.offset() == got, "a piece lies behind the last one");
        must(frame.length != 0 && frame.length <= total - got, "a piece lies inside the message");
        got += frame.length;
        break;
      }
    }
  }
  return 0;
}
