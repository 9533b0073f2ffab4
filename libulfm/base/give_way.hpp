// Yields of a thread that does not wait itself.
#pragma once

#include "base/wait.hpp"

namespace ulfm {

/// Lets others have the core once, where processes share cores and yields are not slow; counted as a yield.
void give_way(const WaitPolicy& policy) noexcept;

}  // namespace ulfm
