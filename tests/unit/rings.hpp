// A lane and an open ring in private memory, for tests. The byte areas are allocations of their own, so that
// the address sanitizer sees a step across their ends.
#pragma once

#include <memory>
#include <new>

#include "base/ring.hpp"
#include "pattern.hpp"

namespace test {

using namespace ulfm;

struct LineDeleter {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t(kLine)); }
};
using LineBytes = std::unique_ptr<std::byte[], LineDeleter>;
inline LineBytes line_bytes(std::size_t n) {
  LineBytes bytes(new (std::align_val_t(kLine)) std::byte[n]);
  std::memset(bytes.get(), 0, n);
  return bytes;
}

struct LaneFixture {
  LaneFixture(std::uint32_t count, std::uint32_t capacity)
      : cell_bytes(line_bytes(count * sizeof(Cell))),
        body_bytes(line_bytes(capacity)),
        memory{reinterpret_cast<Cell*>(cell_bytes.get()), body_bytes.get(), &consumed, count, capacity},
        producer(memory),
        consumer(memory) {}

  bool push(std::size_t header, std::size_t length, std::uint32_t seed, Kind kind = Kind::first) {
    const auto head = pattern_bytes(seed + 1, header);
    auto body = pattern_bytes(seed, length);
    const iovec piece{body.data(), body.size()};
    Gather data(std::span(&piece, 1));
    if (!producer.push(kind, seed, head.data(), header, data, length)) return false;
    producer.own_ahead();  // may write only where nothing lies that a consumer reads or holds
    return true;
  }

  std::atomic<std::uint64_t> consumed{0};
  LineBytes cell_bytes, body_bytes;
  LaneMemory memory;
  LaneProducer producer;
  LaneConsumer consumer;
};

struct OpenFixture {
  OpenFixture(std::uint32_t count, std::uint32_t stride)
      : slots(line_bytes(std::size_t{count} * stride)), memory{slots.get(), &tail, count, stride} {
    OpenConsumer::initialise(memory);
    producer = OpenProducer(memory);
    consumer = OpenConsumer(memory);
  }

  bool push(std::size_t header, std::size_t length, std::uint32_t seed, Kind kind = Kind::first) {
    const auto head = pattern_bytes(seed + 1, header);
    auto body = pattern_bytes(seed, length);
    const iovec piece{body.data(), body.size()};
    Gather data(std::span(&piece, 1));
    return producer.push(kind, seed, head.data(), header, data, length);
  }

  std::atomic<std::uint64_t> tail{0};
  LineBytes slots;
  OpenMemory memory;
  OpenProducer producer;
  OpenConsumer consumer;
};

/// Header and data are what push() wrote for that seed.
inline bool intact(const Frame& frame, std::size_t header, std::size_t length, std::uint32_t seed) {
  return frame.header_length == header && frame.length == length && frame.origin == seed &&
         matches({frame.header, header}, seed + 1) && matches({frame.data, length}, seed);
}

}  // namespace test
