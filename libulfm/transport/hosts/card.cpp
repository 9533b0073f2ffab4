#include "transport/hosts/card.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/core.h>

#include "transport/contract.hpp"
#include "transport/foreign_card.hpp"

namespace ulfm::hosts {
namespace {

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

bool read(std::string_view bytes, ProcessCard& card) {
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

std::string encode(std::string_view transport, const ProcessCard& card) {
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
  return fmt::format("{}:{}", transport, text);
}

Result<ProcessCard> decode(std::string_view transport, std::string_view text) {
  ProcessCard card;
  std::array<char, kMostBytes> bytes{};  // bounded: the text comes from outside
  std::size_t length = 0;
  const char* end = nullptr;
  const bool ours = text.size() > transport.size() && text.starts_with(transport) && text[transport.size()] == ':';
  const std::string_view digits = ours ? text.substr(transport.size() + 1) : std::string_view();
  const bool good = ours &&
                    sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), digits.data(),
                                      digits.size(), nullptr, &length, &end, kVariant) == 0 &&
                    end == digits.data() + digits.size() && read({bytes.data(), length}, card);
  if (!good || encode(transport, card) != text)
    return fail(Errc::protocol, fmt::format("\"{}\" is no address of the {} transport{}", text.substr(0, 60), transport,
                                            foreign_card_remark(transport, text)));
  return card;
}

Result<ProcessCard> decode_part(std::string_view transport, std::string_view card) {
  const std::size_t own = card.find(fmt::format("{}:", transport));
  if (own == card.npos) return decode(transport, card);
  return decode(transport, card.substr(own, card.find('&', own) - own));
}

std::vector<std::byte> introduction(std::string_view card, std::span<const std::byte> hello) {
  const auto length = static_cast<std::uint16_t>(card.size());
  std::vector<std::byte> bytes(sizeof length + length + hello.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, card.data(), length);
  std::copy(hello.begin(), hello.end(), bytes.begin() + sizeof length + length);
  return bytes;
}

Result<Introduction> read_introduction(std::string_view transport, std::span<const std::byte> bytes) {
  std::uint16_t length = 0;
  if (bytes.size() < sizeof length) return fail(Errc::protocol, "an introduction without a card");
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::size_t rest = bytes.size() - sizeof length;
  if (length == 0 || length > kMostCard || length > rest || rest - length > kHelloLimit)
    return fail(Errc::protocol, "an introduction of other lengths than it says");
  Introduction found;
  found.card = {reinterpret_cast<const char*>(bytes.data()) + sizeof length, length};
  found.hello = bytes.subspan(sizeof length + length);
  auto process = decode_part(transport, found.card);
  if (!process) return fail(process.error());
  found.process = std::move(*process);
  return found;
}

}  // namespace ulfm::hosts
