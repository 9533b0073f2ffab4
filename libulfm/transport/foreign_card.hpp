// The card of another transport's process, as in the name of a port that a job with another setting has opened.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

namespace ulfm {

/// What a sentence about a card that is no card of one's own transport ends with: whose it is and what to do; "" for
/// one of nobody, or of one's own that is damaged.
inline std::string foreign_card_remark(std::string_view own, std::string_view card) {
  if (own != "fabric" && card.starts_with("fabric:"))
    return ": it is one on an emulated interconnect, whose processes reach each other only";
  for (const std::string_view name : {"mux", "direct", "ofi", "tcp"})
    if (own != name && card.starts_with(name) && card.substr(name.size()).starts_with(':'))
      return fmt::format(": it is one of {0}; both sides need the same transport, as with ULFM_TRANSPORT={0}", name);
  return "";
}

}  // namespace ulfm
