// Files of jobs that were killed.
#pragma once

#include <chrono>
#include <string>

namespace ulfmrun {

/// Processes of a host find their first shared memory by a file that MPICH makes in /dev/shm and removes when all have
/// it. A job that is killed before leaves it behind, in memory that nobody gets back. Removes those of this user that
/// are older than `age` and that no process has mapped. Others' files and what cannot be removed stay.
void remove_leftovers(const std::string& folder = "/dev/shm", std::chrono::seconds age = std::chrono::minutes(10));

}  // namespace ulfmrun
