#include "base/crc32c.hpp"

#include <string>

#include "property.hpp"

using namespace ulfm;

namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

struct Vector {
  const char* name;
  std::vector<std::byte> bytes;
  std::uint32_t crc;
};

// RFC 3720, appendix B.4, whose CRCs are written as bytes in the order they are sent.
std::vector<Vector> rfc_vectors() {
  std::vector<std::byte> rising(32), falling(32);
  for (std::size_t i = 0; i < 32; ++i) rising[i] = falling[31 - i] = static_cast<std::byte>(i);
  std::vector<std::byte> command(48);
  const unsigned char set[][2] = {{0, 0x01},  {1, 0xc0},  {16, 0x14}, {22, 0x04},
                                  {27, 0x14}, {31, 0x18}, {32, 0x28}, {40, 0x02}};
  for (const auto& [at, value] : set) command[at] = static_cast<std::byte>(value);
  return {{"32 bytes of zeros", std::vector<std::byte>(32), 0x8a9136aa},
          {"32 bytes of ones", std::vector<std::byte>(32, std::byte{0xff}), 0x62a8ab43},
          {"32 rising bytes", rising, 0x46dd794e},
          {"32 falling bytes", falling, 0x113fdb5c},
          {"an iSCSI SCSI Read (10) command", command, 0xd9963a56},
          {"123456789", bytes_of("123456789"), 0xe3069283},
          {"nothing", {}, 0}};
}

}  // namespace

TEST_CASE("CRC32C of the vectors of RFC 3720, by every way", "[crc]") {
  for (const Vector& v : rfc_vectors()) {
    INFO(v.name);
    CHECK(crc32c(v.bytes.data(), v.bytes.size()) == v.crc);
    for (const Crc32cWay& way : crc32c_ways()) {
      INFO(way.name);
      if (way.usable) CHECK(way.compute(v.bytes.data(), v.bytes.size(), 0) == v.crc);
    }
  }
  CHECK(crc32c_ways()[kCrc32cWays - 1].usable);
}

TEST_CASE("all ways agree on any bytes, in pieces too", "[crc]") {
  test::property("pieces", [](test::Draw& draw) {
    std::vector<std::byte> bytes(draw.below(5000));
    for (std::byte& b : bytes) b = static_cast<std::byte>(draw.more() ? draw.any() : bytes.size());
    const std::size_t cut = bytes.empty() ? 0 : draw.below(static_cast<std::uint32_t>(bytes.size() + 1));
    const std::uint32_t whole = crc32c_ways()[kCrc32cWays - 1].compute(bytes.data(), bytes.size(), 0);
    for (const Crc32cWay& way : crc32c_ways()) {
      if (!way.usable) continue;
      const std::uint32_t front = way.compute(bytes.data(), cut, 0);
      test::must(way.compute(bytes.data() + cut, bytes.size() - cut, front) == whole, way.name);
    }
    test::must(crc32c(bytes.data() + cut, bytes.size() - cut, crc32c(bytes.data(), cut)) == whole, "the chosen way");
  });
}

TEST_CASE("up to three turned bits never go unseen", "[crc]") {
  test::property("turned bits", [](test::Draw& draw) {
    std::vector<std::byte> bytes(1 + draw.below(2000), std::byte{0x5a});
    const std::uint32_t before = crc32c(bytes.data(), bytes.size());
    const std::vector<std::byte> original = bytes;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const std::uint32_t bit = draw.below(static_cast<std::uint32_t>(bytes.size() * 8));
      bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
    test::must((crc32c(bytes.data(), bytes.size()) == before) == (bytes == original), "a change went unseen");
  });
}
