#include "proto/framing.hpp"

#include <deque>

#include "pattern.hpp"
#include "property.hpp"

using namespace ulfm;

namespace {

struct Stored {
  Kind kind;
  std::vector<std::byte> header, data;
};

/// An outlet into a queue, with frame sizes and refusals as drawn.
class QueueOutlet final : public Outlet {
 public:
  QueueOutlet(test::Draw& draw, std::size_t limit) : draw_(draw), limit_(limit) {}

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    if (draw_.more() && draw_.one_in(4)) return false;
    Stored s{kind, {header.begin(), header.end()}, std::vector<std::byte>(length)};
    if (length != 0) data.copy(s.data.data(), length);
    frames.push_back(std::move(s));
    return true;
  }
  std::size_t max_frame(std::size_t) const override { return limit_; }
  bool peer_listening() const override { return true; }
  ProcessId peer() const override { return {}; }
  bool port_closed() const override { return false; }
  bool bye() override { return true; }

  std::deque<Stored> frames;

 private:
  test::Draw& draw_;
  std::size_t limit_;
};

Frame frame_of(const Stored& s) {
  Frame f;
  f.kind = s.kind;
  f.header = s.header.data();
  f.header_length = static_cast<std::uint32_t>(s.header.size());
  f.data = s.data.data();
  f.length = static_cast<std::uint32_t>(s.data.size());
  return f;
}

struct Maker {
  std::vector<Stored> kept;
  Frame first(std::uint64_t total, std::size_t length) {
    std::vector<std::byte> header(kMessageHeader);
    put_length(header.data(), total);
    return make(Kind::first, header, length);
  }
  Frame more(std::size_t length) { return make(Kind::more, {}, length); }
  Frame make(Kind kind, std::vector<std::byte> header, std::size_t length) {
    kept.reserve(64);
    kept.push_back({kind, std::move(header), std::vector<std::byte>(length)});
    return frame_of(kept.back());
  }
};

using Step = FrameReader::Step;

}  // namespace

TEST_CASE("a length travels as eight little-endian bytes", "[framing]") {
  std::byte bytes[8];
  put_length(bytes, 0x0123456789abcdefull);
  CHECK(bytes[0] == std::byte{0xef});
  CHECK(bytes[7] == std::byte{0x01});
  CHECK(get_length(bytes) == 0x0123456789abcdefull);
}

TEST_CASE("messages of any length go through frames of any size", "[framing]") {
  test::property("send and read", [](test::Draw& draw) {
    QueueOutlet outlet(draw, 1 + draw.below(2000));
    FrameReader reader;
    while (draw.more()) {
      const std::uint32_t seed = draw.any();
      const std::size_t size = draw.one_in(4) ? 0 : draw.below(10000);
      const auto message = test::pattern_bytes(seed, size);
      const auto meaning = static_cast<Meaning>(draw.below(3));
      FrameSender sender(message.data(), size, meaning);
      std::vector<std::byte> whole;
      bool done = false;
      for (bool sent = false; !sent || !outlet.frames.empty();) {
        if (!sent) sent = sender.advance(outlet);
        while (!outlet.frames.empty()) {
          const Stored stored = std::move(outlet.frames.front());
          outlet.frames.pop_front();
          test::must(!done, "a frame behind the end");
          const Frame frame = frame_of(stored);
          const Step step = reader.step(frame);
          test::must(step != Step::broken, "an honest frame is called broken");
          test::must(reader.meaning() == meaning, "the message is taken for another kind");
          test::must(reader.offset() == whole.size() && reader.total() == size, "wrong place");
          whole.insert(whole.end(), frame.data, frame.data + frame.length);
          done = step == Step::whole || step == Step::completes;
          test::must(done == (whole.size() == size), "complete at the wrong time");
        }
      }
      test::must(done && test::matches(whole, seed), "the message differs");
    }
  });
}

TEST_CASE("a sequence that makes no message is broken", "[framing]") {
  Maker make;
  FrameReader reader;
  SECTION("continues nothing") { CHECK(reader.step(make.more(1)) == Step::broken); }
  SECTION("of a tree, and neither a list nor a message") {
    for (const std::uint64_t what : {0ull, 3ull, 1ull << 32 | 1}) {
      std::vector<std::byte> header(kTreeHeader);
      put_length(header.data(), 5);
      put_length(header.data() + kMessageHeader, what);
      CHECK(FrameReader().step(make.make(Kind::first, header, 5)) == Step::broken);
    }
  }
  SECTION("continues a complete message") {
    CHECK(reader.step(make.first(5, 5)) == Step::whole);
    CHECK(reader.step(make.more(1)) == Step::broken);
  }
  SECTION("continues an empty message") {
    CHECK(reader.step(make.first(0, 0)) == Step::whole);
    CHECK(reader.step(make.more(0)) == Step::broken);
  }
  SECTION("begins inside a message") {
    CHECK(reader.step(make.first(5, 4)) == Step::begins);
    CHECK(reader.step(make.first(5, 5)) == Step::broken);
  }
  SECTION("more data than announced") {
    CHECK(reader.step(make.first(5, 4)) == Step::begins);
    CHECK(reader.step(make.more(2)) == Step::broken);
  }
  SECTION("a first frame above its own length") { CHECK(reader.step(make.first(5, 6)) == Step::broken); }
  SECTION("a first frame that carries nothing of something") { CHECK(reader.step(make.first(5, 0)) == Step::broken); }
  SECTION("an empty continuation would never end") {
    CHECK(reader.step(make.first(5, 4)) == Step::begins);
    CHECK(reader.step(make.more(0)) == Step::broken);
  }
  SECTION("headers of other lengths") {
    const std::size_t length = GENERATE(0, 7, 9, 48, 255);
    CHECK(reader.step(make.make(Kind::first, std::vector<std::byte>(length), 0)) == Step::broken);
    CHECK(reader.step(make.first(5, 4)) != Step::whole);
  }
  SECTION("a continuation with a header") {
    CHECK(reader.step(make.first(5, 4)) == Step::begins);
    CHECK(reader.step(make.make(Kind::more, std::vector<std::byte>(8), 1)) == Step::broken);
  }
  SECTION("kinds that are no data") {
    const Kind kind = GENERATE(Kind::none, Kind{1}, Kind{4}, Kind::bye, Kind{6});
    CHECK(reader.step(make.make(kind, {}, 1)) == Step::broken);
  }
  SECTION("the largest length does not overflow") {
    CHECK(reader.step(make.first(~std::uint64_t{0}, 10)) == Step::begins);
    CHECK(reader.step(make.more(10)) == Step::continues);
    CHECK(reader.offset() == 10);
  }
}
