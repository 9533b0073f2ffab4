// The two processes that measure: forked by this one, or ranks 0 and 1 of a job.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

#include <ulfm/ulfm.hpp>

#include "fabric/engine/host.hpp"
#include "options.hpp"

namespace perf {

/// One side of the pair. Side 0 measures and reports.
struct Side {
  int number = 0;
  pid_t child = 0;                                 ///< side 0 of a forked pair: its peer
  int channel = -1;                                ///< forked pair: socket to the other side
  std::optional<ulfm::fabric::FabricHost> fabric;  ///< forked pair on an emulated interconnect
  std::unique_ptr<ulfm::Job> job;
  std::unique_ptr<ulfm::Port> port;
  ulfm::Address peer{};
  bool spectator = false;  ///< rank 2 and above of a job: has nothing to do

  /// Both sides are here.
  void barrier();
  /// The other process of a forked pair has ended. In a job the launcher sees to that.
  bool peer_left() const;
  /// Side 0: the peer's exit code; 0 when it is not our child.
  int wait_for_child();
  /// Closes the port, leaves the job and waits for the child: its exit code.
  int leave();
};

/// Binds the calling process to its core. Without `bind`, hwloc picks two cores near each other.
void bind_side(int side, const Options& options);

/// This process was not started by a launcher.
bool is_alone();

/// Makes the pair. Forks when this process is alone.
ulfm::Result<Side> make_pair_of_processes(const Options& options);

/// Forks only: for the floor, which needs no ports.
ulfm::Result<Side> fork_pair();

}  // namespace perf
