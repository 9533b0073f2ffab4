// The memory of an open ring, filled by senders that write what they like: whatever comes out lies inside its
// slot.
#include <memory>
#include <new>

#include "base/ring.hpp"
#include "fuzz.hpp"

using namespace ulfm;

namespace {
constexpr std::uint32_t kSlots = 8;

struct LineDeleter {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t(kLine)); }
};

std::string slot(Kind kind, std::uint8_t header, std::uint32_t length) {
  std::string text(8, '\0');
  const std::uint64_t word = Word{1, kind, header, length}.pack();
  std::memcpy(text.data(), &word, 8);
  return text;
}
}  // namespace

std::vector<std::string> fuzz_seeds() {
  const std::string front("\x05\0\0\0\0\0\0\0\0", 9);
  return {front + slot(Kind::first, 8, 40) + slot(Kind::more, 0, 300) + slot(kCellLane, 0, 4) + slot(Kind::bye, 0, 0),
          front + slot(Kind::first, 255, 64) + slot(kCellClaimed, 0, 3) + slot(kCellSkip, 0, 0),
          front + slot(Kind::first, 49, 0)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzInput input(bytes, size);
  const std::uint32_t stride = 384 + 64 * (input.take<std::uint8_t>() % 16u);
  const std::unique_ptr<std::byte[], LineDeleter> slots(new (std::align_val_t(kLine))
                                                            std::byte[std::size_t{kSlots} * stride]());
  std::atomic<std::uint64_t> tail{input.take<std::uint64_t>()};
  const OpenMemory memory{slots.get(), &tail, kSlots, stride};
  OpenConsumer::initialise(memory);
  for (std::uint32_t i = 0; i < kSlots && input.more(); ++i) memory.cell(i).word = input.take<std::uint64_t>();

  OpenConsumer consumer(memory);
  Frame frame;
  for (int i = 0; i < 64; ++i) {
    std::uint32_t who = 0;
    if (consumer.stuck_on(who)) consumer.skip_claim(who);
    const Peek peek = consumer.next(frame);
    if (peek == Peek::nothing) break;
    if (peek == Peek::frame) {
      const std::byte* begin = slots.get() + frame.position % kSlots * stride;
      must(frame.header >= begin && frame.header + frame.header_length <= begin + stride,
           "the header lies in the slot");
      must(frame.data >= begin && frame.data + frame.length <= begin + stride, "the data lie in the slot");
      read_all(frame.header, frame.header_length);
      read_all(frame.data, frame.length);
    }
    consumer.release(frame);
  }
  // A sender facing that memory ends, and writes inside it.
  const OpenProducer producer(memory);
  const std::string head(255, 'h');
  std::string text(memory.room(0), 'd');
  for (int i = 0; i < 16; ++i) {
    const std::size_t header = input.take<std::uint8_t>();
    const std::size_t length = input.take<std::uint16_t>() % (memory.room(header) + 1);
    const iovec piece{text.data(), length};
    Gather data(std::span(&piece, 1));
    producer.push(Kind::first, 0, reinterpret_cast<const std::byte*>(head.data()), header, data, length);
  }
  return 0;
}
