// The models that can be simulated.
#include <fmt/core.h>

#include "network.hpp"

namespace sim {

Result<std::unique_ptr<Subject>> make_subject(std::string_view transport, const Topology& topology) {
  const std::size_t comma = transport.find(',');
  const std::string_view name = transport.substr(0, comma);
  const std::string_view options = comma == std::string_view::npos ? "" : transport.substr(comma + 1);
  if (name == "xswitch") return make_xswitch(options, topology);
  if (name == "dcm") return make_dcm(options, topology);
  if (name == "pcie") return make_pcie(options, topology);
  if (name == "ideal") return make_ideal(options, topology);
  return fail(Errc::not_found, fmt::format("there is no model \"{}\"; take xswitch, dcm, pcie or ideal", name));
}

}  // namespace sim
