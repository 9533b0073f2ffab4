// The ideal network as the engine sees it, and as data for the list of models.
#pragma once

#include "fabric/ideal/parameters.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::ideal {

extern const ModelKind model_kind;

/// The numbers that options such as "latency=100,gap=8" ask for. Errc::invalid says which option is wrong.
Result<Parameters> parameters_from(ModelOptions options);

}  // namespace ulfm::fabric::ideal
