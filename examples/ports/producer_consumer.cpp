// Every rank but 0 produces items of many sizes, rank 0 consumes them. The port has few buffers on purpose: a producer
// finds them all on their way again and again, and waits until they have left.
// Run: ulfmrun -n 2 producer_consumer   (or more)
#include <algorithm>
#include <cstring>
#include <vector>

#include "must.hpp"

using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 3;
constexpr std::uint32_t kItems = 3000;  // of each producer

struct ItemHeader {
  std::uint32_t producer, number;
};

// From nothing to 100 KB behind the header: in one cache line, in one slot, and in many frames.
std::size_t payload_of(std::uint32_t number) { return number % 100 == 99 ? 100'000 : number % 500; }
std::byte filling(ItemHeader item) { return static_cast<std::byte>(item.producer * 31 + item.number); }

// A send buffer; waits while all of them are on their way.
ulfm::Outgoing compose(ulfm::Port& port, std::size_t size) {
  for (;;) {
    auto out = port.compose(size);
    if (out || out.error().code != ulfm::Errc::full) return must(std::move(out));
    must(port.flush());
  }
}

void produce(ulfm::Port& port, std::uint32_t rank, ulfm::Address consumer) {
  for (std::uint32_t number = 0; number < kItems; ++number) {
    const ItemHeader item{rank, number};
    const std::size_t size = sizeof item + payload_of(number);
    auto out = compose(port, size);
    const std::span<std::byte> bytes = out.bytes();
    std::memcpy(bytes.data(), &item, sizeof item);
    std::ranges::fill(bytes.subspan(sizeof item), filling(item));
    must(port.post(std::move(out), consumer));
  }
}

bool is_next(std::span<const std::byte> bytes, std::vector<std::uint32_t>& next) {
  ItemHeader item;
  if (bytes.size() < sizeof item) return false;
  std::memcpy(&item, bytes.data(), sizeof item);
  if (item.producer >= next.size() || item.number != next[item.producer]++) return false;
  const auto payload = bytes.subspan(sizeof item);
  return payload.size() == payload_of(item.number) &&
         std::ranges::all_of(payload, [&](std::byte b) { return b == filling(item); });
}

int consume(ulfm::Port& port, int processes) {
  std::vector<std::uint32_t> next(static_cast<std::size_t>(processes), 0);  // number expected, by producer
  const std::uint32_t all = kItems * static_cast<std::uint32_t>(processes - 1);
  for (std::uint32_t i = 0; i < all; ++i) {
    const auto item = must(port.wait(10s));
    if (is_next(item.bytes(), next)) continue;
    std::fprintf(stderr, "item %u of %u is damaged or out of order\n", i, all);
    return 1;
  }
  std::printf("producer_consumer: %u items from %d producers, all whole and in order\n", all, processes - 1);
  return 0;
}

int main() {
  auto job = must(ulfm::Job::join());
  if (job.size() < 2) {
    std::fprintf(stderr, "producer_consumer needs 2 processes or more; found 1: run it with ulfmrun -n 2\n");
    return 2;
  }
  auto port = must(job.open_port({.number = kPort, .slot_bytes = 1024, .depth = 4}));
  must(job.barrier());  // the consumer's port is open from here on
  if (job.rank() == 0) return consume(port, job.size());
  produce(port, static_cast<std::uint32_t>(job.rank()), must(job.address(0, kPort)));
}
