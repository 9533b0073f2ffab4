#include "fabric/models.hpp"

#include <fmt/core.h>

#include "fabric/shared/object.hpp"

namespace ulfm::fabric {

bool is_shared_object(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".so");
}

std::string_view name_of_transport(std::string_view transport) { return transport.substr(0, transport.find(',')); }

std::string_view options_of_transport(std::string_view transport) {
  const auto comma = transport.find(',');
  return comma == std::string_view::npos ? std::string_view{} : transport.substr(comma + 1);
}

Result<const ModelKind*> find_model(std::string_view name) {
  for (const ModelKind* kind : kModels)
    if (name == kind->name) return kind;
  if (is_shared_object(name)) return shared::find_model(name);
  std::string all;
  for (const ModelKind* kind : kModels) all += (all.empty() ? "" : ", ") + std::string(kind->name);
  return fail(Errc::not_found, fmt::format("there is no model \"{}\"; take {}, or a shared object such as ./mine.so",
                                           name.substr(0, 60), all));
}

const ModelKind* model_of_transport(std::string_view transport) {
  const auto found = find_model(name_of_transport(transport));
  return found ? *found : nullptr;
}

}  // namespace ulfm::fabric
