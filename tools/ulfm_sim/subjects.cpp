// What can be simulated: every model of the list (fabric/models.hpp), and those of shared objects. One that has a
// subject of its own is simulated by it, which knows closed forms, channels and the reference model; the others need
// none.
#include "fabric/models.hpp"
#include "network.hpp"

namespace sim {
namespace {

constexpr std::pair<const char*, MakeSubject*> kOwn[] = {
#define ULFM_SUBJECT(name) {#name, make_##name},
#include "subjects.inc"
#undef ULFM_SUBJECT
};

}  // namespace

Result<std::unique_ptr<Subject>> make_subject(std::string_view transport, const Topology& topology) {
  auto kind = ulfm::fabric::find_model(ulfm::fabric::name_of_transport(transport));
  if (!kind) return fail(std::move(kind.error()));
  if (auto ok = ulfm::fabric::check_links(**kind, topology); !ok) return fail(std::move(ok.error()));
  const std::string_view options = ulfm::fabric::options_of_transport(transport);
  for (const auto& [name, make] : kOwn)
    if ((*kind)->object == nullptr && std::string_view(name) == (*kind)->name) return make(options, topology);
  return make_any(**kind, options, topology);
}

}  // namespace sim
