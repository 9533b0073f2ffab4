#include "transport/ofi/card.hpp"

#include <sodium.h>

#include <array>
#include <cstring>

namespace ulfm::ofi {
namespace {

constexpr std::string_view kPrefix = "ofi:";
constexpr std::uint8_t kV6 = 4;  // beside the Link, in the byte before an address
constexpr std::size_t kFixedBytes = 8 + 8 + 4 + 2;
constexpr std::size_t kMostBytes = kFixedBytes + kAddressBytes;
constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;

std::size_t bytes_of(const Address& address) { return address.ip.is_v4() ? 5 : 17; }

// Little-endian, as all hosts of a job are.
template <typename Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}
template <typename Number>
bool take(std::string_view& bytes, Number& number) {
  if (bytes.size() < sizeof number) return false;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return true;
}

bool take(std::string_view& bytes, Address& address) {
  std::uint8_t head = 0;
  if (!take(bytes, head) || (head & ~kV6) > static_cast<std::uint8_t>(LinkKind::virtual_link)) return false;
  address.link = static_cast<LinkKind>(head & ~kV6);
  if ((head & kV6) != 0) return take(bytes, address.ip.bytes) && !address.ip.is_v4();
  std::uint32_t four = 0;
  if (!take(bytes, four)) return false;
  address.ip = Ip::v4(four);
  return true;
}

bool read(std::string_view bytes, OfiCard& card) {
  if (bytes.size() > kMostBytes || !take(bytes, card.host) || !take(bytes, card.token) || !take(bytes, card.pid) ||
      !take(bytes, card.port) || card.pid <= 0 || card.port == 0)
    return false;
  while (!bytes.empty())
    if (!take(bytes, card.addresses.emplace_back())) return false;
  return true;
}

}  // namespace

std::vector<Address> those_that_fit(const std::vector<Address>& addresses) {
  std::vector<Address> fitting;
  std::size_t bytes = 0;
  for (const Address& one : addresses) {
    if (bytes + bytes_of(one) > kAddressBytes) continue;
    bytes += bytes_of(one);
    fitting.push_back(one);
  }
  return fitting;
}

std::string encode(const OfiCard& card) {
  std::string bytes;
  append(bytes, card.host);
  append(bytes, card.token);
  append(bytes, card.pid);
  append(bytes, card.port);
  for (const Address& address : card.addresses) {
    append(bytes, static_cast<std::uint8_t>(static_cast<std::uint8_t>(address.link) | (address.ip.is_v4() ? 0 : kV6)));
    if (address.ip.is_v4()) append(bytes, address.ip.as_v4());
    else append(bytes, address.ip.bytes);
  }
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kVariant);
  text.pop_back();  // its zero
  return std::string(kPrefix) + text;
}

Result<OfiCard> decode(std::string_view text) {
  OfiCard card;
  std::array<char, kMostBytes> bytes{};  // bounded: the text comes from outside
  std::size_t length = 0;
  const char* end = nullptr;
  const std::string_view digits = text.substr(std::min(text.size(), kPrefix.size()));
  const bool good = text.starts_with(kPrefix) &&
                    sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), digits.data(),
                                      digits.size(), nullptr, &length, &end, kVariant) == 0 &&
                    end == digits.data() + digits.size() && read({bytes.data(), length}, card);
  if (!good || encode(card) != text)
    return fail(Errc::protocol, "\"" + std::string(text.substr(0, 60)) + "\" is no address of the ofi transport");
  return card;
}

}  // namespace ulfm::ofi
