#include "transport/registry.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "fabric/models.hpp"
#include "transport/direct/direct.hpp"
#include "transport/emulated/transport.hpp"
#include "transport/mux/mux.hpp"
#include "transport/ofi/ofi.hpp"
#include "transport/tcp/tcp.hpp"

namespace ulfm {
namespace {

template <std::size_t I>
TransportDescriptor descriptor_of_model() {
  return emulated::descriptor(*fabric::kModels[I],
                              [](const Config& config) { return emulated::make(config, fabric::kModels[I]->name); });
}

template <std::size_t... I>
auto descriptors_of_models(std::index_sequence<I...>) {
  return std::array{descriptor_of_model<I>()...};
}

const std::vector<const TransportDescriptor*>& all_transports() {
  static const auto models = descriptors_of_models(std::make_index_sequence<fabric::kModels.size()>());
  static const auto all = [] {
    std::vector<const TransportDescriptor*> list{&direct_transport};
    for (const TransportDescriptor& model : models) list.push_back(&model);
    list.insert(list.end(), {&tcp_transport, &ofi_transport, &mux_transport});
    return list;
  }();
  return all;
}

/// The transport of a model in a shared object. Made once for each, and there for as long as the process is.
Result<const TransportDescriptor*> from_shared_object(std::string_view path) {
  auto kind = fabric::find_model(path);
  if (!kind) return fail(std::move(kind.error()));
  static std::mutex mutex;
  static auto* const made = new std::map<const fabric::ModelKind*, TransportDescriptor>;  // also used at exit
  std::lock_guard lock(mutex);
  const auto make = [](const Config& config) -> Result<std::unique_ptr<Transport>> {
    auto model = fabric::find_model(fabric::name_of_transport(config.text("TRANSPORT")));
    if (!model) return fail(std::move(model.error()));
    return emulated::make(config, (*model)->name);
  };
  return &made->try_emplace(*kind, emulated::descriptor(**kind, make)).first->second;
}

std::vector<std::string> names() {
  std::vector<std::string> all{"auto"};
  for (const TransportDescriptor* t : all_transports()) all.emplace_back(t->name);
  return all;
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

/// Those that reach all processes of the job, the one with the least cost first. An emulated interconnect is for those
/// who ask for it.
std::vector<const TransportDescriptor*> by_cost() {
  std::vector<const TransportDescriptor*> list;
  const bool far = spans_hosts();
  for (const TransportDescriptor* t : all_transports())
    if (!t->links && (!far || t->multi_host)) list.push_back(t);
  std::stable_sort(list.begin(), list.end(), [](const TransportDescriptor* a, const TransportDescriptor* b) {
    return std::pair(a->latency_us, -a->bandwidth_MBps) < std::pair(b->latency_us, -b->bandwidth_MBps);
  });
  return list;
}

/// For `auto`: the first that can be used here. Those behind it are not asked, because that may take long: libfabric
/// loads its providers, whose libraries look for hardware for 0.2 s.
Result<const TransportDescriptor*> cheapest() {
  std::string reasons;
  for (const TransportDescriptor* t : by_cost()) {
    const std::string why = t->unavailable();
    if (why.empty()) return t;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "transport " : "; transport ", t->name, why);
  }
  return fail(Errc::unavailable, reasons);
}

}  // namespace

std::span<const TransportDescriptor* const> transports() { return all_transports(); }

Result<const TransportDescriptor*> select_transport(std::string_view asked) {
  std::string_view name = asked.substr(0, asked.find(','));
  if (fabric::is_shared_object(name)) return from_shared_object(name);
  const auto with_options = [&](const TransportDescriptor* t) -> Result<const TransportDescriptor*> {
    if (asked.find(',') == std::string_view::npos || t->takes_options) return t;
    return fail(Errc::invalid, fmt::format("transport \"{}\": {} takes no options", asked, t->name));
  };
  if (name == "auto" || name.empty()) {
    auto found = cheapest();
    return found ? with_options(*found) : found;
  }
  for (const TransportDescriptor* t : all_transports()) {
    if (name != t->name) continue;
    if (const std::string why = t->unavailable(); !why.empty())
      return fail(Errc::unavailable, fmt::format("transport {}: {}", t->name, why));
    return with_options(t);
  }
  const auto all = names();
  const std::string near = nearest(name, all);
  return fail(
      Errc::not_found,
      fmt::format("no transport is called \"{}\"{}{}", name.substr(0, 60),
                  near.empty() ? "; there are: " : fmt::format("; did you mean {}? There are: ", near), listed(all)));
}

}  // namespace ulfm
