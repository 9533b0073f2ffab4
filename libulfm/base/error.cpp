#include "base/error.hpp"

namespace ulfm {

const char* name(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return "ok";
    case Errc::invalid: return "invalid";
    case Errc::full: return "full";
    case Errc::not_found: return "not_found";
    case Errc::closed: return "closed";
    case Errc::stale: return "stale";
    case Errc::busy: return "busy";
    case Errc::too_large: return "too_large";
    case Errc::no_memory: return "no_memory";
    case Errc::peer_failed: return "peer_failed";
    case Errc::protocol: return "protocol";
    case Errc::timed_out: return "timed_out";
    case Errc::unavailable: return "unavailable";
    case Errc::system: return "system";
  }
  return "unknown";
}

}  // namespace ulfm
