// What the transports over emulated interconnects have in common: everything but the model.
#pragma once

#include "fabric/engine/engine.hpp"
#include "transport/contract.hpp"

namespace ulfm::emulated {

/// A transport on that engine's interconnect.
std::unique_ptr<Transport> on(std::unique_ptr<fabric::Engine> engine);

/// A transport on the interconnect of this job, which must be the one of that name.
Result<std::unique_ptr<Transport>> make(const char* model);

}  // namespace ulfm::emulated
