// The one list of models.

#include <array>

#include "fabric/dcm/model.hpp"
#include "fabric/engine/engine.hpp"
#include "fabric/engine/host.hpp"
#include "fabric/ideal/model.hpp"
#include "fabric/pcie/model.hpp"
#include "fabric/pointdesign/model.hpp"
#include "fabric/xswitch/model.hpp"

namespace ulfm::fabric {
namespace {
constexpr std::array kModels{&xswitch::model_kind, &dcm::model_kind, &pcie::model_kind, &pointdesign::model_kind,
                             &ideal::model_kind};
}

const ModelKind* find_model(std::string_view name) {
  for (const ModelKind* kind : kModels)
    if (name == kind->name) return kind;
  return nullptr;
}

const ModelKind* model_of_transport(std::string_view transport) {
  return find_model(transport.substr(0, transport.find(',')));
}

}  // namespace ulfm::fabric
