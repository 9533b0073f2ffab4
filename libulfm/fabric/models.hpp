// The only list of models of interconnects. A model joins by its folder and a line here: its transport, its rows of
// ulfm_info, ulfmrun's checks, ulfm_sim, the benches and the conformance tests follow.
#pragma once

#include <array>

#include "fabric/model.hpp"

namespace ulfm::fabric {

// clang-format off: a line each
#define ULFM_MODELS(MODEL) \
  MODEL(xswitch)           \
  MODEL(dcm)               \
  MODEL(pcie)              \
  MODEL(pointdesign)       \
  MODEL(ideal)
// clang-format on

#define ULFM_MODEL_KIND(name)        \
  namespace name {                   \
  extern const ModelKind model_kind; \
  }
ULFM_MODELS(ULFM_MODEL_KIND)
#undef ULFM_MODEL_KIND

#define ULFM_MODEL_KIND(name) &name::model_kind,
inline constexpr std::array kModels{ULFM_MODELS(ULFM_MODEL_KIND)};
#undef ULFM_MODEL_KIND

/// The model of that name, or the one in that shared object; Errc::not_found when no model is called so. Errors of a
/// shared object say what is wrong with it. Any thread.
Result<const ModelKind*> find_model(std::string_view name);

/// The text names a shared object and no model of the list: it has a '/' or ends in ".so".
bool is_shared_object(std::string_view name);

/// The part of "xswitch,frame=256" before the comma, and the part behind it.
std::string_view name_of_transport(std::string_view transport);
std::string_view options_of_transport(std::string_view transport);

/// The model that a transport setting names; nullptr for transports that are no emulation, and for shared objects that
/// cannot be used, about which find_model() says more.
const ModelKind* model_of_transport(std::string_view transport);

}  // namespace ulfm::fabric
