// A sentence for the user from a process that may be ended right behind it.
#pragma once

#include <string>

namespace ulfm {

/// Writes `sentence` to standard error. When that is a pipe, waits up to a second until its reader has taken it: a
/// launcher that is told to end the job does not look again for what its processes still had to say. Any thread.
void say_before_the_end(const std::string& sentence);

}  // namespace ulfm
