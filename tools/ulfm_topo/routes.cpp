// Routes as the sender writes them into a frame's head: one routing character for each switch (Li, THNPC-II,
// section 2.2).
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "fabric/topology/ports.hpp"
#include "print.hpp"

namespace topo {
namespace {

using ulfm::fabric::port_label;
using ulfm::fabric::Route;

std::string characters(const Route& way) {
  std::string text;
  for (const std::uint8_t port : way) text += fmt::format("{}ID-F{}", text.empty() ? "" : " ", port_label(port));
  return text;
}

/// The switches a way passes.
std::vector<std::uint32_t> switches_on(const Topology& t, std::uint32_t from, const Route& way) {
  std::vector<std::uint32_t> passed;
  std::uint32_t at = t.attachment[from].at;
  for (const std::uint8_t port : way) {
    passed.push_back(at);
    at = t.end({at, port}).index;
  }
  return passed;
}

void print_one(const Topology& t, std::uint32_t from, std::uint32_t to, const Route& way) {
  if (from == to) {
    fmt::print("n{} -> n{}  the same node\n", from, to);
    return;
  }
  if (way.empty()) {
    fmt::print("n{} -> n{}  no way\n", from, to);
    return;
  }
  fmt::print("n{} -> n{}  {}\n", from, to, counted(way.size(), "switch", "switches"));
  const auto passed = switches_on(t, from, way);
  for (std::size_t i = 0; i < way.size(); ++i)
    fmt::print("  {:<8} ID-F{}  to {}\n", switch_name(t, passed[i]), port_label(way[i]),
               end_name(t, {passed[i], way[i]}));
}

void print_json(const Topology& t, std::uint32_t from, std::uint32_t to, const Route& way) {
  nlohmann::ordered_json one{{"from", from}, {"to", to}, {"switches", nlohmann::ordered_json::array()}};
  for (const std::uint32_t s : switches_on(t, from, way)) one["switches"].push_back(switch_name(t, s));
  std::string letters;  // with blanks between them where some ports have two
  for (const std::uint8_t port : way) letters += (t.ports > 26 && !letters.empty() ? " " : "") + port_label(port);
  one["ports"] = letters;
  fmt::print("{}", one.dump());
}

void print_text(std::uint32_t from, std::uint32_t to, const Route& way) {
  fmt::print("n{} -> n{}  {}\n", from, to, way.empty() ? "no way" : characters(way));
}

}  // namespace

bool print_routes(const View& view, const Options& options) {
  const Topology& t = view.topology;
  bool found = true, first = true;
  const auto wanted = [&](std::uint32_t from, std::uint32_t to) { return options.to ? to == *options.to : from != to; };
  if (options.json)
    fmt::print("{{\"topology\": {}, \"routing\": {}, \"routes\": [",
               nlohmann::json(t.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
               nlohmann::json(routing(view)).dump());
  for (std::uint32_t from = options.from.value_or(0); from < t.nodes(); ++from) {
    const auto ways = compute_routes_from(t, from, view.dead);
    for (std::uint32_t to = 0; to < t.nodes(); ++to) {
      if (!wanted(from, to)) continue;
      if (options.to && from != to) found = !ways[to].empty();
      if (options.json) {
        fmt::print("{}", first ? "\n" : ",\n");
        print_json(t, from, to, ways[to]);
      } else if (options.to) {
        print_one(t, from, to, ways[to]);
      } else {
        print_text(from, to, ways[to]);
      }
      first = false;
    }
    if (options.from) break;
  }
  if (options.json) fmt::print("\n]}}\n");
  return found;
}

}  // namespace topo
