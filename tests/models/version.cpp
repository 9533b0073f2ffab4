// A model for an interface that there is not yet.
#include <ulfm/model.hpp>

ULFM_MODEL({.version = ulfm::model::kVersion + 1, .name = "later"})
