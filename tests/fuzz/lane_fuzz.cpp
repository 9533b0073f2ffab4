// The memory of a lane, filled by a sender that writes what it likes: whatever comes out lies inside.
#include <memory>
#include <new>

#include "base/ring.hpp"
#include "fuzz.hpp"

using namespace ulfm;

namespace {
constexpr std::uint32_t kCells = 8, kBytes = 4096;

std::string cell(Kind kind, std::uint8_t header, std::uint32_t length, std::uint32_t offset) {
  std::string text(16, '\0');
  const std::uint64_t word = Word{1, kind, header, length}.pack();
  const std::uint32_t origin = 0;
  std::memcpy(text.data(), &word, 8);
  std::memcpy(text.data() + 8, &offset, 4);
  std::memcpy(text.data() + 12, &origin, 4);
  return text;
}

// The next frame whose data lie in the lane. Elsewhere lies what those above find by its number.
bool next(LaneConsumer& consumer, Frame& frame) {
  for (;;) {
    const Peek peek = consumer.next(frame);
    if (peek != Peek::elsewhere) return peek == Peek::frame;
    if (frame.data != nullptr || (consumer.place() & kElsewhere) != 0) std::abort();
    read_all(frame.header, frame.header_length);
    consumer.release(frame);
  }
}

// An empty lane, and turns of the common cell: frames in it, beside it and in the ring.
std::string common_turns() {
  std::string text(16 * kCells, '\0');
  for (std::uint8_t turn = 1, position = 0; position < 8; turn = static_cast<std::uint8_t>(turn + 2), ++position) {
    const std::uint32_t length = position % 3 == 0 ? 30 : position % 3 == 1 ? 200 : 1000;
    const std::uint64_t word = Word{turn, Kind::first, 8, length}.pack();
    const std::uint32_t offset = position % 3 == 1 ? kBesideCell : 0;
    text.append(reinterpret_cast<const char*>(&word), sizeof word);
    text.append(reinterpret_cast<const char*>(&offset), sizeof offset);
    text += static_cast<char>(position);
    text += '\1';
  }
  return text;
}

// A cell with what may lie beside it, and nothing behind that.
struct Common {
  Cell cell{};
  std::byte beside[kBeside]{};
};
}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {cell(Kind::first, 8, 40, 0) + cell(Kind::more, 0, 1000, 0) + cell(Kind::bye, 0, 0, 0),
          cell(Kind::first, 255, 3000, 64) + cell(Kind::first, 49, 0, 4032),
          cell(Kind::more, 0, 4096, 0) + cell(kCellLane, 0, 4, 0),
          cell(Kind::first, 8, 300, kElsewhere | 7) + cell(Kind::first, 60, 300, kElsewhere), common_turns()};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzInput input(bytes, size);
  const std::unique_ptr<Cell[]> cells(new Cell[kCells]());
  const std::unique_ptr<std::byte[]> body(new std::byte[kBytes]());
  std::atomic<std::uint64_t> consumed{0};
  for (std::uint32_t i = 0; i < kCells && input.more(); ++i) {
    cells[i].word = input.take<std::uint64_t>();
    cells[i].offset = input.take<std::uint32_t>();
    cells[i].origin = input.take<std::uint32_t>();
  }
  const LaneMemory memory{cells.get(), body.get(), &consumed, kCells, kBytes};
  const auto shared = std::make_unique<Common>();
  CommonCell common(false);
  LaneConsumer consumer(memory);
  consumer.use_common(common, 0);
  common.open(&shared->cell);
  std::vector<Frame> held;
  Frame frame;
  const auto take_all = [&] {
    while (held.size() < 2 * kCells && next(consumer, frame)) {
      read_all(frame.header, frame.header_length);
      read_all(frame.data, frame.length);
      held.push_back(frame);
    }
  };
  take_all();
  for (int i = 0; i < 16 && input.more(); ++i) {
    shared->cell.word = input.take<std::uint64_t>();
    shared->cell.offset = input.take<std::uint32_t>();
    shared->cell.origin = input.take<std::uint8_t>();
    take_all();
    if (common.to_write() != nullptr) (void)common.begin_turn();
    if (!held.empty() && input.take<std::uint8_t>() % 2 == 0) {
      consumer.release(held.back());
      held.pop_back();
    }
  }
  // The other way: a receiver that writes what it likes into `consumed`.
  const std::string head(255, 'h');
  std::string text(1024, 'd');
  LaneProducer producer(memory);
  for (int i = 0; i < 32; ++i) {
    consumed = input.take<std::uint64_t>() % (i % 2 == 0 ? 64 : ~std::uint64_t{0});
    const auto lengths = input.take<std::uint32_t>();
    const std::size_t header = lengths % 256, length = lengths / 256 % 1025;
    const iovec piece{text.data(), length};
    Gather data(std::span(&piece, 1));
    producer.push(Kind::first, 0, reinterpret_cast<const std::byte*>(head.data()), header, data, length);
    producer.own_ahead();
  }
  while (!held.empty()) {
    const std::size_t at = input.take<std::uint8_t>() % held.size();
    consumer.release(held[at]);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
  }
  consumer.publish();
  return 0;
}
