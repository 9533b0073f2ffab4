#include "transport/ofi/card.hpp"

#include <cinttypes>
#include <cstdio>

namespace ulfm::ofi {

std::string text_of(std::uint32_t ip) {
  char text[16];
  std::snprintf(text, sizeof text, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
  return text;
}

std::string encode(const Card& card) {
  char text[96];
  std::snprintf(text, sizeof text, "ofi:%016" PRIx64 "%016" PRIx64 ".%" PRIx32 ".%x;", card.host, card.token,
                static_cast<std::uint32_t>(card.pid), unsigned{card.port});
  std::string out = text;
  for (const Address& address : card.addresses) {
    std::snprintf(text, sizeof text, "%08" PRIx32 "%x", address.ip, static_cast<unsigned>(address.link));
    out += (&address == card.addresses.data() ? "" : ",") + std::string(text);
  }
  return out;
}

Result<Card> decode(std::string_view text) {
  Card card;
  const std::string copy(text.substr(0, 160));  // bounded: the text comes from outside
  std::uint32_t pid = 0, port = 0;
  int used = 0;
  bool good = std::sscanf(copy.c_str(), "ofi:%16" SCNx64 "%16" SCNx64 ".%8" SCNx32 ".%4" SCNx32 ";%n", &card.host,
                          &card.token, &pid, &port, &used) == 4 &&
              used > 0 && port != 0;
  card.pid = static_cast<std::int32_t>(pid);
  card.port = static_cast<std::uint16_t>(port);
  for (std::size_t at = static_cast<std::size_t>(used); good && at < copy.size(); at += 10) {
    Address address;
    unsigned link = 0;
    good = std::sscanf(copy.c_str() + at, "%8" SCNx32 "%1x", &address.ip, &link) == 2 && link <= 2 &&
           card.addresses.size() < kMostAddresses;
    address.link = static_cast<Link>(link);
    card.addresses.push_back(address);
  }
  if (!good || card.pid <= 0 || encode(card) != text)
    return fail(Errc::protocol, "\"" + copy.substr(0, 60) + "\" is no address of the ofi transport");
  return card;
}

}  // namespace ulfm::ofi
