// Graphviz' language.
#include <fmt/core.h>

#include "fabric/topology/ports.hpp"
#include "print.hpp"

namespace topo {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return fmt::format("{}\"", out);
}

std::string link(const View& view, SwitchPort port) {
  const Topology& t = view.topology;
  const LinkEnd& end = t.end(port);
  const bool to_node = end.kind == LinkEnd::Kind::node;
  const std::string other = to_node ? fmt::format("node{}", end.index) : fmt::format("switch{}", end.index);
  const std::string head = to_node ? "" : fmt::format(", headlabel=\"{}\"", ulfm::fabric::port_label(end.port));
  return fmt::format("  switch{} -- {} [taillabel=\"{}\"{}{}];\n", port.at, other, ulfm::fabric::port_label(port.port),
                     head, view.is_dead(port) ? ", style=dashed, color=red" : "");
}

}  // namespace

std::string dot_of(const View& view) {
  const Topology& t = view.topology;
  std::string text = fmt::format("graph {} {{\n", quoted(t.name));
  text += "  graph [overlap=false, splines=true];\n  edge [fontsize=9];\n  node [fontname=\"sans-serif\"];\n";
  for (std::uint32_t s = 0; s < t.switches; ++s)
    text += fmt::format("  switch{} [label=\"{}\", shape=square, style=filled, fillcolor=\"#cfe0f3\"];\n", s,
                        switch_name(t, s));
  for (std::uint32_t n = 0; n < t.nodes(); ++n) {
    const std::string ranks = view.ranks_on(n);
    text += fmt::format("  node{} [label=\"n{}{}\", shape=box, style=\"rounded,filled\", fillcolor=\"#e6f2df\"];\n", n,
                        n, ranks.empty() ? "" : fmt::format("\\n{}", ranks));
  }
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p) {
      const LinkEnd& end = t.end({s, p});
      const bool first = end.kind == LinkEnd::Kind::switch_port && s < end.index;
      if (first || end.kind == LinkEnd::Kind::node) text += link(view, {s, p});
    }
  return fmt::format("{}}}\n", text);
}

}  // namespace topo
