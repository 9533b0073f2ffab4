#include "api/last_error.hpp"

#include <ulfm/ulfm.h>

namespace ulfm {
namespace {
thread_local std::string g_last_error;
}

int report(Error error) {
  g_last_error = std::move(error.what);
  return -static_cast<int>(error.code);
}

}  // namespace ulfm

extern "C" {

const char* ulfm_last_error(void) { return ulfm::g_last_error.c_str(); }

const char* ulfm_error_name(int error) { return ulfm::name(static_cast<ulfm::Errc>(error < 0 ? -error : error)); }

const char* ulfm_version(void) { return ULFM_VERSION_STRING; }

}  // extern "C"
