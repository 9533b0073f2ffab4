#include "transport/emulated/card.hpp"

#include <cinttypes>
#include <cstdio>

#include <fmt/core.h>

#include "transport/foreign_card.hpp"

namespace ulfm::emulated {

std::string encode(const EmulatedCard& card) {
  return fmt::format("fabric:{:016x}{:016x}.{}", card.arena, card.token, card.endpoint);
}

Result<EmulatedCard> decode(std::string_view text) {
  EmulatedCard card;
  const std::string copy(text.substr(0, 80));  // bounded: the text comes from outside
  if (std::sscanf(copy.c_str(), "fabric:%16" SCNx64 "%16" SCNx64 ".%" SCNu32, &card.arena, &card.token,
                  &card.endpoint) != 3 ||
      encode(card) != text)
    return fail(Errc::protocol, fmt::format("\"{}\" is no address on an emulated interconnect{}", copy.substr(0, 60),
                                            foreign_card_remark("fabric", copy)));
  return card;
}

}  // namespace ulfm::emulated
