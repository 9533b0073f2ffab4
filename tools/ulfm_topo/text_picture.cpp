// Pictures made of letters.
#include <fmt/core.h>

#include <algorithm>

#include "fabric/topology/ports.hpp"
#include "print.hpp"

namespace topo {
namespace {

constexpr std::size_t kWidth = 110;  // columns of a terminal that most have

/// What is on each port, a line for each switch.
std::string list(const View& view) {
  const Topology& t = view.topology;
  std::size_t name = 0, end = 1;
  for (std::uint32_t s = 0; s < t.switches; ++s) {
    name = std::max(name, switch_name(t, s).size());
    for (std::uint32_t p = 0; p < t.ports; ++p) end = std::max(end, end_name(t, {s, p}).size() + view.is_dead({s, p}));
  }
  std::string text;
  for (std::uint32_t s = 0; s < t.switches; ++s) {
    std::string line = fmt::format("  {:<{}} ", switch_name(t, s), name);
    for (std::uint32_t p = 0; p < t.ports; ++p)
      line += fmt::format("  {} {:<{}}", ulfm::fabric::port_label(p),
                          end_name(t, {s, p}) + (view.is_dead({s, p}) ? "!" : ""), end);
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{}\n", line);
  }
  return text + (view.dead.empty() ? "" : "  ! dead\n");
}

// ---- mesh and torus
// ------------------------------------------------------------------------------------------------

class Grid {
 public:
  explicit Grid(const View& view) : view_(view), t_(view.topology) {
    cell_ = fmt::format("s{} n{}", t_.switches - 1, t_.nodes() - 1).size();
  }
  std::size_t width() const { return t_.columns * (cell_ + 4) + 4; }

  std::string text() const {
    std::string text;
    if (closes(0, ulfm::fabric::kNorth)) text += verticals(0, ulfm::fabric::kNorth, '~');
    for (std::uint32_t r = 0; r < t_.rows; ++r) {
      text += row(r);
      if (r + 1 < t_.rows) text += verticals(r, ulfm::fabric::kSouth, '|');
    }
    if (closes(t_.switches - 1, ulfm::fabric::kSouth)) text += verticals(t_.rows - 1, ulfm::fabric::kSouth, '~');
    text += "\n  ports: A up, B right, C down, D left, E node";
    if (t_.shape == Shape::torus) text += "; ~ goes on at the other side";
    if (!view_.dead.empty()) text += "; x dead";
    return fmt::format("{}\n", text);
  }

 private:
  bool closes(std::uint32_t s, std::uint32_t port) const {
    return t_.end({s, port}).kind == LinkEnd::Kind::switch_port;
  }
  char mark(std::uint32_t s, std::uint32_t port, char alive) const { return view_.is_dead({s, port}) ? 'x' : alive; }

  std::string row(std::uint32_t r) const {
    using namespace ulfm::fabric;
    const std::uint32_t first = r * t_.columns, last = first + t_.columns - 1;
    std::string line = closes(first, kWest) ? fmt::format("  {} ", mark(first, kWest, '~')) : "    ";
    for (std::uint32_t s = first; s <= last; ++s) {
      const std::string here = fmt::format("s{}{}n{}", s, mark(s, kGridNode, ' '), s);
      line += here;
      if (s < last) line += fmt::format(" {:->{}} ", mark(s, kEast, '-'), cell_ + 2 - here.size());
      else line.append(cell_ - here.size(), ' ');
    }
    if (closes(last, kEast)) line += fmt::format(" {}", mark(last, kEast, '~'));
    line.erase(line.find_last_not_of(' ') + 1);
    return fmt::format("{}\n", line);
  }

  std::string verticals(std::uint32_t r, std::uint32_t port, char alive) const {
    std::string line = "    ";
    for (std::uint32_t c = 0; c < t_.columns; ++c) {
      const std::string one = fmt::format(" {}", mark(r * t_.columns + c, port, alive));
      line += c + 1 < t_.columns ? fmt::format("{:<{}}", one, cell_ + 4) : one;
    }
    return fmt::format("{}\n", line);
  }

  const View& view_;
  const Topology& t_;
  std::size_t cell_ = 0;
};

// ---- chain
// ---------------------------------------------------------------------------------------------------------

/// "n0-n3": the nodes of a switch, which follow each other in short forms.
std::string nodes_on(const Topology& t, std::uint32_t s) {
  std::uint32_t first = ~0u, last = 0;
  for (std::uint32_t p = 0; p < t.ports; ++p) {
    const LinkEnd& end = t.end({s, p});
    if (end.kind == LinkEnd::Kind::node) first = std::min(first, end.index), last = std::max(last, end.index);
  }
  if (first == ~0u) return "";
  return first == last ? fmt::format("n{}", first) : fmt::format("n{}-n{}", first, last);
}

std::string chain(const View& view) {
  const Topology& t = view.topology;
  std::string upper = "  ", lower = "  ";
  for (std::uint32_t s = 0; s < t.switches; ++s) {
    upper += switch_name(t, s);
    lower += nodes_on(t, s);
    if (s + 1 == t.switches) break;
    upper += view.is_dead({s, 1}) ? " B x A " : " B---A ";
    const std::size_t next = std::max(upper.size(), lower.size() + 2);
    upper.insert(upper.size() - 5, next - upper.size(), view.is_dead({s, 1}) ? ' ' : '-');
    lower.resize(next, ' ');
  }
  return fmt::format("{}\n{}\n", upper, lower);
}

// ---- tree
// ----------------------------------------------------------------------------------------------------------

void branch(const View& view, std::uint32_t s, const std::string& indent, std::string& text) {
  const Topology& t = view.topology;
  text += switch_name(t, s);
  const std::string nodes = nodes_on(t, s);
  text += nodes.empty() ? "\n" : fmt::format("  {}\n", nodes);
  for (std::uint32_t p = s == 0 ? 0 : 1; p < t.ports && nodes.empty(); ++p) {
    const bool last = p + 1 == t.ports;
    text += fmt::format("{}{}{}{} ", indent, last ? "`-" : "|-", ulfm::fabric::port_label(p),
                        view.is_dead({s, p}) ? " x" : "--");
    branch(view, t.end({s, p}).index, indent + (last ? "      " : "|     "), text);
  }
}

}  // namespace

std::string text_picture(const View& view) {
  const Topology& t = view.topology;
  constexpr std::uint32_t kTallest = 64;  // lines
  if (t.shape == Shape::mesh || t.shape == Shape::torus) {
    const Grid grid(view);
    if (grid.width() <= kWidth && t.rows <= kTallest) return grid.text();
  }
  if (t.shape == Shape::chain) {
    std::string text = chain(view);
    if (text.size() <= 2 * kWidth) return text;
  }
  if (t.shape == Shape::tree && t.switches <= kTallest) {
    std::string text = "  ";
    branch(view, 0, "  ", text);
    return text;
  }
  return list(view);
}

}  // namespace topo
