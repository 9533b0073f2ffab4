// Values of mpiexec's options, checked here: mpiexec meets a wrong one with a trace of its own functions, or with
// nothing.
#pragma once

#include <string>

namespace ulfmrun {

/// `option` as it was written, `name` as mpiexec calls it. Fails with kUsage.
void check_value(const std::string& option, const std::string& name, const std::string& value);

}  // namespace ulfmrun
