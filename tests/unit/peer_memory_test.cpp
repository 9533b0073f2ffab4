// The memory of another process: what is copied, and what becomes of copies that cannot be made.
#include "job/peer_memory.hpp"

#include <sys/resource.h>

#include <cstring>
#include <vector>

#include "child.hpp"
#include "skipped.hpp"

using namespace ulfm;

namespace {

constexpr std::size_t kBytes = 700001;  // several pieces and a rest

char pattern(std::size_t i) { return static_cast<char>('a' + i % 23); }

// A process with a row of bytes, which says where that is, and when asked whether it has become the pattern.
struct Neighbour {
  Neighbour()
      : child([](test::Pipe& parent) {
          std::vector<char> bytes(kBytes + 2, '-');
          for (std::size_t i = 0; i < kBytes; ++i) bytes[i + 1] = pattern(i + 7);
          parent.send(std::to_string(reinterpret_cast<std::uintptr_t>(bytes.data() + 1)));
          while (!parent.receive().empty()) {
            bool right = bytes.front() == '-' && bytes.back() == '-';
            for (std::size_t i = 0; i < kBytes; ++i) right = right && bytes[i + 1] == pattern(i);
            parent.send(right ? "right" : "wrong");
          }
        }),
        at(std::stoull(child.pipe().receive())),
        memory(PeerMemory::open(child.pid())) {}
  test::Child child;
  std::uint64_t at;
  std::optional<PeerMemory> memory;
};

}  // namespace

TEST_CASE("Another process's memory is read and written, byte for byte", "[peer_memory]") {
  if (test::skipped_without(test::has_peer_memory(), test::kPeerMemory)) return;
  Neighbour neighbour;
  REQUIRE(neighbour.memory);
  std::vector<char> bytes(kBytes + 1, '-');
  REQUIRE(neighbour.memory->read(bytes.data(), neighbour.at, kBytes));
  for (std::size_t i = 0; i < kBytes; ++i)
    if (bytes[i] != pattern(i + 7)) FAIL("byte " << i << " is another one");
  REQUIRE(bytes[kBytes] == '-');

  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = pattern(i);
  REQUIRE(neighbour.memory->write(bytes.data(), neighbour.at, kBytes));
  neighbour.child.pipe().send("is it so?");
  REQUIRE(neighbour.child.pipe().receive() == "right");
  REQUIRE(neighbour.memory->write(bytes.data(), 1, 0));  // nothing, to nowhere
}

TEST_CASE("Memory at the same place of a page as another process's, or close behind it, is copied byte for byte",
          "[peer_memory]") {
  if (test::skipped_without(test::has_peer_memory(), test::kPeerMemory)) return;
  take_for_slow_close_behind();
  const bool reads = GENERATE(true, false);
  const std::size_t behind = GENERATE(0u, 1u, 8u, 15u, 16u);
  Neighbour neighbour;
  REQUIRE(neighbour.memory);
  std::vector<char> room(kBytes + 2 * 4096, '-');
  const std::uint64_t place = reads ? neighbour.at + behind : neighbour.at - behind;
  char* const bytes = room.data() + 1 + (place - (reinterpret_cast<std::uintptr_t>(room.data()) + 1)) % 4096;
  if (reads) {
    REQUIRE(neighbour.memory->read(bytes, neighbour.at, kBytes));
    for (std::size_t i = 0; i < kBytes; ++i)
      if (bytes[i] != pattern(i + 7)) FAIL("byte " << i << " is another one");
    CHECK(bytes[-1] == '-');
    CHECK(bytes[kBytes] == '-');
  } else {
    for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = pattern(i);
    REQUIRE(neighbour.memory->write(bytes, neighbour.at, kBytes));
    neighbour.child.pipe().send("is it so?");
    CHECK(neighbour.child.pipe().receive() == "right");
  }
}

TEST_CASE("Memory that is not there is an error", "[peer_memory]") {
  if (test::skipped_without(test::has_peer_memory(), test::kPeerMemory)) return;
  Neighbour neighbour;
  std::vector<char> bytes(kBytes);
  CHECK_FALSE(neighbour.memory->read(bytes.data(), 8, 100));
  CHECK_FALSE(neighbour.memory->write(bytes.data(), 8, 100));
  // It ends in the middle.
  CHECK_FALSE(neighbour.memory->read(bytes.data(), ~std::uint64_t{0} - 4096, kBytes));
  CHECK(neighbour.memory->read(bytes.data(), neighbour.at, kBytes));
}

TEST_CASE("A process that has gone is not copied to, whoever has its number", "[peer_memory]") {
  Neighbour neighbour;
  std::vector<char> bytes(kBytes);
  neighbour.child.kill();
  CHECK_FALSE(neighbour.memory->write(bytes.data(), neighbour.at, kBytes));
  CHECK_FALSE(neighbour.memory->read(bytes.data(), neighbour.at, 1));
}

TEST_CASE("Without a descriptor left there is no way to it", "[peer_memory]") {
  Neighbour neighbour;
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{0, limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto memory = PeerMemory::open(neighbour.child.pid());
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK_FALSE(memory);
}
