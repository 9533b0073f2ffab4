#include "fabric/pointdesign/formats.hpp"

#include <fmt/format.h>

#include <bit>

namespace ulfm::fabric::pointdesign {
namespace {

// Table 7, and the eight codes that C:DP adds (table 8) and the thesis leaves open. Ours: the edges of the cube along
// two of its three directions, so that pairs of neighbours need one message.
constexpr std::array<std::uint8_t, 16> kCodes{0b11111111, 0b01010101, 0b10101010, 0b00010111,   // all, even, odd, 2^i
                                              0b00001111, 0b11110000, 0b00110011, 0b11001100,   // faces
                                              0b00000011, 0b00001100, 0b00110000, 0b11000000,   // edges {0,1} ...
                                              0b00000101, 0b00001010, 0b01010000, 0b10100000};  // and {0,2} ...

// Fields of a word, from the top downward.
class BitWriter {
 public:
  explicit BitWriter(std::uint32_t from) : at_(from) {}
  BitWriter& put(std::uint64_t value, std::uint32_t bits) {
    at_ -= bits;
    word_ |= (value & ((std::uint64_t{1} << bits) - 1)) << at_;
    return *this;
  }
  std::uint64_t word() const { return word_; }

 private:
  std::uint32_t at_;
  std::uint64_t word_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::uint64_t word) : word_(word) {}
  template <typename T>
  BitReader& get(T& value, std::uint32_t bits) {
    at_ -= bits;
    value = static_cast<T>(word_ >> at_ & ((std::uint64_t{1} << bits) - 1));
    return *this;
  }

 private:
  std::uint64_t word_;
  std::uint32_t at_ = 64;
};

std::uint64_t dest_bits(const Destination& d) {
  return (std::uint64_t{d.dd0} & 63) << 9 | (std::uint64_t{d.dd1} & 63) << 3 | (d.dp & 7u);
}
Destination dest_of(std::uint64_t bits, bool coded) {
  return {static_cast<std::uint8_t>(bits >> 9 & 63), static_cast<std::uint8_t>(bits >> 3 & 63),
          static_cast<std::uint8_t>(bits & 7), coded};
}

tl::unexpected<Error> wrong(const char* format, const std::string& field, std::uint64_t value, const std::string& why) {
  return fail(Errc::protocol, fmt::format("{} message: {} is {}; {}", format, field, value, why));
}

Result<void> check_card(const char* format, const std::string& prefix, std::uint32_t dd0, std::uint32_t dd1,
                        std::uint32_t radix, std::uint32_t dimensions) {
  const std::string range = fmt::format("cards are numbered 0 to {} there", radix - 1);
  if (dd0 >= radix) return wrong(format, fmt::format("{}D0", prefix), dd0, range);
  if (dimensions == 1 && dd1 != 0) return wrong(format, fmt::format("{}D1", prefix), dd1, "with one dimension it is 0");
  if (dimensions > 1 && dd1 >= radix) return wrong(format, fmt::format("{}D1", prefix), dd1, range);
  return {};
}

Result<void> check_destination(const char* format, std::size_t place, const Destination& d, std::uint32_t radix,
                               std::uint32_t dimensions) {
  if (d.dd0 == kNoDestination) return {};
  if (d.dd0 == kAllCards && d.dd1 == kAllCards) return {};
  return check_card(format, fmt::format("Dest{}.D", place), d.dd0, d.dd1, radix, dimensions);
}

}  // namespace

// ---- processors of a card -------------------------------------------------------------------------------------------

std::uint32_t processors_of(const Processors& which, std::uint32_t processors) noexcept {
  const std::uint32_t there = (1u << processors) - 1;
  switch (which.cdp) {
    case Processors::number: return 1u << which.dp & there;
    case Processors::code: return kCodes[which.dp & 7u] & there;
    case Processors::long_code: return kCodes[(which.c ? 8u : 0u) | (which.dp & 7u)] & there;
    default: return there;
  }
}

bool write_processors(std::uint32_t set, std::uint32_t processors, Processors& which) noexcept {
  const std::uint32_t there = (1u << processors) - 1;
  which = {};
  if (set == there && processors > 1) return which.cdp = Processors::all, true;
  if (std::has_single_bit(set) && set <= there) {
    which.dp = static_cast<std::uint8_t>(std::countr_zero(set));
    return true;
  }
  for (std::uint32_t i = 0; i < kCodes.size(); ++i) {
    if ((kCodes[i] & there) != set) continue;
    which.dp = i & 7, which.c = i >= 8, which.cdp = i < 8 ? Processors::code : Processors::long_code;
    return true;
  }
  return false;
}

// ---- bits -----------------------------------------------------------------------------------------------------------

Wire encode(const Pctf& m) noexcept {
  return {BitWriter(64)
              .put(dest_bits(m.to[0]), 15)
              .put(dest_bits(m.to[1]), 15)
              .put(m.smma, 30)
              .put(m.to[0].coded, 1)
              .put(m.to[1].coded, 1)
              .put(m.dma, 1)
              .put(m.more, 1)
              .word(),
          m.data};
}

Pctf decode_pctf(const Wire& wire) noexcept {
  std::uint64_t first = 0, second = 0;
  bool c0 = false, c1 = false;
  Pctf m;
  BitReader(wire.header)
      .get(first, 15)
      .get(second, 15)
      .get(m.smma, 30)
      .get(c0, 1)
      .get(c1, 1)
      .get(m.dma, 1)
      .get(m.more, 1);
  m.to = {dest_of(first, c0), dest_of(second, c1)};
  m.data = wire.data;
  return m;
}

// Dest4 lies across the middle of the 128 bits: its upper four bits end the first word.
Wire encode(const PctfDestinations& m) noexcept {
  BitWriter high(64), low(64);
  for (std::size_t i = 0; i < 4; ++i) high.put(dest_bits(m.to[i]), 15);
  high.put(dest_bits(m.to[4]) >> 11, 4);
  low.put(dest_bits(m.to[4]), 11).put(dest_bits(m.to[5]), 15).put(m.count, 30);
  for (const Destination& d : m.to) low.put(d.coded, 1);
  return {high.word(), low.put(m.dma, 1).put(m.more, 1).word()};
}

PctfDestinations decode_pctf_destinations(const Wire& wire) noexcept {
  std::array<std::uint64_t, 6> bits{};
  std::uint64_t upper = 0, lower = 0;
  BitReader high(wire.header), low(wire.data);
  for (std::size_t i = 0; i < 4; ++i) high.get(bits[i], 15);
  high.get(upper, 4);
  low.get(lower, 11).get(bits[5], 15);
  bits[4] = upper << 11 | lower;
  PctfDestinations m;
  low.get(m.count, 30);
  for (std::size_t i = 0; i < 6; ++i) {
    bool coded = false;
    low.get(coded, 1);
    m.to[i] = dest_of(bits[i], coded);
  }
  low.get(m.dma, 1).get(m.more, 1);
  return m;
}

Wire encode(const Cimf& m) noexcept {
  return {BitWriter(64)
              .put(m.bc, 6)
              .put(m.unused, 5)
              .put(m.who.c, 1)
              .put(m.dma, 1)
              .put(m.who.cdp, 2)
              .put(m.dd0, 6)
              .put(m.dd1, 6)
              .put(m.who.dp, 3)
              .put(m.xdd, 2)
              .put(static_cast<std::uint64_t>(m.cdd), 2)
              .put(m.ma, 30)
              .word(),
          m.data};
}

Cimf decode_cimf(const Wire& wire) noexcept {
  Cimf m;
  BitReader(wire.header)
      .get(m.bc, 6)
      .get(m.unused, 5)
      .get(m.who.c, 1)
      .get(m.dma, 1)
      .get(m.who.cdp, 2)
      .get(m.dd0, 6)
      .get(m.dd1, 6)
      .get(m.who.dp, 3)
      .get(m.xdd, 2)
      .get(m.cdd, 2)
      .get(m.ma, 30);
  m.data = wire.data;
  return m;
}

Wire encode(const Dmf& m) noexcept {
  return {BitWriter(64)
              .put(m.sd0, 6)
              .put(m.sd1, 6)
              .put(m.sp, 3)
              .put(m.dd0, 6)
              .put(m.dd1, 6)
              .put(m.who.dp, 3)
              .put(m.who.c, 1)
              .put(m.dma, 1)
              .put(m.who.cdp, 2)
              .put(m.ma, 30)
              .word(),
          m.data};
}

Dmf decode_dmf(const Wire& wire) noexcept {
  Dmf m;
  BitReader(wire.header)
      .get(m.sd0, 6)
      .get(m.sd1, 6)
      .get(m.sp, 3)
      .get(m.dd0, 6)
      .get(m.dd1, 6)
      .get(m.who.dp, 3)
      .get(m.who.c, 1)
      .get(m.dma, 1)
      .get(m.who.cdp, 2)
      .get(m.ma, 30);
  m.data = wire.data;
  return m;
}

// ---- what makes sense -----------------------------------------------------------------------------------------------

Result<void> validate(const Pctf& m, std::uint32_t radix, std::uint32_t dimensions) {
  if (m.dma) return {};  // the coprocessor looks at SMMA and Data only
  if (m.to[0].dd0 == kNoDestination)
    return wrong("PCTF", "Dest0.DD0", m.to[0].dd0, "the first destination is there in any message");
  for (std::size_t i = 0; i < m.to.size(); ++i)
    if (auto ok = check_destination("PCTF", i, m.to[i], radix, dimensions); !ok) return ok;
  if (m.more && m.to[1].dd0 == kNoDestination)
    return wrong("PCTF", "MD", 1, "more destinations follow only when both places are used");
  return {};
}

Result<void> validate(const PctfDestinations& m, std::uint32_t radix, std::uint32_t dimensions) {
  bool last = false;
  for (std::size_t i = 0; i < m.to.size(); ++i) {
    if (auto ok = check_destination("PCTF destinations", i, m.to[i], radix, dimensions); !ok) return ok;
    if (last && m.to[i].dd0 != kNoDestination)
      return wrong("PCTF destinations", fmt::format("Dest{}.DD0", i), m.to[i].dd0, "the place before it is not used");
    last = m.to[i].dd0 == kNoDestination;
  }
  if (m.count == 0) return wrong("PCTF destinations", "ND", m.count, "it counts the destinations of the message");
  if (m.dma) return wrong("PCTF destinations", "D", 1, "with DMA the destinations are in memory");
  return {};
}

Result<void> validate(const Cimf& m, std::uint32_t radix, std::uint32_t dimensions) {
  const auto bad = [](const char* field, std::uint64_t value, const std::string& why) {
    return wrong("CIMF", field, value, why);
  };
  if (m.unused != 0) return bad("U", m.unused, "unused bits are 0");
  if (m.cdd == Reach::broadcast) {
    if (m.bc != kBroadcast) return bad("BC", m.bc, "a broadcast has 63");
    if (m.dd0 != kBroadcast) return bad("DD0", m.dd0, "a broadcast has 63");
    if (m.dd1 != kBroadcast) return bad("DD1", m.dd1, "a broadcast has 63");
  } else if (m.bc == kBroadcast) {
    return bad("BC", m.bc, "that is a broadcast, and CDD says it is none");
  } else if (m.cdd == Reach::multicast_dd1 && dimensions == 1) {
    return bad("CDD", 2, "with one dimension there is no DD1 to multicast to");
  } else if (m.cdd != Reach::unicast) {
    const bool first = m.cdd == Reach::multicast_dd0;
    if (m.mask() == 0) return bad("XDD", 0, fmt::format("{} and XDD name no card", first ? "DD0" : "DD1"));
    const std::uint32_t shared = first ? m.dd1 : m.dd0;
    if (shared >= (first && dimensions == 1 ? 1 : radix))
      return bad(first ? "DD1" : "DD0", shared, fmt::format("cards are numbered 0 to {} there", radix - 1));
  } else if (auto ok = check_card("CIMF", "D", m.dd0, m.dd1, radix, dimensions); !ok) {
    return ok;
  }
  if (m.cdd != Reach::multicast_dd0 && m.cdd != Reach::multicast_dd1 && m.xdd != 0)
    return bad("XDD", m.xdd, "only a multicast uses it");
  if (m.who.c && m.who.cdp != Processors::long_code) return bad("C", 1, "only CDP 10 uses it");
  return {};
}

Result<void> validate(const Dmf& m, std::uint32_t radix, std::uint32_t dimensions) {
  if (auto ok = check_card("DMF", "S", m.sd0, m.sd1, radix, dimensions); !ok) return ok;
  if (m.who.c && m.who.cdp != Processors::long_code) return wrong("DMF", "C", 1, "only CDP 10 uses it");
  if (m.dd0 == kBroadcast && m.dd1 == kBroadcast) return {};
  return check_card("DMF", "D", m.dd0, m.dd1, radix, dimensions);
}

// ---- commands -------------------------------------------------------------------------------------------------------

std::vector<Wire> command(std::span<const Destination> to, std::uint32_t smma, std::uint64_t data, bool dma) {
  Pctf first;
  first.smma = smma, first.data = data, first.dma = dma;
  if (dma) return {encode(first)};
  for (std::size_t i = 0; i < std::min(to.size(), first.to.size()); ++i) first.to[i] = to[i];
  first.more = to.size() > first.to.size();
  std::vector<Wire> wires{encode(first)};
  if (!first.more) return wires;
  for (std::size_t at = first.to.size(); at < to.size();) {
    PctfDestinations more;
    more.count = static_cast<std::uint32_t>(to.size());
    for (Destination& d : more.to)
      if (at < to.size()) d = to[at++];
    more.more = at < to.size();
    wires.push_back(encode(more));
  }
  wires.push_back(kEndOfDestinations);
  return wires;
}

Result<std::vector<Destination>> read_command(std::span<const Wire> wires, std::uint32_t radix,
                                              std::uint32_t dimensions) {
  if (wires.empty()) return fail(Errc::protocol, "PCTF: there is no message");
  const Pctf first = decode_pctf(wires[0]);
  if (first.dma) return fail(Errc::protocol, "PCTF message: D is 1; its destinations are in memory");
  if (auto ok = validate(first, radix, dimensions); !ok) return fail(ok.error());
  std::vector<Destination> all{first.to[0]};
  if (first.to[1].dd0 != kNoDestination) all.push_back(first.to[1]);
  if (!first.more) return all;
  for (const Wire& wire : wires.subspan(1)) {
    if (wire == kEndOfDestinations) return all;
    const PctfDestinations more = decode_pctf_destinations(wire);
    if (auto ok = validate(more, radix, dimensions); !ok) return fail(ok.error());
    for (const Destination& d : more.to)
      if (d.dd0 != kNoDestination) all.push_back(d);
    if (all.size() > more.count)
      return wrong("PCTF destinations", "ND", more.count, fmt::format("{} have come already", all.size()));
  }
  return fail(Errc::protocol, "PCTF destinations: the message of all ones that ends them did not come");
}

std::vector<std::uint64_t> destinations_in_memory(std::span<const Destination> to) {
  std::vector<std::uint64_t> words;
  for (const Destination& d : to) words.push_back(dest_bits(d) << 1 | (d.coded ? 1 : 0));
  words.push_back(dest_bits(Destination{}) << 1);
  return words;
}

}  // namespace ulfm::fabric::pointdesign
