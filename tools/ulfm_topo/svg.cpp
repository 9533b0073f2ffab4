// The picture: links below, then switches with their ports, then nodes with their ranks.
#include <fmt/core.h>

#include <algorithm>

#include "fabric/topology/ports.hpp"
#include "layout.hpp"
#include "print.hpp"

namespace topo {
namespace {

constexpr double kHead = 64;  // room for the title

constexpr const char* kStyle = R"(<style>
  text { font-family: "Inter", "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif; text-anchor: middle }
  .title { font-size: 20px; font-weight: 600; fill: #1d2b3a; text-anchor: start }
  .sub { font-size: 12px; fill: #5b6b7c; text-anchor: start }
  .link { fill: none; stroke: #8296ab; stroke-width: 2.2 }
  .closing { stroke: #a994c9; stroke-width: 2 }
  .drop { stroke: #a9bd9c; stroke-width: 1.8 }
  .dead { stroke: #cf3f36; stroke-dasharray: 5 4 }
  .switch { fill: #27496d; stroke: #1b3450; stroke-width: 1.2 }
  .switch-name { font-size: 13px; font-weight: 600; fill: #ffffff }
  .port { fill: #ffffff; stroke: #27496d; stroke-width: 1.3 }
  .free { fill: #e7ebf0; stroke: #a5b1be }
  .letter { font-size: 9px; font-weight: 600; fill: #27496d }
  .letter-free { fill: #a5b1be }
  .node { fill: #edf6e8; stroke: #7da36a; stroke-width: 1.3 }
  .node-name { font-size: 11.5px; font-weight: 600; fill: #35552a }
  .ranks { font-size: 9px; fill: #5d7a50 }
</style>
)";

/// Bytes of one UTF-8 character at the front; 0: it is none that XML allows.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (byte(i) >> 6 != 2) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xf4 && byte(1) >= 0x90) || (first == 0xed && byte(1) >= 0xa0);
  const bool no_character = first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe;
  return overlong || outside || no_character ? 0 : length;
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character(text);
    if (length == 0) out += '?';
    else if (text[0] == '<') out += "&lt;";
    else if (text[0] == '&') out += "&amp;";
    else if (text[0] == '"') out += "&quot;";
    else out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(const View& view) : view_(view), t_(view.topology), l_(lay_out(t_)) {}

  std::string text() {
    head();
    for (std::uint32_t s = 0; s < t_.switches; ++s)
      for (std::uint32_t p = 0; p < t_.ports; ++p) link({s, p});
    for (std::uint32_t s = 0; s < t_.switches; ++s) draw_switch(s);
    for (std::uint32_t n = 0; n < t_.nodes(); ++n) node(n);
    return fmt::format("{}</g>\n</svg>\n", text_);
  }

 private:
  const Point& port_at(SwitchPort p) const { return l_.ports[std::size_t{p.at} * t_.ports + p.port]; }

  void head() {
    const auto& e = view_.extent;
    std::string sub = fmt::format("{}, {}, {}", counted(t_.switches, "switch", "switches"),
                                  counted(e.links, "link", "links"), counted(t_.nodes(), "node", "nodes"));
    if (e.longest != 0) sub += fmt::format("; {:.2f} switches on a way, {} at most", e.average, e.longest);
    if (t_.shape == ulfm::fabric::Shape::boards)
      sub =
          fmt::format("a host with {}; from board to board through its memory", counted(t_.nodes(), "board", "boards"));
    const double width = std::max(l_.width, 24 + 6.6 * static_cast<double>(std::max(sub.size(), 2 * t_.name.size())));
    text_ = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\">\n",
        width, l_.height + kHead);
    text_ += fmt::format("<title>{}</title>\n{}<rect width=\"100%\" height=\"100%\" fill=\"#fbfcfd\"/>\n",
                         escaped(t_.name), kStyle);
    text_ += fmt::format("<text class=\"title\" x=\"24\" y=\"34\">{}</text>\n", escaped(t_.name));
    text_ += fmt::format("<text class=\"sub\" x=\"24\" y=\"53\">{}</text>\n", escaped(sub));
    text_ += fmt::format("<g transform=\"translate({:.1f} {})\">\n", (width - l_.width) / 2, kHead);
  }

  void link(SwitchPort p) {
    const Bend bend = l_.bends[std::size_t{p.at} * t_.ports + p.port];
    if (bend == Bend::none) return;
    const LinkEnd& end = t_.end(p);
    const bool to_node = end.kind == LinkEnd::Kind::node;
    const Point from = port_at(p), to = to_node ? l_.nodes[end.index] : port_at({end.index, end.port});
    std::string kind = to_node ? "link drop" : "link";
    if (bend == Bend::over_row || bend == Bend::beside_column) kind += " closing";
    if (view_.is_dead(p)) kind += " dead";
    text_ += fmt::format("<path class=\"{}\"{} d=\"M{:.1f} {:.1f} {}\"><title>{} - {}{}</title></path>\n", kind,
                         colour(p), from.x, from.y, curve(bend, from, to), port_name(t_, p), end_name(t_, p), busy(p));
  }

  /// The channels of a link: that of the port, and the one that comes the other way.
  std::pair<double, double> use(SwitchPort p) const {
    const LinkEnd& end = t_.end(p);
    const std::size_t other = end.kind == LinkEnd::Kind::node ? std::size_t{t_.switches} * t_.ports + end.index
                                                              : std::size_t{end.index} * t_.ports + end.port;
    return {view_.use[std::size_t{p.at} * t_.ports + p.port], view_.use[other]};
  }

  std::string busy(SwitchPort p) const {
    if (view_.use.empty()) return "";
    const auto [there, back] = use(p);
    return fmt::format(": {:.1f} % busy, {:.1f} % the other way", 100 * there, 100 * back);
  }

  /// Grey, yellow, red, by the busier of the two channels.
  std::string colour(SwitchPort p) const {
    if (view_.use.empty()) return "";
    struct Colour {
      double red, green, blue;
    };
    constexpr Colour kIdle{201, 210, 219}, kHalf{240, 178, 50}, kFull{196, 32, 32};
    const auto [there, back] = use(p);
    const double most = std::clamp(std::max(there, back), 0.0, 1.0), part = most < 0.5 ? 2 * most : 2 * most - 1;
    const Colour &a = most < 0.5 ? kIdle : kHalf, &b = most < 0.5 ? kHalf : kFull;
    const auto mixed = [&](double Colour::*c) { return a.*c + (b.*c - a.*c) * part; };
    return fmt::format(" style=\"stroke: rgb({:.0f},{:.0f},{:.0f}); stroke-width: {:.1f}\"", mixed(&Colour::red),
                       mixed(&Colour::green), mixed(&Colour::blue), 2.2 + 4 * most);
  }

  static std::string cubic(Point a, Point b, Point to) {
    return fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f} ", a.x, a.y, b.x, b.y, to.x, to.y);
  }

  static std::string line(Point to) { return fmt::format("L{:.1f} {:.1f} ", to.x, to.y); }

  static std::string curve(Bend bend, Point from, Point to) {
    constexpr double kAway = 52, kOut = 46;  // of links that close a ring
    const double middle = (from.y + to.y) / 2;
    switch (bend) {
      case Bend::over_row:
        return cubic({from.x + kOut, from.y}, {from.x + kOut, from.y - kAway}, {from.x, from.y - kAway}) +
               line({to.x, to.y - kAway}) + cubic({to.x - kOut, to.y - kAway}, {to.x - kOut, to.y}, to);
      case Bend::beside_column:
        return cubic({from.x, from.y + kOut}, {from.x - kAway, from.y + kOut}, {from.x - kAway, from.y}) +
               line({to.x - kAway, to.y}) + cubic({to.x - kAway, to.y - kOut}, {to.x, to.y - kOut}, to);
      case Bend::falling: return cubic({from.x, middle}, {to.x, middle}, to);
      case Bend::hanging:  // upright before it passes between the nodes of the upper row
        return cubic({from.x, from.y + 22}, {to.x, from.y + 12}, {to.x, from.y + 36}) + line(to);
      default: return line(to);
    }
  }

  void draw_switch(std::uint32_t s) {
    const Point at = l_.switches[s];
    if (l_.round)
      text_ += fmt::format("<circle class=\"switch\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n", at.x, at.y,
                           l_.switch_width / 2);
    else
      text_ += fmt::format("<rect class=\"switch\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"9\"/>\n",
                           at.x - l_.switch_width / 2, at.y - l_.switch_height / 2, l_.switch_width, l_.switch_height);
    const std::string name = switch_name(t_, s);
    const double size = std::min(13.0, (l_.switch_width - 14) * 1.6 / static_cast<double>(name.size()));
    text_ +=
        fmt::format("<text class=\"switch-name\" x=\"{:.1f}\" y=\"{:.1f}\" style=\"font-size: {:.1f}px\">{}</text>\n",
                    at.x, at.y + 4.5, size, escaped(name));
    for (std::uint32_t p = 0; p < t_.ports; ++p) port({s, p});
  }

  void port(SwitchPort p) {
    const Point at = port_at(p);
    const bool free = t_.end(p).kind == LinkEnd::Kind::nothing;
    text_ += fmt::format("<circle class=\"port{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", free ? " free" : "", at.x,
                         at.y, kPortRadius);
    text_ += fmt::format("<text class=\"letter{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", free ? " letter-free" : "",
                         at.x, at.y + 3.2, ulfm::fabric::port_label(p.port));
  }

  void node(std::uint32_t n) {
    constexpr std::size_t kShown = 9;  // letters that fit
    const Point at = l_.nodes[n];
    const std::string ranks = view_.ranks_on(n);
    const std::string shown = ranks.size() <= kShown ? ranks : fmt::format("{}..", ranks.substr(0, kShown - 2));
    text_ += fmt::format("<g><title>node n{} at {}; {}</title>", n, port_name(t_, t_.attachment[n]),
                         ranks.empty() ? "no ranks" : fmt::format("ranks {}", ranks));
    text_ += fmt::format("<rect class=\"node\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"7\"/>",
                         at.x - kNodeWidth / 2, at.y - kNodeHeight / 2, kNodeWidth, kNodeHeight);
    text_ += fmt::format("<text class=\"node-name\" x=\"{:.1f}\" y=\"{:.1f}\">n{}</text>", at.x,
                         at.y + (ranks.empty() ? 4 : -1), n);
    if (!ranks.empty())
      text_ += fmt::format("<text class=\"ranks\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", at.x, at.y + 10, shown);
    text_ += "</g>\n";
  }

  const View& view_;
  const Topology& t_;
  const Layout l_;
  std::string text_;
};

}  // namespace

std::string svg_of(const View& view) { return Drawing(view).text(); }

}  // namespace topo
