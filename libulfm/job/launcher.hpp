// The launcher that has started this process as one of a job. What the processes of a job share on a host is named
// after it, and lasts as long as it does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace ulfm {

struct Launcher {
  std::string job;  ///< the same in all processes of the job on this host, spawned ones too, and in no other job
  /// The process with whose end the job is over; 0: none is known.
  pid_t pid = 0;
  std::uint64_t started = 0;
};

/// Found by the other end of the PMI connection, which wrappers around the program do not hide, or by the names that
/// Slurm and PMIx give. Errc::unavailable when no launcher has started this process.
Result<Launcher> launcher_of_this_process();

/// A number that a launcher has set in the environment, or -1.
int number_from_launcher(const char* variable);

/// What is wrong, and what to do, when srun or the mpirun of another MPI has started this process as one of several and
/// gives them nothing by which they could find each other: each of them is a job of its own. Empty otherwise, and in
/// all but the first of them.
std::string started_in_vain();

}  // namespace ulfm
