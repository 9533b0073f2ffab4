// The messages of the point design: 128 bits, 64 of them data. Three formats for the three stretches of the way.
//
//   PCTF  processor to coprocessor   Dest0 127-113, Dest1 112-98, SMMA 97-68, C0 67, C1 66, D 65, MD 64, Data 63-0
//         more destinations          Dest0 127-113 ... Dest5 52-38, ND 37-8, C0 7 ... C5 2, D 1, MD 0
//         end of the destinations    all ones
//   CIMF  coprocessor to decoders    BC 127-122, U 121-117, C 116, D 115, CDP 114-113, DD0 112-107, DD1 106-101,
//                                    DP 100-98, XDD 97-96, CDD 95-94, MA 93-64, Data 63-0
//   DMF   in the queues, on the way  SD0 127-122, SD1 121-116, SP 115-113, DD0 112-107, DD1 106-101, DP 100-98, C 97,
//                                    D 96, CDP 95-94, MA 93-64, Data 63-0
//
// A Dest is DD0 6, DD1 6, DP 3. Source: the thesis, section 3.2, tables 2 to 9; places of fields in the PCTF follow the
// order in which table 2 and table 4 have them, since figure 8 and figure 10 are not in the text we have.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace ulfm::fabric::pointdesign {

/// Bits 127 to 64, and 63 to 0.
struct Wire {
  std::uint64_t header = 0, data = 0;
  friend bool operator==(const Wire&, const Wire&) = default;
};

inline constexpr std::uint32_t kNoDestination = 63;  ///< DD0 of a Dest that is not used
/// DD0 and DD1 of a Dest that stands for every card. Ours: the thesis leaves 40 to 63 free and does not say how a
/// processor asks its coprocessor for a broadcast.
inline constexpr std::uint32_t kAllCards = 62;
inline constexpr std::uint32_t kBroadcast = 63;  ///< BC, DD0 and DD1 of a CIMF to all cards

/// Which processors of a card are meant: DP, read as CDP says (table 8).
struct Processors {
  enum Code : std::uint8_t { number, code, long_code, all };
  std::uint8_t dp = 0;
  bool c = false;  ///< with long_code: the code's bit above DP
  Code cdp = number;
  friend bool operator==(const Processors&, const Processors&) = default;
};
/// A bit for each processor that is meant, of a card with so many.
std::uint32_t processors_of(const Processors& which, std::uint32_t processors) noexcept;
/// How to write that set; false when no number and no code means exactly that.
bool write_processors(std::uint32_t set, std::uint32_t processors, Processors& which) noexcept;

struct Destination {
  std::uint8_t dd0 = kNoDestination, dd1 = 0, dp = 0;
  bool coded = false;  ///< its C bit: DP is a code
  friend bool operator==(const Destination&, const Destination&) = default;
};

struct Pctf {
  std::array<Destination, 2> to;
  std::uint32_t smma = 0;
  bool dma = false, more = false;
  std::uint64_t data = 0;
  friend bool operator==(const Pctf&, const Pctf&) = default;
};
struct PctfDestinations {
  std::array<Destination, 6> to;
  std::uint32_t count = 0;  ///< ND: destinations of the message, all together
  bool dma = false, more = false;
  friend bool operator==(const PctfDestinations&, const PctfDestinations&) = default;
};
/// Behind the last destinations.
inline constexpr Wire kEndOfDestinations{~std::uint64_t{0}, ~std::uint64_t{0}};

/// CDD (table 6).
enum class Reach : std::uint8_t { unicast, multicast_dd0, multicast_dd1, broadcast };

struct Cimf {
  std::uint8_t bc = 0, unused = 0;
  bool dma = false;
  Processors who;
  std::uint8_t dd0 = 0, dd1 = 0, xdd = 0;
  Reach cdd = Reach::unicast;
  std::uint32_t ma = 0;
  std::uint64_t data = 0;
  /// The eight cards of a multicast, bit 0 the first one of the port: DD0 or DD1 with XDD below it.
  std::uint8_t mask() const noexcept {
    return static_cast<std::uint8_t>((cdd == Reach::multicast_dd0 ? dd0 : dd1) << 2 | xdd);
  }
  friend bool operator==(const Cimf&, const Cimf&) = default;
};

struct Dmf {
  std::uint8_t sd0 = 0, sd1 = 0, sp = 0;
  std::uint8_t dd0 = 0, dd1 = 0;
  bool dma = false;
  Processors who;
  std::uint32_t ma = 0;
  std::uint64_t data = 0;
  friend bool operator==(const Dmf&, const Dmf&) = default;
};

Wire encode(const Pctf& message) noexcept;
Wire encode(const PctfDestinations& message) noexcept;
Wire encode(const Cimf& message) noexcept;
Wire encode(const Dmf& message) noexcept;
Pctf decode_pctf(const Wire& wire) noexcept;
PctfDestinations decode_pctf_destinations(const Wire& wire) noexcept;
Cimf decode_cimf(const Wire& wire) noexcept;
Dmf decode_dmf(const Wire& wire) noexcept;

/// Errc::protocol with the name of the first field that makes no sense between cards 0 to radix - 1 of each of that
/// many dimensions (1 or 2).
Result<void> validate(const Pctf& message, std::uint32_t radix, std::uint32_t dimensions);
Result<void> validate(const PctfDestinations& message, std::uint32_t radix, std::uint32_t dimensions);
Result<void> validate(const Cimf& message, std::uint32_t radix, std::uint32_t dimensions);
Result<void> validate(const Dmf& message, std::uint32_t radix, std::uint32_t dimensions);

/// What a processor writes to its coprocessor for these destinations: one message, or one and as many as it takes with
/// destinations only, and the end. With `dma` it is one message: the list is in memory at `smma`.
std::vector<Wire> command(std::span<const Destination> to, std::uint32_t smma, std::uint64_t data, bool dma);
/// And how the coprocessor reads it, with D = 0. Errc::protocol for what is no command.
Result<std::vector<Destination>> read_command(std::span<const Wire> command, std::uint32_t radix,
                                              std::uint32_t dimensions);
/// The list in memory, a word to a destination: the Dest above its C bit. DD0 = 111111 ends it.
std::vector<std::uint64_t> destinations_in_memory(std::span<const Destination> to);

}  // namespace ulfm::fabric::pointdesign
