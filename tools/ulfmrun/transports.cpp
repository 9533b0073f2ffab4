#include "transports.hpp"

#include <ulfm/ulfm.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/fault_plan.hpp"
#include "failure.hpp"
#include "nearest.hpp"

namespace ulfmrun {
namespace {

// Names that documentation speaks of; one leaves this list's effect when the library lists it.
constexpr std::array<std::string_view, 3> kPlanned = {"ofi", "dcm", "pointdesign"};
constexpr std::array<std::string_view, 4> kEmulated = {"xswitch", "dcm", "pcie", "pointdesign"};

std::vector<std::string> known() {
  std::vector<std::string> names = {"auto"};
  for (int i = 0; i < ulfm_transport_count(); ++i) {
    if (const char* name = ulfm_transport_name(i); name && name != names.front()) names.emplace_back(name);
  }
  return names;
}

std::string name_of(const std::string& spec) { return spec.substr(0, spec.find(',')); }

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The reason why a transport of the library cannot be used on this host; "" when it can.
std::string unavailable(const std::string& name) {
  for (int i = 0; i < ulfm_transport_count(); ++i) {
    const char* candidate = ulfm_transport_name(i);
    if (candidate && name == candidate) return ulfm_transport_unavailable(i);
  }
  return "";
}

[[noreturn]] void fail_unknown(const std::string& name, const std::string& origin) {
  if (contains(kPlanned, name))
    fail(kUsage, origin + ": transport " + name + " is not available in this version; there is: " + transport_list());
  std::vector<std::string> all = known();
  all.insert(all.end(), kPlanned.begin(), kPlanned.end());
  const std::string near = nearest(name, all, 3);
  fail(kUsage, origin + ": there is no transport \"" + name + "\"" + (near.empty() ? "" : "; the nearest is " + near) +
                   "; there is: " + transport_list());
}

std::string shown(const std::string& name) { return name == "auto" ? "auto (direct on one host)" : name; }

void check_settings(const std::string& spec, const std::string& origin) {
  for (std::size_t at = spec.find(','); at != std::string::npos;) {
    const std::size_t end = spec.find(',', at + 1);
    const std::string setting = spec.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (const std::size_t equals = setting.find('='); equals == 0 || equals == std::string::npos)
      fail(kUsage, origin + ": after the transport's name, option=value is needed; found \"" + setting + "\" in \"" +
                       spec + "\"");
    at = end;
  }
}

}  // namespace

std::string transport_list() {
  std::string list;
  for (const auto& name : known()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

void check_transport(const std::string& spec, const std::string& origin) {
  const std::string name = name_of(spec);
  if (!contains(known(), name)) fail_unknown(name, origin);
  if (const std::string why = unavailable(name); !why.empty())
    fail(kUsage,
         origin + ": transport " + name + " cannot be used here: " + why + "; choose among: " + transport_list());
  check_settings(spec, origin);
}

void check_emulated(const std::string& spec, const std::string& option) {
  const std::string name = name_of(spec);
  if (contains(kEmulated, name)) return;
  fail(kUsage, "transport " + shown(name) + " has no topology; " + option +
                   " goes with an emulated interconnect, and this version has none: leave " + option + " out");
}

void check_fault(const std::string& spec, const std::string& expression) {
  const auto plan = ulfm::parse_fault_plan(expression);
  if (!plan) fail(kUsage, "--fault: " + plan.error().what);
  const std::string name = name_of(spec);
  if (!plan->events.empty() && !contains(kEmulated, name))
    fail(kUsage, "transport " + shown(name) +
                     " has no links, switches and nodes that could fail at a moment; such "
                     "faults go with an emulated interconnect, and this version has none: leave them out of --fault");
}

}  // namespace ulfmrun
