// What the generated entry points need: from a language's arguments to those of nx2::calls, and back.
#pragma once

#include <cerrno>
#include <string>

#include "calls.hpp"
#include "timed.hpp"

namespace nx2 {

/// Programs without prototypes pass an int where long is declared, with anything in the upper half.
inline std::int32_t scalar(long value) noexcept { return static_cast<std::int32_t>(value); }

inline InfoArray info_array(long* info) noexcept { return {info, false}; }
inline InfoArray info_array(std::int32_t* info) noexcept { return {info, true}; }

inline Handler c_handler(void (*entry)()) noexcept { return {Handler::Style::c, false, entry, 0}; }
inline Handler fortran_handler(void (*entry)()) noexcept { return {Handler::Style::fortran, false, entry, 0}; }

inline Combiner combiner(long (*function)()) noexcept {
  return reinterpret_cast<Combiner>(reinterpret_cast<void*>(function));
}

inline Combiner combiner(void (*function)()) noexcept {
  return reinterpret_cast<Combiner>(reinterpret_cast<void*>(function));
}

inline std::string text(const char* from) { return from != nullptr ? from : ""; }
/// Fortran pads with blanks.
inline std::string text(const char* from, std::size_t length) {
  std::string text(from, length);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

inline long plain(const char* call, Outcome outcome) noexcept {
  if (__builtin_expect(outcome.error != 0, 0)) end_of_job(call, outcome.error);
  return outcome.value;
}

inline long underscored(Outcome outcome) noexcept {
  if (__builtin_expect(outcome.error == 0, 1)) return outcome.value;
  errno = outcome.error;
  return -1;
}

/// Of a call that returns nothing in its plain form.
inline long success_of(Outcome outcome) noexcept { return underscored({0, outcome.error}); }

}  // namespace nx2
