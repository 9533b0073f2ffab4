// The network of X-Switches as the engine sees it: with routes, and as data for the list of models.
#pragma once

#include "fabric/model.hpp"
#include "fabric/xswitch/parameters.hpp"

namespace ulfm::fabric::xswitch {

extern const ModelKind model_kind;

/// The sizes that options such as "fifo=128,link=2" ask for. Errc::invalid says which option is wrong.
Result<Parameters> parameters_from(ModelOptions options, const Topology& topology);

}  // namespace ulfm::fabric::xswitch
