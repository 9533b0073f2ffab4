// Errors as values: a small code, and a sentence built where the error was first seen.
//
// The sentence says what was needed, what was found and what to do. Layers above add context in front with
// `within()`; nothing below the tools prints.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <tl/expected.hpp>

#include <ulfm/ulfm.h>

namespace ulfm {

/// What went wrong, coarsely; the C API returns the same numbers, negated.
enum class Errc : int {
  ok = 0,
  invalid = 1,       ///< an argument or setting is not acceptable
  full = 2,          ///< no room now; try again after progress
  not_found = 3,     ///< no such peer, port, key or file
  closed = 4,        ///< the handle or the other side is closed
  stale = 5,         ///< the handle names something that has been replaced since
  busy = 6,          ///< already open or already composed
  too_large = 7,     ///< larger than the buffer or the limit
  no_memory = 8,     ///< the system had no memory for it
  peer_failed = 9,   ///< the other process died
  protocol = 10,     ///< bytes from outside did not make sense
  timed_out = 11,    ///< the wait ended first
  unavailable = 12,  ///< this transport or facility cannot be used here
  system = 13,       ///< a system call failed; the text has errno
};

/// Name of a code, e.g. "peer_failed".
ULFM_API const char* name(Errc code) noexcept;

struct ULFM_API Error {
  Errc code = Errc::ok;
  std::string what;

  /// The same error with `context: ` in front.
  Error within(const std::string& context) && { return Error{code, context + ": " + what}; }
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Errc code, std::string what) {
  return tl::unexpected<Error>(Error{code, std::move(what)});
}

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// A failed system call: `what` names it and what it was for; errno's text is appended.
inline tl::unexpected<Error> fail_errno(const std::string& what, int number = errno) {
  return fail(Errc::system, what + ": " + std::strerror(number));
}

}  // namespace ulfm
