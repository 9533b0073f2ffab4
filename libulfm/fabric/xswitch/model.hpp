// The network of X-Switches as the engine sees it: with routes, and as data for the list of models.
#pragma once

#include "fabric/model.hpp"

namespace ulfm::fabric::xswitch {

extern const ModelKind model_kind;

}  // namespace ulfm::fabric::xswitch
