// The engine as a process of its own (ULFM_ENGINE=process).
#pragma once

#include "fabric/engine/host.hpp"

namespace ulfm::fabric {

/// Starts it for the interconnect of that host. It lives as long as the calling process, or whatever that becomes by
/// exec, and is nobody's child then, so that no launcher has to wait for it. A model with a program of its own
/// (ModelKind::program) has it in `folder`; the others need none.
Result<void> start_engine_process(FabricHost& host, const std::string& folder);

/// What such a program does. It becomes the keeper: it starts the process that moves the model, and another one when
/// that dies, until the job is over.
struct KeeperTask {
  std::string name;  ///< of the process that moves the model
  ArenaAddress arena;
  std::int32_t job = 0;  ///< process with whose end the job is over
  std::uint64_t job_started = 0;
};
/// The exit code: 0 when the job is over.
int keep_engine(const KeeperTask& task);

}  // namespace ulfm::fabric
