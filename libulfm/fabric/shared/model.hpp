// A model of a shared object, as the engine and the simulator use it.
#pragma once

#include <ulfm/model.hpp>

#include "fabric/model.hpp"

namespace ulfm::fabric::shared {

/// As ModelKind::plan and ModelKind::attach say.
Result<PlannedModel> plan_model(const ModelKind& kind, const model::Description& description, const ModelPlan& asked);
Result<std::unique_ptr<Model>> attach_model(const model::Description& description, std::byte* memory,
                                            std::size_t bytes);

}  // namespace ulfm::fabric::shared
