// What a topology file may be made of, seen before the TOML parser sees it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace ulfm::fabric {

/// Fails, with `path`, line and column, on a text that uses more of TOML than topologies need: they have
/// strings on one line, whole decimal numbers, arrays of these, and the table header [[switch]]. toml++ 3.3
/// stops the program by an assertion on some malformed table headers and times of day, and runs out of stack
/// on deeply dotted keys; none of these get past here.
Result<void> screen(std::string_view text, const std::string& path);

}  // namespace ulfm::fabric
