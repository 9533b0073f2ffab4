#include "proto/reliable/wire.hpp"

#include <bit>
#include <cstring>

#include "base/crc32c.hpp"

namespace ulfm::reliable {
namespace {

static_assert(std::endian::native == std::endian::little, "the header is copied as it lies in memory");

constexpr unsigned kPayloadBits = 0x03;
constexpr unsigned kHasAck = 0x04, kProbe = 0x08, kPart = 0x10, kLast = 0x20, kHeaderInData = 0x40, kTwice = 0x80;

template <typename T>
std::byte* put(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}
template <typename T>
const std::byte* get(const std::byte* from, T& value) noexcept {
  std::memcpy(&value, from, sizeof value);
  return from + sizeof value;
}

}  // namespace

void encode(const WireHeader& h, std::uint32_t body, std::byte* to) noexcept {
  const unsigned what = static_cast<unsigned>(h.payload) | (h.has_ack ? kHasAck : 0) | (h.probe ? kProbe : 0) |
                        (h.part ? kPart : 0) | (h.last ? kLast : 0) | (h.header_in_data ? kHeaderInData : 0) |
                        (h.has_ack && h.ack.twice ? kTwice : 0);
  std::byte* at = to + 4;
  at = put(at, static_cast<std::uint8_t>(what));
  at = put(at, h.header);
  at = put(at, h.ack.credit);
  at = put(at, h.stream);
  at = put(at, h.number);
  if (h.has_ack) at = put(put(put(at, h.ack.stream), h.ack.next), h.ack.held);
  if (h.part) at = put(put(at, h.offset), std::uint32_t{0});
  put(to, crc32c(to + 4, static_cast<std::size_t>(at - to) - 4, body));
}

bool decode(const Frame& frame, WireHeader& h) noexcept {
  if (frame.header_length < kWireLeast) return false;
  std::uint32_t crc = 0;
  std::uint8_t what = 0;
  const std::byte* at = get(frame.header, crc);
  at = get(at, what);
  at = get(at, h.header);
  at = get(at, h.ack.credit);
  at = get(at, h.stream);
  at = get(at, h.number);
  h.payload = static_cast<Payload>(what & kPayloadBits);
  h.has_ack = what & kHasAck;
  h.probe = what & kProbe;
  h.part = what & kPart;
  h.last = what & kLast;
  h.header_in_data = what & kHeaderInData;
  h.ack.twice = what & kTwice;
  const std::size_t own = h.size();
  const bool lengths_agree =
      h.header_in_data ? frame.header_length == own && frame.length >= h.header : frame.header_length == own + h.header;
  if (!lengths_agree || (h.ack.twice && !h.has_ack)) return false;
  if (h.has_ack) at = get(get(get(at, h.ack.stream), h.ack.next), h.ack.held);
  if (h.part) get(at, h.offset);
  const std::uint32_t body = crc32c(frame.data, frame.length, crc32c(frame.header + own, frame.header_length - own));
  return crc32c(frame.header + 4, own - 4, body) == crc;
}

}  // namespace ulfm::reliable
