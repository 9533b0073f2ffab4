// The cube of Direct-Connect routers as the engine sees it: with scheduled faults and a pace, and as data for
// the list of models.
#pragma once

#include "fabric/model.hpp"

namespace ulfm::fabric::dcm {

extern const ModelKind model_kind;

}  // namespace ulfm::fabric::dcm
