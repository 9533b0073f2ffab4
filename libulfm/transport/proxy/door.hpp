// The door of an arena: where processes of other hosts ask for a proxy. It is a process of its own on the arena's host
// (ulfm_hostd door), which ulfmrun starts for jobs over several hosts; it starts a process for each proxy.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fabric/engine/arena.hpp"
#include "transport/proxy/address.hpp"

namespace ulfm::proxy {

struct DoorTask {
  std::string arena;        ///< its address, as ULFM_FABRIC has it
  std::uint32_t frame = 0;  ///< see DoorAddress::frame
  pid_t job = 0;            ///< process with whose end the job is over
  std::uint64_t job_started = 0;
};

/// Starts the door of an arena that this process holds, and goes on holding when it becomes another by exec: it is over
/// with that. `programs` is the folder of ulfm_hostd, `settings` variables that the door has in its environment.
Result<DoorAddress> start_door(const fabric::FabricArena& arena, const std::string& programs,
                               const std::vector<std::pair<std::string, std::string>>& settings);

/// What it does: prints "+" and its card, or "-" and a sentence, on standard output, and starts proxies until the job
/// is over. The exit code: 0 when there was a door.
int serve_door(const DoorTask& task);

}  // namespace ulfm::proxy
