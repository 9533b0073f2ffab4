#include "fabric/shared/object.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include <fmt/core.h>

#include "fabric/models.hpp"
#include "fabric/shared/model.hpp"

namespace ulfm::fabric::shared {
namespace {

constexpr std::size_t kMostName = 15;    // ArenaHeader::model
constexpr const char* kFrame = "frame";  // an option that every model has

/// What the model's own kind points to, for as long as the process lives.
struct Loaded {
  std::string path;
  const model::Description* description = nullptr;
  std::vector<Options::Row> rows;
  ModelKind kind{};
};

tl::unexpected<Error> wrong(std::string_view path, Errc code, const std::string& why) {
  return fail(code, fmt::format("shared object {}: {}", path.substr(0, 300), why));
}

Result<std::string> canonical(std::string_view path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::canonical(std::filesystem::path(path), error);
  if (error) return wrong(path, Errc::not_found, error.message());
  if (!std::filesystem::is_regular_file(found, error)) return wrong(path, Errc::invalid, "is no file");
  return found.string();
}

/// The address of a symbol that says which version of the interface it is for, which is its first member.
Result<const void*> find_symbol(const std::string& path, const char* name, const char* macro) {
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    const char* const why = dlerror();
    return wrong(path, Errc::invalid, fmt::format("cannot be loaded: {}", why != nullptr ? why : "no reason given"));
  }
  const void* const found = dlsym(object, name);
  if (found == nullptr)
    return wrong(path, Errc::invalid, fmt::format("has no {}; {}(...) of <ulfm/model.hpp> exports it", name, macro));
  const std::uint32_t version = *static_cast<const std::uint32_t*>(found);
  if (version != model::kVersion)
    return wrong(
        path, Errc::invalid,
        fmt::format(
            "is for version {} of <ulfm/model.hpp>, and this ULFM has version {}: compile it again with this one",
            version, model::kVersion));
  return found;
}

std::string fault_of(const model::Description& d) {
  if (d.name == nullptr || d.summary == nullptr || d.topology == nullptr || d.bytes == nullptr || d.create == nullptr ||
      d.attach == nullptr || (d.options == nullptr && d.option_count != 0))
    return "its description has no name, summary, topology, bytes, create, attach or options";
  const std::string_view name = d.name;
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (name.empty() || name.size() > kMostName || name.find_first_not_of(kLetters) != std::string_view::npos)
    return fmt::format("its name \"{}\" is no word of 1 to 15 letters, digits and _", name.substr(0, 40));
  for (const ModelKind* kind : kModels)
    if (name == kind->name) return fmt::format("its name \"{}\" is that of a model of ULFM's own", name);
  if (!(d.cycle_ns > 0 && d.cycle_ns < 1e9)) return "a cycle takes more than 0 and less than 1e9 nanoseconds";
  std::set<std::string_view> names{kFrame, "preset"};
  for (std::uint32_t i = 0; i < d.option_count; ++i) {
    const model::Option& o = d.options[i];
    if (o.name == nullptr || o.least > o.usual || o.usual > o.most)
      return fmt::format("option {} has no name, or its usual value is out of its bounds", i);
    if (!names.insert(o.name).second)
      return fmt::format("its option {} has a name that is taken, by another one or in every model", o.name);
  }
  return "";
}

std::map<std::string, std::unique_ptr<Loaded>, std::less<>>& loaded() {
  static auto* const all = new std::map<std::string, std::unique_ptr<Loaded>, std::less<>>;  // also used at exit
  return *all;
}

Result<const ModelKind*> load(const std::string& path) {
  auto symbol = find_symbol(path, "ulfm_model", "ULFM_MODEL");
  if (!symbol) return fail(std::move(symbol.error()));
  auto made = std::make_unique<Loaded>();
  const auto* const d = static_cast<const model::Description*>(*symbol);
  if (const std::string fault = fault_of(*d); !fault.empty()) return wrong(path, Errc::invalid, fault);
  made->path = path;
  made->description = d;
  made->rows.push_back({kFrame, 64, 65536});
  for (std::uint32_t i = 0; i < d->option_count; ++i)
    made->rows.push_back({d->options[i].name, d->options[i].least, d->options[i].most});
  ModelKind& kind = made->kind;
  kind.name = d->name;
  kind.summary = d->summary;
  kind.default_topology = d->topology;
  kind.options = made->rows;
  kind.frame = 8192;
  kind.object = made->path.c_str();
  kind.plan = [&kind, d](const ModelPlan& asked) { return plan_model(kind, *d, asked); };
  kind.attach = [d](std::byte* memory, std::size_t bytes) { return attach_model(*d, memory, bytes); };
  return &(loaded()[path] = std::move(made))->kind;
}

}  // namespace

Result<const ModelKind*> find_model(std::string_view name) {
  static std::mutex mutex;
  auto path = canonical(name);
  if (!path) return fail(std::move(path.error()));
  std::lock_guard lock(mutex);
  if (const auto it = loaded().find(*path); it != loaded().end()) return &it->second->kind;
  return load(*path);
}

const model::Description* description_of(const ModelKind& kind) {
  if (kind.object == nullptr) return nullptr;
  const auto found = find_model(kind.object);
  return found ? loaded().at(kind.object)->description : nullptr;
}

Result<const model::RoutingDescription*> find_routing(std::string_view name) {
  auto path = canonical(name);
  if (!path) return fail(std::move(path.error()));
  auto symbol = find_symbol(*path, "ulfm_routing", "ULFM_ROUTING");
  if (!symbol) return fail(std::move(symbol.error()));
  const auto* const routing = static_cast<const model::RoutingDescription*>(*symbol);
  if (routing->way == nullptr || routing->name == nullptr)
    return wrong(*path, Errc::invalid, "its routing has no name or no way");
  return routing;
}

NetTables::NetTables(const Topology& t) {
  const auto end_of = [](const LinkEnd& end) {
    return model::End{static_cast<std::uint32_t>(end.kind), end.index, end.port};
  };
  static_assert(static_cast<std::uint32_t>(LinkEnd::Kind::switch_port) == model::End::switch_port);
  static_assert(static_cast<std::uint32_t>(LinkEnd::Kind::node) == model::End::node);
  for (const LinkEnd& end : t.ends) ends_.push_back(end_of(end));
  for (const SwitchPort& place : t.attachment) places_.push_back({model::End::switch_port, place.at, place.port});
  net_ = {t.name.c_str(), t.nodes(), t.switches, t.ports, ends_.data(), places_.data()};
}

std::vector<std::int64_t> values_of(const model::Description& d, const Options& given) {
  std::vector<std::int64_t> values;
  for (std::uint32_t i = 0; i < d.option_count; ++i)
    values.push_back(given.number(d.options[i].name, d.options[i].usual));
  return values;
}

}  // namespace ulfm::fabric::shared
