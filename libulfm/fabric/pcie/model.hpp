// Boards in the slots of a PC host, as the engine sees them: with options and scheduled faults, and as data for the
// list of models.
#pragma once

#include "fabric/model.hpp"

namespace ulfm::fabric::pcie {

extern const ModelKind model_kind;

}  // namespace ulfm::fabric::pcie
