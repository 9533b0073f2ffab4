// The one list of models of interconnects. A model joins by its folder and a line here: its transport, its rows of
// ulfm_info, ulfmrun's checks, ulfm_sim, the benches and the conformance tests follow.
#pragma once

#include <array>

#include "fabric/model.hpp"

namespace ulfm::fabric {

namespace xswitch {
extern const ModelKind model_kind;
}
namespace dcm {
extern const ModelKind model_kind;
}
namespace pcie {
extern const ModelKind model_kind;
}
namespace pointdesign {
extern const ModelKind model_kind;
}
namespace ideal {
extern const ModelKind model_kind;
}

inline constexpr std::array kModels{&xswitch::model_kind, &dcm::model_kind, &pcie::model_kind, &pointdesign::model_kind,
                                    &ideal::model_kind};

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
