// Errors on their way to C: the code as a negative number, the sentence kept for ulfm_last_error().
#pragma once

#include "base/error.hpp"

namespace ulfm {

/// Remembers the sentence for this thread and returns -code.
int report(Error error);

}  // namespace ulfm
