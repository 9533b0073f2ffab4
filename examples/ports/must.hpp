// The shortest way to deal with an error: say it and stop.
#pragma once

#include <ulfm/ulfm.hpp>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

template <typename T>
T must(ulfm::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", ulfm::name(result.error().code), result.error().what.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
