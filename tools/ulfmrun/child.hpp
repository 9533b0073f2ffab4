// mpiexec, or a host program, as a child, for jobs after which ulfmrun has something to do.
#pragma once

#include <string>
#include <vector>

namespace ulfmrun {

/// Runs that and hands on to it the signals that end or stop a job. Returns its exit code, 128 and the signal's
/// number when one ended it.
int run_child(const std::vector<std::string>& command);

}  // namespace ulfmrun
