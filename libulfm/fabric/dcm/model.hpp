// The cube of Direct-Connect routers as the engine sees it: with scheduled faults and a pace, and as data for
// the list of models.
#pragma once

#include "fabric/dcm/parameters.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::dcm {

extern const ModelKind model_kind;

/// The sizes and times that options such as "fifo=128,hop=2" ask for. Errc::invalid says which option is wrong.
Result<Parameters> parameters_from(ModelOptions options);

}  // namespace ulfm::fabric::dcm
