// What an error says of the one who was meant.
#pragma once

#include "base/error.hpp"

namespace ulfm {

/// The process or port that was to be reached is no more, or never was: to try again is in vain.
inline bool tells_of_one_gone(Errc code) noexcept {
  return code == Errc::peer_failed || code == Errc::not_found || code == Errc::stale;
}

}  // namespace ulfm
