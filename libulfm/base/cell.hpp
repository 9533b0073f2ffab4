// The cell: one cache line that carries a whole small message, published by one store.
//
//   word   offset  origin  inline bytes
//   8      4       4       48                    = 64
//
// `word` packs {lap:16, kind:8, header:8, length:32}. A cell is valid for ring position p exactly when its lap is
// the lap of p, so a consumer needs no second line to know that something has arrived. The producer fills the rest
// and then stores `word` with release order; this pairs with the consumer's acquire load of `word`. In an open ring the
// consumer stores it too, once it has read the cell, and that pairs with the claim of the next producer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/align.hpp"
#include "base/frame.hpp"

namespace ulfm {

inline constexpr std::size_t kInline = 48;

/// States of a cell and frames of the transport's own, beside the kinds of frames that it carries.
inline constexpr Kind kCellFree{0};     ///< open ring only: may be claimed for the lap in the word
inline constexpr Kind kCellClaimed{1};  ///< open ring only: a producer is filling it; `length` names who
/// The origin goes on in the lane named by the first inline word; in a lane: behind that word, which it has said again
/// in the open ring.
inline constexpr Kind kCellLane{4};
/// Lanes only: the data lie elsewhere, and the cell has a reference to them (transport/direct/pool.hpp).
inline constexpr Kind kCellShared{7};
/// Where such data will lie.
inline constexpr Kind kCellPool{8};
/// Where the data of later frames may lie (transport/direct/exchange.hpp).
inline constexpr Kind kCellExchange{9};
inline constexpr Kind kCellSkip{6};  ///< a claim whose owner died; carries nothing

/// In a cell's offset, lanes only: the data lie elsewhere, in a place of which the other bits are the number.
inline constexpr std::uint32_t kElsewhere = 0x8000'0000;

/// In the offset of a common cell: the data lie beside it.
inline constexpr std::uint32_t kBesideCell = 0xc000'0000;

struct Word {
  std::uint16_t lap = 0;
  Kind kind = kCellFree;
  std::uint8_t header = 0;   ///< bytes of header before the data (0..255)
  std::uint32_t length = 0;  ///< bytes of data, header not counted

  static constexpr Word unpack(std::uint64_t w) noexcept {
    return {static_cast<std::uint16_t>(w), static_cast<Kind>((w >> 16) & 0xff), static_cast<std::uint8_t>(w >> 24),
            static_cast<std::uint32_t>(w >> 32)};
  }
  constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{lap} | std::uint64_t(static_cast<std::uint8_t>(kind)) << 16 | std::uint64_t{header} << 24 |
           std::uint64_t{length} << 32;
  }
};

struct alignas(kLine) Cell {
  std::atomic<std::uint64_t> word;
  std::uint32_t offset;  ///< lanes: where the body lies in the byte ring
  std::uint32_t origin;  ///< index of the sender in the receiver's peer table
  std::byte bytes[kInline];
};
static_assert(sizeof(Cell) == kLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Lap of ring position `p` in a ring of `n` cells. Never 0, so that zeroed memory is valid for no position.
constexpr std::uint16_t lap_of(std::uint64_t p, std::uint32_t n) noexcept {
  return static_cast<std::uint16_t>((p / n) % 0xffff + 1);
}

/// So much of a body is fetched when its cell is found.
inline constexpr std::size_t kPrefetch = 4 * kLine;

/// The first lines come from the producer's cache while the caller makes sense of the header.
inline void prefetch_body(const std::byte* at, std::size_t bytes) noexcept {
  for (std::size_t line = 0; line < std::min(bytes, kPrefetch); line += kLine) __builtin_prefetch(at + line);
}

/// Header and data fit the cell itself.
constexpr bool fits_inline(std::size_t header, std::size_t data) noexcept { return header + data <= kInline; }

/// Bytes of the body outside the cell: a header that does not fit inline goes in front of the data.
constexpr std::size_t body_bytes(std::size_t header, std::size_t data) noexcept {
  const std::size_t front = header > kInline ? (header + 7) & ~std::size_t{7} : 0;
  return front + data;
}

}  // namespace ulfm
