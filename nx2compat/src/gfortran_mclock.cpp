// mclock() is an intrinsic of GNU Fortran (processor time of the process), so a program that calls NX's
// mclock without declaring it gets that one: a call of these functions. nxf77 links this library before the
// compiler's own.
#include <cstdint>

#include "calls.hpp"

extern "C" {

__attribute__((visibility("default"))) std::int32_t _gfortran_mclock() {
  return static_cast<std::int32_t>(nx2::calls::mclock());
}

__attribute__((visibility("default"))) std::int64_t _gfortran_mclock8() {
  return static_cast<std::int64_t>(nx2::calls::mclock());
}

}  // extern "C"
