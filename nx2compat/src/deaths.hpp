// A node that a fault or abort() ends, in the words of NX.
#pragma once

namespace nx2 {

/// In a node that a launcher started: abort(), a fault in an address, an instruction or arithmetic ends the job with a
/// line of this library, where the launcher would speak of MPI. Left alone are signals that the program, or its
/// language, handles itself, and all of them when the limits ask for core files (ulimit -c).
void report_deaths() noexcept;

}  // namespace nx2
