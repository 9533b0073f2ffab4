// Models and routing functions from shared objects (ulfm-model(7)).
#pragma once

#include <string>
#include <string_view>

#include <ulfm/model.hpp>

#include "fabric/model.hpp"

namespace ulfm::fabric::shared {

/// The model in a shared object, which stays loaded. Errc::not_found: there is no such file. Errc::invalid: it is none,
/// it exports no model, or one for another version of the interface. Any thread.
Result<const ModelKind*> find_model(std::string_view path);
/// Its own interface. nullptr: the model is not from a shared object.
const model::Description* description_of(const ModelKind& kind);

/// The same for a routing function.
Result<const model::RoutingDescription*> find_routing(std::string_view path);

/// A topology in the interface's words. Not moved while its net() is in use.
class NetTables {
 public:
  explicit NetTables(const Topology& topology);
  const model::Net& net() const noexcept { return net_; }

 private:
  std::vector<model::End> ends_, places_;
  model::Net net_;
};

/// Values of a model's options, in its order.
std::vector<std::int64_t> values_of(const model::Description& description, const Options& given);

}  // namespace ulfm::fabric::shared
