// How the processes of a job find their arena when ulfmrun has not made it: under a name of the abstract name space of
// sockets, which is made from the job. Whoever takes the name first starts the arena's holder, a process of its own
// (tools/ulfm_hostd), and leaves the listening socket to it; everybody, the first one too, then asks the holder.
//
//   process                                        holder
//     connect() to the job's name   ----------->     has made the arena, or knows why it cannot
//                                   <-----------     "+" and its address, or "-" and a sentence
//     "?", in the second case       ----------->     one process says it; the others wait here for the
//                                   <-----------     launcher to end them: "!" comes after some seconds
//
// The name is there as long as somebody listens: one who dies between taking it and starting the holder leaves nothing
// behind, and of several that come at once one gets it. A process stays connected for as long as it lives. The holder
// ends when the launcher has ended and nobody is connected.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "fabric/engine/arena.hpp"

namespace ulfm::fabric {

/// The arena that the environment names (ULFM_FABRIC), or the one that the processes of this job agree on; the first of
/// them has it made with the settings that it has. Remembers the answer. Any thread.
Result<FabricArena> arena_of_this_job();

/// Before a failure of arena_of_this_job() is told: one process of the job tells it, or there would be as many lines
/// as processes. The others return late.
void wait_to_complain();

/// What a holder is started with.
struct HolderTask {
  int listener = -1;  ///< a descriptor
  std::uint32_t processes = 0;
  pid_t launcher = 0;  ///< the job is over with it; 0: with the last process
  std::uint64_t launcher_started = 0;
  std::string programs;  ///< folder of the library's programs
};

/// Makes the arena that the settings ask for, and the engine process if they do, and answers until the job is over. The
/// exit code: 0 when there was an arena.
int hold_arena(const HolderTask& task);

}  // namespace ulfm::fabric
