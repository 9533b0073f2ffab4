// The form for people.
#include <fmt/core.h>

#include "print.hpp"

namespace topo {
namespace {

const char* model(std::uint32_t ports) {
  if (ports == ulfm::fabric::kXSwitchPorts) return " (X-Switch)";
  return ports == ulfm::fabric::kThSwitchPorts ? " (TH-Switch)" : "";
}

std::string dead_text(const View& view) {
  std::string text;
  for (const SwitchPort& p : view.dead)
    text += fmt::format("{}{} - {}", text.empty() ? "" : ", ", port_name(view.topology, p), end_name(view.topology, p));
  return text;
}

/// A line for each link that has cycles of its own.
std::string own_text(const Topology& t) {
  std::string text;
  for (const SwitchPort& p : own_links(t)) {
    text += fmt::format("  own        {} - {}:", port_name(t, p), end_name(t, p));
    if (const std::uint32_t latency = own_latency(t, p))
      text += fmt::format(" latency {}", counted(latency, "cycle", "cycles"));
    if (const std::uint32_t rate = own_rate(t, p))
      text += fmt::format(" rate {} a unit", counted(rate, "cycle", "cycles"));
    text += "\n";
  }
  return text;
}

std::string summary(const View& view) {
  const Topology& t = view.topology;
  const auto& e = view.extent;
  const std::uint64_t own = t.shape == Shape::hypercube ? std::uint64_t{t.switches} * t.dimension : 0;
  const std::uint64_t free = t.ends.size() - 2 * std::uint64_t{e.links} - t.nodes() - own;
  std::string text = fmt::format("{}\n", t.name);
  if (t.shape == Shape::boards)
    text += fmt::format("  host       {}, room for {} each", counted(t.ports, "board", "boards"),
                        counted(t.processes_per_node, "process", "processes"));
  else if (t.shape == Shape::hypercube)
    text += fmt::format("  cards      {} in {} of {}, with {} each; {} and {} a processor", t.switches,
                        counted(t.dimension, "dimension", "dimensions"), t.radix,
                        counted(t.card_processors, "processor", "processors"),
                        counted(std::uint64_t{t.dimension} * ((t.radix + 7) / 8), "port", "ports"),
                        counted(std::uint64_t{t.dimension} * (t.radix - 1) + 1, "queue", "queues"));
  else text += fmt::format("  switches   {} of {} ports{}", t.switches, t.ports, model(t.ports));
  if (t.rows != 0)
    text += fmt::format(", {} by {}", counted(t.rows, "row", "rows"), counted(t.columns, "column", "columns"));
  text += t.shape == Shape::boards ? fmt::format("\n  links      {}, each a slot of the host's bus\n", t.nodes())
                                   : fmt::format("\n  links      {} between switches; {}\n", e.links,
                                                 counted(free, "port is free", "ports are free"));
  text += own_text(t);
  text += fmt::format("  nodes      {}\n", t.nodes());
  text += fmt::format("  processes  {}\n", view.processes);
  text += fmt::format("  routes     {}\n", routing(view));
  if (t.shape == Shape::boards) text += "  ways       from board to board through the host's memory\n";
  else if (e.longest != 0)
    text += fmt::format("  ways       {:.2f} switches on average, {} at most (diameter)\n", e.average, e.longest);
  if (e.bisection != 0) text += fmt::format("  bisection  {}\n", counted(e.bisection, "link", "links"));
  if (!view.dead.empty()) text += fmt::format("  dead       {}\n", dead_text(view));
  if (e.cut_off != 0)
    text += fmt::format("  cut off    {} of {} ordered pairs of nodes have no way\n", e.cut_off,
                        std::uint64_t{t.nodes()} * (t.nodes() - 1));
  return text;
}

std::string placement(const View& view) {
  const Topology& t = view.topology;
  if (view.rank_is_node()) return "\nEach node has the rank of its own number.\n";
  std::string text = "\nNode    port        ranks\n";
  for (std::uint32_t n = 0; n < t.nodes(); ++n) {
    const std::string ranks = view.ranks_on(n);
    text += fmt::format("n{:<6} {:<11} {}\n", n, port_name(t, t.attachment[n]), ranks.empty() ? "-" : ranks);
  }
  return text;
}

}  // namespace

std::string text_of(const View& view) {
  return fmt::format("{}\n{}{}", summary(view), text_picture(view), placement(view));
}

}  // namespace topo
