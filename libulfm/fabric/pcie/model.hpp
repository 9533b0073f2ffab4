// Boards in the slots of a PC host, as the engine sees them: with options and scheduled faults, and as data for the
// list of models.
#pragma once

#include "fabric/model.hpp"
#include "fabric/pcie/parameters.hpp"

namespace ulfm::fabric::pcie {

extern const ModelKind model_kind;

/// The sizes that options such as "pool=65536,mode=cut-through" ask for, for so many processes and messages at a time.
/// Errc::invalid says which option is wrong, or that the topology is no host with boards.
Result<Parameters> parameters_from(ModelOptions options, const Topology& topology, std::uint32_t processes,
                                   std::uint32_t frames);

}  // namespace ulfm::fabric::pcie
