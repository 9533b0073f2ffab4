// Every rank in turn sends messages of many sizes to a group of all others, with the same call whatever the transport:
// over pointdesign the network copies them, on one host all receivers read one buffer, elsewhere each gets its own.
// Run: ulfmrun -n 4 multicast   and: ulfmrun --transport pointdesign --topology gh:2x2x2 -n 8 multicast
#include <cstdint>
#include <cstring>
#include <vector>

#include "must.hpp"

using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kPort = 5;
constexpr std::uint32_t kMessages = 200;  // of each rank

struct Header {
  std::uint32_t sender, number;
};

// From nothing to 200 KB behind the header: in one frame, and in many.
std::size_t payload_of(std::uint32_t number) { return number % 50 == 49 ? 200000 : number * 37 % 3000; }
std::byte filling(Header h) { return static_cast<std::byte>(h.sender * 57 + h.number); }

void send_all(ulfm::Port& port, std::uint32_t rank, const ulfm::Group& others) {
  std::vector<std::byte> bytes;
  for (std::uint32_t number = 0; number < kMessages; ++number) {
    const Header header{rank, number};
    bytes.assign(sizeof header + payload_of(number), filling(header));
    std::memcpy(bytes.data(), &header, sizeof header);
    must(port.send(bytes, others));
  }
}

// The messages of one sender come in order, those of different ones as they like.
bool is_next(const ulfm::Incoming& message, std::vector<std::uint32_t>& next) {
  Header header{};
  const auto bytes = message.bytes();
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.sender >= next.size() || header.number != next[header.sender]++) return false;
  if (bytes.size() != sizeof header + payload_of(header.number)) return false;
  for (const std::byte b : bytes.subspan(sizeof header))
    if (b != filling(header)) return false;
  return true;
}

}  // namespace

int main() {
  auto job = must(ulfm::Job::join());
  const auto rank = static_cast<std::uint32_t>(job.rank()), size = static_cast<std::uint32_t>(job.size());
  if (size < 2) {
    std::fprintf(stderr, "multicast needs 2 processes or more; found 1: run it with ulfmrun -n 4\n");
    return 2;
  }
  auto port = must(job.open_port({.number = kPort}));
  must(job.barrier());  // all ports are open from here on
  std::vector<ulfm::Address> addresses;
  for (std::uint32_t other = 0; other < size; ++other)
    if (other != rank) addresses.push_back(must(job.address(static_cast<int>(other), kPort)));
  auto others = must(port.group(addresses));
  std::vector<std::uint32_t> next(size, 0);
  std::uint32_t good = 0;
  for (std::uint32_t sender = 0; sender < size; ++sender) {
    if (sender == rank) send_all(port, rank, others);
    else
      for (std::uint32_t i = 0; i < kMessages; ++i)
        if (is_next(must(port.wait(60s)), next)) ++good;
  }
  must(port.flush());
  must(job.barrier());
  const std::uint32_t all = kMessages * (size - 1);
  if (good != all) std::fprintf(stderr, "rank %u: %u of %u messages are as sent\n", rank, good, all);
  else if (rank == 0)
    std::printf("multicast: %u messages from %u senders, all whole and in order at each receiver\n", all, size - 1);
  return good == all ? 0 : 1;
}
