// The engine as a process of its own (ULFM_ENGINE=process).
#pragma once

#include "fabric/engine/host.hpp"

namespace ulfm::fabric {

/// Starts it for the interconnect of that host. It lives as long as the calling process, or whatever that becomes by
/// exec, and is nobody's child then, so that no launcher has to wait for it.
Result<void> start_engine_process(FabricHost& host);

}  // namespace ulfm::fabric
