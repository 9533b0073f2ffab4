// How the processes of a job on several hosts agree on an arena when ulfmrun has not made it. That of the first process
// serves all: its holder opens a door, whose address goes by the launcher's key-value space.
#pragma once

#include "base/error.hpp"
#include "transport/proxy/address.hpp"

namespace ulfm::proxy {

/// The door to that arena; nullptr on its own host. All processes of the job call it, once before anything else of the
/// launcher is waited for; later calls have the same answer. Errc::unavailable, with a sentence.
Result<const DoorAddress*> agreed_door();

}  // namespace ulfm::proxy
