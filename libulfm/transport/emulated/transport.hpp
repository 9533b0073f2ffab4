// What the transports over emulated interconnects have in common: everything but the model.
#pragma once

#include "fabric/engine/engine.hpp"
#include "transport/contract.hpp"

namespace ulfm::emulated {

/// A transport on that engine's interconnect.
std::unique_ptr<Transport> on(std::unique_ptr<fabric::FabricEngine> engine);

/// A transport on the interconnect of this job, which must be the one of that name. By a proxy when that is on another
/// host.
Result<std::unique_ptr<Transport>> make(const Config& config, const char* model);

/// The emulated node of each rank of this job, numbered from 0; empty when the job has no arena.
std::vector<int> nodes(int size);

/// What the transport of a model says of itself. Latency and bandwidth are rough ones of all of them on one host.
TransportDescriptor descriptor(const fabric::ModelKind& kind,
                               Result<std::unique_ptr<Transport>> (*make)(const Config&));

}  // namespace ulfm::emulated
