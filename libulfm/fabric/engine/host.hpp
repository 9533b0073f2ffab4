// Sets an emulated interconnect up for a job, before its processes start.
#pragma once

#include <string>
#include <vector>

#include "fabric/engine/arena.hpp"
#include "fabric/models.hpp"

namespace ulfm::fabric {

struct FabricPlan {
  std::string transport;  ///< "xswitch,frame=256": model and options
  std::string topology;   ///< as on the command line; empty: the model's own default
  std::uint32_t processes = 2;
  std::string faults = {};  ///< as in ULFM_FAULT; only what is scheduled matters here
  std::string time = {};    ///< as behind --time; empty: the host's
  /// On which node each process is, from process 0 on; those behind these are where the topology has them.
  std::vector<std::uint32_t> nodes = {};
  /// The processes are the nodes of a cube that a host program loads. There is room for as many as the topology has
  /// nodes, and one more process: the host, which comes first and is the last by number.
  bool host = false;
};

/// Holds the arena open for the processes of a job; they find it by the environment variable ULFM_FABRIC.
class FabricHost {
 public:
  /// Errc::invalid with a sentence about the topology or an option.
  static Result<FabricHost> create(const FabricPlan& plan);

  /// Sets ULFM_FABRIC for the processes this one starts, or becomes. The descriptor stays open across exec: whoever
  /// this process becomes holds the arena.
  Result<void> publish();

  FabricArena& arena() noexcept { return arena_; }
  const FabricArena& arena() const noexcept { return arena_; }
  const ModelKind& kind() const noexcept { return *kind_; }

 private:
  FabricHost(FabricArena arena, const ModelKind* kind) : arena_(std::move(arena)), kind_(kind) {}
  FabricArena arena_;
  const ModelKind* kind_;
};

}  // namespace ulfm::fabric
