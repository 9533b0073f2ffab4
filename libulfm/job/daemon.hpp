// Programs that outlive the call that starts them and that nobody waits for: the holder of an arena, a door, a proxy.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace ulfm {

/// Starts a program as nobody's child, in a session of its own, with default signals. So a reader of the caller's
/// output sees its end, and a caller that waits for its children does not wait for this one. Its standard
/// input and output are those descriptors, or /dev/null for -1; nothing else is open there. `words` begin with the
/// program's name. A file that cannot be run is not an error here: the program then ends without a word.
Result<void> start_daemon(const std::string& path, const std::vector<std::string>& words, int input, int output);

/// The daemon's side: prints a line on its standard output and closes it, so that its starter reads the line and then
/// the end. Descriptor 1 is /dev/null from then on.
void answer_starter(std::string line);

}  // namespace ulfm
