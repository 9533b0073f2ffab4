// Topologies from TOML text; ulfm-topology(5) describes the format.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/config.hpp"
#include "fabric/topology/screen.hpp"
#include "fabric/topology/shapes.hpp"

// As in config.cpp: a program in which toml++ is compiled in both ways calls the wrong functions of it.
#define TOML_EXCEPTIONS 0
#include <fmt/core.h>
#include <toml++/toml.h>

namespace ulfm::fabric {
namespace {

using Where = toml::source_position;

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text.substr(0, 80)); }

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string at(const std::string& path, Where where) { return fmt::format("{}:{}:{}", path, where.line, where.column); }

Result<toml::table> parse(std::string_view text, const std::string& path) {
  toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (parsed) return std::move(parsed).table();
  return fail(Errc::invalid,
              fmt::format("{}: {}", at(path, parsed.error().source().begin), parsed.error().description()));
}

class Reader {
 public:
  Reader(const toml::table& table, const std::string& path) : table_(table), path_(path) {}

  Result<Topology> read() {
    using Step = Result<void> (Reader::*)();
    for (const Step step : {&Reader::check_keys, &Reader::read_switches, &Reader::read_links, &Reader::read_nodes,
                            &Reader::check_connected, &Reader::read_latency, &Reader::read_rate,
                            &Reader::read_placement, &Reader::read_routes})
      if (auto ok = (this->*step)(); !ok) return fail(std::move(ok.error()));
    return std::move(topology_);
  }

 private:
  tl::unexpected<Error> refuse(Where where, const std::string& why) const {
    return fail(Errc::invalid, fmt::format("{}: {}", at(path_, where), why));
  }
  Where where(const char* key) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? Where{1, 1} : node->source().begin;
  }

  // ---- keys
  // --------------------------------------------------------------------------------------------------------

  Result<void> check_keys() {
    static const std::array<std::string, 11> known{"name",    "ports", "switches",          "switch",
                                                   "links",   "nodes", "placement",         "routes",
                                                   "latency", "rate",  "processes_per_node"};
    for (const auto& [key, node] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      const std::string near = nearest(key.str().substr(0, 80), known);
      return refuse(key.source().begin, fmt::format("no key of a topology is called {}{}", quoted(key.str()),
                                                    near.empty() ? "; ulfm-topology(5) lists them"
                                                                 : fmt::format("; did you mean {}?", near)));
    }
    topology_.name = path_;
    if (const toml::node* name = table_.get("name")) {
      const auto* text = name->as_string();
      const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
      if (text == nullptr || text->get().empty() || text->get().size() > 100 ||
          std::any_of(text->get().begin(), text->get().end(), is_control))
        return refuse(name->source().begin, "name needs a string of 1 to 100 bytes that can be printed");
      topology_.name = text->get();
    }
    return {};
  }

  /// A whole number, or `otherwise` when the key is not there.
  Result<std::uint32_t> number(const char* key, std::uint32_t min, std::uint32_t max, std::uint32_t otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const auto* value = node->as_integer();
    if (value == nullptr || value->get() < min || value->get() > max)
      return refuse(node->source().begin, fmt::format("{} needs a whole number from {} to {}", key, min, max));
    return static_cast<std::uint32_t>(value->get());
  }

  /// Calls `take(text, where)` for each string of an array; the key need not be there.
  template <typename Take>
  Result<void> strings(const char* key, const char* example, Take take) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    if (!node->is_array())
      return refuse(node->source().begin, fmt::format("{} needs an array of strings such as {}", key, example));
    for (const toml::node& one : *node->as_array()) {
      const auto* text = one.as_string();
      if (text == nullptr) return refuse(one.source().begin, fmt::format("{} needs strings such as {}", key, example));
      if (auto ok = take(text->get(), one.source().begin); !ok) return ok;
    }
    return {};
  }

  // ---- switches
  // ----------------------------------------------------------------------------------------------------

  Result<void> read_switches() {
    const auto ports = number("ports", 2, kMostFilePorts, kXSwitchPorts);
    if (!ports)
      return fail(Errc::invalid, fmt::format("{}; an X-Switch has 5 ports, a TH-Switch 8", ports.error().what));
    const toml::node* list = table_.get("switch");
    if (list != nullptr && table_.contains("switches"))
      return refuse(where("switches"), "both a number of switches and [[switch]] tables; leave one of them out");
    if (list != nullptr && !list->is_array_of_tables())
      return refuse(list->source().begin, "switch needs tables, each with a header [[switch]]");
    const auto count = number("switches", 1, kMaxSwitches, 0);
    if (!count) return fail(count.error());
    const std::size_t switches = list != nullptr ? list->as_array()->size() : *count;
    if (switches == 0)
      return refuse({1, 1}, "a topology needs switches: switches = 4, or a [[switch]] with a name for each");
    if (switches > kMaxSwitches)
      return refuse(list->source().begin,
                    fmt::format("{} switches; a topology has at most {}", switches, kMaxSwitches));
    Topology bare =
        bare_topology(std::move(topology_.name), Shape::other, *ports, static_cast<std::uint32_t>(switches));
    topology_ = std::move(bare);
    taken_at_.resize(topology_.ends.size(), 0);
    return list != nullptr ? read_names(*list->as_array()) : Result<void>{};
  }

  Result<void> read_names(const toml::array& list) {
    std::vector<std::pair<std::string, Where>> sorted;
    for (const toml::node& one : list) {
      const toml::table& table = *one.as_table();
      for (const auto& [key, node] : table)
        if (key.str() != "name")
          return refuse(key.source().begin, fmt::format("a [[switch]] has a name and nothing else, found {}; what is "
                                                        "said of the whole stands above the first [[switch]]",
                                                        quoted(key.str())));
      const auto* name = table.get("name") == nullptr ? nullptr : table.get("name")->as_string();
      if (name == nullptr) return refuse(one.source().begin, "a [[switch]] needs name = \"...\"");
      const std::string& text = name->get();
      const bool plain =
          std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
      if (!plain || text.empty() || text.size() > 32)
        return refuse(name->source().begin,
                      fmt::format("switch name {}: needs 1 to 32 letters, digits and underscores", quoted(text)));
      topology_.switch_names.push_back(text);
      sorted.emplace_back(text, name->source().begin);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end(),
                                          [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice == sorted.end()) return {};
    return refuse((twice + 1)->second,
                  fmt::format("a switch is called {} already, in line {}; each needs a name of its own",
                              quoted(twice->first), twice->second.line));
  }

  // ---- links and nodes
  // ---------------------------------------------------------------------------------------------

  std::string free_ports(std::uint32_t at) const {
    std::string letters;
    for (std::uint32_t p = 0; p < topology_.ports; ++p)
      if (topology_.end({at, p}).kind == LinkEnd::Kind::nothing)
        letters += (letters.empty() ? "" : ", ") + std::string(1, port_letter(p));
    return letters.empty() ? fmt::format("none of {} is free", switch_name(topology_, at))
                           : fmt::format("free at {}: {}", switch_name(topology_, at), letters);
  }

  /// The port, marked as taken by this line.
  Result<SwitchPort> take_port(std::string_view text, Where where) {
    auto port = find_port(topology_, trim(text));
    if (!port) return refuse(where, port.error().what);
    std::uint32_t& line = taken_at_[std::size_t{port->at} * topology_.ports + port->port];
    if (line != 0)
      return refuse(where, fmt::format("port {} is in use by line {} already, and has one end; {}",
                                       port_name(topology_, *port), line, free_ports(port->at)));
    line = where.line;
    return port;
  }

  Result<void> read_links() {
    return strings("links", "\"s0.B - s1.A\"", [this](std::string_view text, Where where) -> Result<void> {
      const std::size_t dash = text.find('-');
      if (dash == std::string_view::npos)
        return refuse(where, fmt::format("link {}: needs two ports with a dash between them, such as \"s0.B - s1.A\"",
                                         quoted(text)));
      const auto a = find_port(topology_, trim(text.substr(0, dash)));
      const auto b = find_port(topology_, trim(text.substr(dash + 1)));
      if (a && b && a->at == b->at)
        return refuse(where,
                      fmt::format("link {} leads back to the switch it comes from; needs two switches", quoted(text)));
      const auto from = take_port(text.substr(0, dash), where);
      if (!from) return fail(from.error());
      const auto to = take_port(text.substr(dash + 1), where);
      if (!to) return fail(to.error());
      join(topology_, *from, *to);
      return {};
    });
  }

  Result<void> read_nodes() {
    auto read = strings("nodes", "\"s0.C\"", [this](std::string_view text, Where where) -> Result<void> {
      const auto port = take_port(text, where);
      if (!port) return fail(port.error());
      attach_node(topology_, *port);
      return {};
    });
    if (!read) return read;
    if (topology_.nodes() == 0)
      return refuse(where("nodes"), "a topology needs nodes: nodes = [\"s0.C\", ...], the ports they hang on");
    return {};
  }

  Result<void> check_connected() {
    std::vector<std::uint32_t> reached{0};
    std::vector<bool> seen(topology_.switches, false);
    seen[0] = true;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (std::uint32_t p = 0; p < topology_.ports; ++p) {
        const LinkEnd& end = topology_.end({reached[i], p});
        if (end.kind != LinkEnd::Kind::switch_port || seen[end.index]) continue;
        seen[end.index] = true;
        reached.push_back(end.index);
      }
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing == seen.end()) return {};
    const auto s = static_cast<std::uint32_t>(missing - seen.begin());
    return refuse(where("links"),
                  fmt::format("no way leads from switch {} to {}; all switches must be one network: add a link ({})",
                              switch_name(topology_, 0), switch_name(topology_, s), free_ports(s)));
  }

  Result<void> read_latency() { return read_cycles("latency", kMostLatency, topology_.latency); }
  Result<void> read_rate() { return read_cycles("rate", kMostRate, topology_.rate); }

  /// Cycles of single links, each named by a port at one of its ends.
  Result<void> read_cycles(const std::string& key, std::uint32_t most, std::vector<std::uint32_t>& all) {
    return strings(key.c_str(), "\"s0.B: 4\"", [&](std::string_view text, Where where) -> Result<void> {
      const std::size_t colon = text.find(':');
      const std::string_view digits = trim(text.substr(std::min(text.size(), colon) + (colon < text.size() ? 1 : 0)));
      std::uint32_t cycles = 0;
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), cycles);
      if (colon == std::string_view::npos || end.ec != std::errc{} || end.ptr != digits.data() + digits.size() ||
          cycles < 1 || cycles > most)
        return refuse(where, fmt::format("{} {}: needs a port with a link and 1 to {} cycles, such as \"s0.B: 4\"", key,
                                         quoted(text), most));
      const auto port = find_port(topology_, trim(text.substr(0, colon)));
      if (!port) return refuse(where, port.error().what);
      const LinkEnd& other = topology_.end(*port);
      if (other.kind == LinkEnd::Kind::nothing)
        return refuse(where,
                      fmt::format("{} {}: no link is at port {}", key, quoted(text), port_name(topology_, *port)));
      all.resize(topology_.ends.size(), 0);
      std::uint32_t& here = all[std::size_t{port->at} * topology_.ports + port->port];
      if (here != 0) return refuse(where, fmt::format("{} {}: this link has one already", key, quoted(text)));
      here = cycles;
      if (other.kind == LinkEnd::Kind::switch_port)
        all[std::size_t{other.index} * topology_.ports + other.port] = cycles;
      return {};
    });
  }

  // ---- processes
  // ---------------------------------------------------------------------------------------------------

  Result<void> read_placement() {
    const auto each = number("processes_per_node", 1, 65536, 0);
    if (!each) return fail(each.error());
    topology_.processes_per_node = *each;
    const toml::node* list = table_.get("placement");
    if (list == nullptr) return {};
    if (*each != 0) return refuse(list->source().begin, "both placement and processes_per_node; leave one of them out");
    const std::string needs =
        fmt::format("placement needs the node of each process, as numbers from 0 to {}", topology_.nodes() - 1);
    if (!list->is_array() || list->as_array()->empty())
      return refuse(list->source().begin, fmt::format("{}, such as [0, 0, 1]", needs));
    for (const toml::node& one : *list->as_array()) {
      const auto* node = one.as_integer();
      if (node == nullptr || node->get() < 0 || node->get() >= topology_.nodes())
        return refuse(one.source().begin, needs);
      topology_.placement.push_back(static_cast<std::uint32_t>(node->get()));
    }
    return {};
  }

  // ---- routes
  // ------------------------------------------------------------------------------------------------------

  Result<std::uint32_t> node(std::string_view text, Where where) const {
    std::uint32_t number = 0;
    const std::string_view digits = text.substr(text.empty() ? 0 : 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (text.empty() || text[0] != 'n' || error != std::errc{} || end != digits.data() + digits.size() ||
        number >= topology_.nodes())
      return refuse(where, fmt::format("{} is no node; there are n0 to n{}, in the order of nodes = [...]",
                                       quoted(text), topology_.nodes() - 1));
    return number;
  }

  /// Walks the letters from the source's switch; they must end at the destination.
  Result<Route> walk(std::uint32_t from, std::uint32_t to, std::string_view letters, Where where) const {
    Route way;
    LinkEnd now{LinkEnd::Kind::switch_port, topology_.attachment[from].at, 0};
    for (const char letter : letters) {
      if (letter == ' ' || letter == '\t') continue;
      if (now.kind == LinkEnd::Kind::node)
        return refuse(where, fmt::format("the route goes on behind node n{}; leave out the letters from {} on",
                                         now.index, std::string(1, letter)));
      if (letter < 'A' || letter >= port_letter(topology_.ports))
        return refuse(where, fmt::format("the route has a port {}; a switch of {} ports has A to {}",
                                         quoted({&letter, 1}), topology_.ports, port_letter(topology_.ports - 1)));
      const SwitchPort out{now.index, static_cast<std::uint32_t>(letter - 'A')};
      if (topology_.end(out).kind == LinkEnd::Kind::nothing)
        return refuse(where, fmt::format("the route leaves by port {}, where nothing is", port_name(topology_, out)));
      way.push_back(static_cast<std::uint8_t>(out.port));
      if (way.size() > std::size_t{topology_.switches} * topology_.ports)
        return refuse(where, "the route goes round in circles");
      now = topology_.end(out);
    }
    if (now.kind != LinkEnd::Kind::node || now.index != to)
      return refuse(where, fmt::format("the route ends at {}; it needs to end at node n{}",
                                       now.kind == LinkEnd::Kind::node
                                           ? fmt::format("node n{}", now.index)
                                           : fmt::format("switch {}", switch_name(topology_, now.index)),
                                       to));
    return way;
  }

  Result<void> read_route(std::string_view text, Where where) {
    const std::size_t arrow = text.find("->"), colon = text.find(':');
    if (arrow == std::string_view::npos || colon == std::string_view::npos || colon < arrow)
      return refuse(where,
                    fmt::format("route {}: needs two nodes and the output ports on the way, such as \"n0 -> n2: B C\"",
                                quoted(text)));
    const auto from = node(trim(text.substr(0, arrow)), where);
    if (!from) return fail(from.error());
    const auto to = node(trim(text.substr(arrow + 2, colon - arrow - 2)), where);
    if (!to) return fail(to.error());
    if (*from == *to) return refuse(where, "a route needs two different nodes");
    auto way = walk(*from, *to, text.substr(colon + 1), where);
    if (!way) return fail(std::move(way.error()));
    topology_.fixed.push_back({*from, *to, std::move(*way)});
    fixed_at_.push_back(where);
    return {};
  }

  Result<void> read_routes() {
    auto read = strings("routes", "\"n0 -> n2: B C\"",
                        [this](std::string_view text, Where where) { return read_route(text, where); });
    if (!read || topology_.fixed.empty()) return read;
    if (auto ok = check_routes_once(); !ok) return ok;
    const auto routes = compute_routes(topology_);
    if (!routes) return refuse(where("routes"), routes.error().what);
    return {};
  }

  Result<void> check_routes_once() const {
    std::vector<std::size_t> order(topology_.fixed.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto pair = [this](std::size_t i) { return std::pair(topology_.fixed[i].from, topology_.fixed[i].to); };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return pair(a) < pair(b); });
    const auto twice = std::adjacent_find(order.begin(), order.end(),
                                          [&](std::size_t a, std::size_t b) { return pair(a) == pair(b); });
    if (twice == order.end()) return {};
    return refuse(fixed_at_[*(twice + 1)],
                  fmt::format("line {} has a route between these nodes already", fixed_at_[*twice].line));
  }

  const toml::table& table_;
  const std::string& path_;
  Topology topology_;
  std::vector<std::uint32_t> taken_at_;  // line, by switch and port
  std::vector<Where> fixed_at_;
};

}  // namespace

Result<Topology> read_topology_text(std::string_view text, const std::string& path) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  if (auto ok = screen(text, path); !ok) return fail(std::move(ok.error()));
  const auto table = parse(text, path);
  if (!table) return fail(table.error());
  return Reader(*table, path).read();
}

}  // namespace ulfm::fabric
