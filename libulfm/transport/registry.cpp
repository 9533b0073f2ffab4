#include "transport/registry.hpp"

#include <array>
#include <vector>

#include "transport/dcm/dcm.hpp"
#include "transport/direct/direct.hpp"
#include "transport/ideal/ideal.hpp"
#include "transport/mux/mux.hpp"
#include "transport/ofi/ofi.hpp"
#include "transport/pcie/pcie.hpp"
#include "transport/pointdesign/pointdesign.hpp"
#include "transport/xswitch/xswitch.hpp"

namespace ulfm {
namespace {

constexpr std::array kTransports{&direct_transport, &xswitch_transport,     &dcm_transport,   &pcie_transport,
                                 &ofi_transport,    &pointdesign_transport, &ideal_transport, &mux_transport};

std::vector<std::string> names() {
  std::vector<std::string> all{"auto"};
  for (const TransportDescriptor* t : kTransports) all.emplace_back(t->name);
  return all;
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

}  // namespace

std::span<const TransportDescriptor* const> transports() { return kTransports; }

Result<const TransportDescriptor*> select_transport(std::string_view asked) {
  std::string_view name = asked.substr(0, asked.find(','));
  if ((name == "auto" || name.empty()) && spans_hosts()) name = mux_transport.name;
  for (const TransportDescriptor* t : kTransports) {
    if (name != "auto" && !name.empty() && name != t->name) continue;
    const std::string why = t->unavailable();
    if (why.empty()) {
      if (asked.find(',') != std::string_view::npos && !t->takes_options)
        return fail(Errc::invalid, "transport \"" + std::string(asked) + "\": " + t->name + " takes no options");
      return t;
    }
    if (name == t->name) return fail(Errc::unavailable, std::string("transport ") + t->name + ": " + why);
  }
  const auto all = names();
  const std::string near = nearest(name, all);
  return fail(Errc::not_found, "no transport is called \"" + std::string(name.substr(0, 60)) + "\"" +
                                   (near.empty() ? "; there are: " : "; did you mean " + near + "? There are: ") +
                                   listed(all));
}

}  // namespace ulfm
