// How the processes of a job find their arena when ulfmrun has not made it: under a name of the abstract name space of
// sockets, which is derived from the job. The process that takes the name first starts the arena's holder, a process of
// its own (tools/ulfm_hostd), and hands it the listening socket. Every process, the first one too, then asks the
// holder.
//
//   process                                        holder
//     connect() to the job's name   ----------->     has made the arena, or knows why it could not
//                                   <-----------     "+" and its address, or "-" and a sentence
//     "?", in the second case       ----------->     one process says it; the others wait here for the
//                                   <-----------     launcher to end them: "!" comes after some seconds
//     "d", where there are others   ----------->     opens a door for processes of other hosts
//          on other hosts           <-----------     "+" and its address, or "-" and a sentence
//
// The name exists as long as a socket listens under it. A process that dies between taking the name and starting the
// holder therefore leaves nothing behind, and of several that try at once one succeeds. A process stays connected for
// as long as it lives. The holder ends when the launcher has ended and nobody is connected.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "fabric/engine/arena.hpp"

namespace ulfm::fabric {

/// The arena that the environment names (ULFM_FABRIC), or the one that the processes of this job agree on; the first of
/// them has it made with the settings that it has. Remembers the answer. Any thread.
Result<FabricArena> arena_of_this_job();

/// The address of the door to it, which the holder opens. Only where ulfmrun has not made the arena.
Result<std::string> door_of_holder();

/// Call it before reporting a failure of arena_of_this_job(). It returns at once in one process of the job and late in
/// the others, so that there is one line and not one for each process.
void wait_to_complain();

/// What a holder is started with.
struct HolderTask {
  int listener = -1;  ///< a descriptor
  std::uint32_t processes = 0;
  pid_t launcher = 0;  ///< the job is over with it; 0: with the last process
  std::uint64_t launcher_started = 0;
  std::string programs;  ///< folder of the library's programs
  /// Opens a door to the arena for processes of other hosts: its address.
  std::function<Result<std::string>(const FabricArena&)> open_door;
};

/// Makes the arena that the settings ask for, and the engine process if they do, and answers until the job is over. The
/// exit code: 0 when there was an arena.
int serve_arena(const HolderTask& task);

}  // namespace ulfm::fabric
