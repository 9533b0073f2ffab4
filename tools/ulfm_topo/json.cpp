// The form for programs. The keys are documented in ulfm_topo(1); they are only ever added to.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "fabric/topology/ports.hpp"
#include "print.hpp"

namespace topo {
namespace {

using Json = nlohmann::ordered_json;

Json switches_of(const View& view) {
  const Topology& t = view.topology;
  Json all = Json::array();
  for (std::uint32_t s = 0; s < t.switches; ++s) {
    Json ports = Json::object();
    for (std::uint32_t p = 0; p < t.ports; ++p) {
      const bool used = t.end({s, p}).kind != LinkEnd::Kind::nothing;
      ports[ulfm::fabric::port_label(p)] = used ? Json(end_name(t, {s, p})) : Json();
    }
    all.push_back({{"name", switch_name(t, s)}, {"ends", ports}});
  }
  return all;
}

Json nodes_of(const View& view) {
  Json all = Json::array();
  for (std::uint32_t n = 0; n < view.topology.nodes(); ++n)
    all.push_back({{"port", port_name(view.topology, view.topology.attachment[n])}, {"ranks", view.ranks[n]}});
  return all;
}

// Of links that have cycles of their own; null for what the file does not give.
Json own_links_of(const Topology& t) {
  const auto given = [](std::uint32_t cycles) { return cycles == 0 ? Json() : Json(cycles); };
  Json all = Json::array();
  for (const SwitchPort& p : own_links(t))
    all.push_back({{"port", port_name(t, p)},
                   {"end", end_name(t, p)},
                   {"latency", given(own_latency(t, p))},
                   {"rate", given(own_rate(t, p))}});
  return all;
}

}  // namespace

std::string json_of(const View& view) {
  const Topology& t = view.topology;
  Json dead = Json::array();
  for (const SwitchPort& p : view.dead) dead.push_back(port_name(t, p));
  const Json json{{"topology", t.name},
                  {"shape", name(t.shape)},
                  {"ports", t.ports},
                  {"links", view.extent.links},
                  {"processes", view.processes},
                  {"routing", routing(view)},
                  {"longest", view.extent.longest},
                  {"average", view.extent.average},
                  {"cut_off", view.extent.cut_off},
                  {"bisection", view.extent.bisection == 0 ? Json() : Json(view.extent.bisection)},
                  {"dead", dead},
                  {"switches", switches_of(view)},
                  {"nodes", nodes_of(view)},
                  {"own_links", own_links_of(t)}};
  return fmt::format("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace topo
