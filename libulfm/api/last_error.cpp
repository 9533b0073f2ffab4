#include "api/last_error.hpp"

#include <ulfm/ulfm.h>

#include <algorithm>
#include <array>

namespace ulfm {
namespace {
// Without a destructor: functions that run at exit() come after the destructors of thread-local objects, and
// may fail.
constinit thread_local std::array<char, 1024> g_last_error{};
}  // namespace

int report(Error error) {
  const std::size_t length = std::min(error.what.size(), g_last_error.size() - 1);
  *std::copy_n(error.what.data(), length, g_last_error.data()) = '\0';
  return -static_cast<int>(error.code);
}

}  // namespace ulfm

extern "C" {

const char* ulfm_last_error(void) { return ulfm::g_last_error.data(); }

const char* ulfm_error_name(int error) { return ulfm::name(static_cast<ulfm::Errc>(error < 0 ? -error : error)); }

const char* ulfm_version(void) { return ULFM_VERSION_STRING; }

}  // extern "C"
