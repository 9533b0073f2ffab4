// A point design as the engine sees it: with options and scheduled faults, and as data for the list of models.
#pragma once

#include "fabric/model.hpp"
#include "fabric/pointdesign/parameters.hpp"
#include "fabric/topology/topology.hpp"

namespace ulfm::fabric::pointdesign {

extern const ModelKind model_kind;

/// The parameters of such a machine with these options; frames and copies are left 0. Errc::invalid for a topology that
/// is no generalized hypercube, and for options that are none.
Result<Parameters> parameters_for(const Topology& topology, ModelOptions options);

}  // namespace ulfm::fabric::pointdesign
