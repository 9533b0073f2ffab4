#include "job/control/key.hpp"

#include <charconv>

#include <fmt/core.h>

namespace ulfm::control {
namespace {

constexpr char kSeparator = '+';
constexpr std::size_t kLongestName = 20;
constexpr std::string_view kDigits = "0123456789abcdef";

bool is_hex(std::string_view text) { return text.find_first_not_of(kDigits) == text.npos; }

bool read_secret(std::string_view text, Secret& secret) {
  if (text.size() != 2 * kSecretBytes || !is_hex(text)) return false;
  for (std::size_t i = 0; i < kSecretBytes; ++i)
    secret[i] = static_cast<std::uint8_t>(kDigits.find(text[2 * i]) << 4 | kDigits.find(text[2 * i + 1]));
  return true;
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  return ec == std::errc{} && end == text.data() + text.size();
}

bool read_address(std::string_view text, std::uint32_t& address) {
  address = 0;
  for (int part = 0; part < 4; ++part) {
    const std::size_t end = part < 3 ? text.find('.') : text.size();
    std::uint8_t byte = 0;
    if (end == text.npos || !read_number(text.substr(0, end), byte)) return false;
    address = address << 8 | byte;
    text.remove_prefix(part < 3 ? end + 1 : end);
  }
  return true;
}

bool read_key(std::string_view text, EndpointKey& key) {
  const std::size_t first = text.find(':'), last = text.rfind(':');
  if (first == text.npos || first == last) return false;
  const std::string_view kind = text.substr(0, first), place = text.substr(first + 1, last - first - 1);
  if (!read_secret(text.substr(last + 1), key.secret)) return false;
  if (kind == "unix") {
    key.kind = SocketKind::unix_socket;
    key.name = place;
    return !place.empty() && place.size() <= kLongestName && is_hex(place);
  }
  const std::size_t colon = place.find(':');
  key.kind = SocketKind::tcp;
  return kind == "tcp" && colon != place.npos && read_address(place.substr(0, colon), key.address) &&
         read_number(place.substr(colon + 1), key.port) && key.port != 0;
}

}  // namespace

std::string encode(const EndpointKey& key) {
  std::string text = fmt::format("{}:", kKindNames[static_cast<std::size_t>(key.kind)]);
  if (key.kind == SocketKind::unix_socket) {
    text += key.name;
  } else {
    text += fmt::format("{}.{}.{}.{}:{}", key.address >> 24, key.address >> 16 & 255, key.address >> 8 & 255,
                        key.address & 255, key.port);
  }
  text += ':';
  for (const std::uint8_t byte : key.secret) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<EndpointKey> decode_key(std::string_view text) {
  EndpointKey key;
  // Only what encode() writes: there is one text for a key. The text itself holds a secret and stays out of messages.
  if (!read_key(text, key) || encode(key) != text)
    return fail(Errc::protocol, "the address of that process ends in something that is no key of a control channel");
  return key;
}

std::string_view identity_of(std::string_view card) noexcept { return card.substr(0, card.find_first_of("+&")); }

std::string_view without_key(std::string_view card) noexcept { return card.substr(0, card.find(kSeparator)); }

std::string_view key_in(std::string_view card) noexcept {
  const std::size_t at = card.find(kSeparator);
  return at == card.npos ? std::string_view{} : card.substr(at + 1);
}

std::string join_card(std::string_view identity, const EndpointKey& key) {
  return std::string(identity) + kSeparator + encode(key);
}

}  // namespace ulfm::control
