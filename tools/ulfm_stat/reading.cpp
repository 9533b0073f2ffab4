#include "reading.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

namespace stat_tool {
namespace {

using tools::Table;

double number(const std::string& cell) { return std::strtod(cell.c_str(), nullptr); }

std::string rate(double now, double before, double seconds) {
  const double value = seconds > 0 ? std::max(now - before, 0.0) / seconds : 0;
  if (value == 0) return "0";
  return value < 10 ? fmt::format("{:.2f}", value) : fmt::format("{:.0f}", value);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

const std::vector<std::string>* row_of(const std::vector<Table>& tables, const Table& like, const std::string& key) {
  for (const Table& table : tables)
    if (table.title == like.title && table.columns.size() == like.columns.size())
      for (const auto& row : table.rows)
        if (row[0] == key) return &row;
  return nullptr;
}

/// Behind, or in place of, each counter what it rose by in a second. Other columns stay as they are.
Table with_rates(const Table& table, const std::vector<Table>& before, double seconds, bool totals) {
  Table out{table.title, {table.columns[0]}, {}};
  for (std::size_t c = 1; c < table.columns.size(); ++c) {
    const Table::Column& column = table.columns[c];
    if (totals || !column.rises) out.columns.push_back(column);
    if (column.rises) out.columns.push_back({fmt::format("{}/s", column.name), true, false});
  }
  for (const auto& row : table.rows) {
    const auto* old = row_of(before, table, row[0]);
    std::vector<std::string> cells{row[0]};
    for (std::size_t c = 1; c < row.size(); ++c) {
      if (totals || !table.columns[c].rises) cells.push_back(row[c]);
      if (table.columns[c].rises)
        cells.push_back(rate(number(row[c]), old != nullptr ? number((*old)[c]) : 0, seconds));
    }
    out.rows.push_back(std::move(cells));
  }
  return out;
}

using Link = ulfm::fabric::LinkUse;

const Link* find(const std::vector<Link>& links, const Link& like) {
  const auto found =
      std::find_if(links.begin(), links.end(), [&](const Link& l) { return l.from == like.from && l.to == like.to; });
  return found == links.end() ? nullptr : &*found;
}

/// How much of the model's time each link was busy, and how long what stood at its end had to wait: since the reading
/// before, or since the job began.
Table links_of(const Reading& now, const Reading* before, double seconds) {
  Table table{"links", {{"from", false}, {"to", false}, {"bytes", true}, {"busy %", true}, {"waiting %", true}}, {}};
  if (before != nullptr) table.columns.push_back({"bytes/s", true});
  const std::uint64_t cycles = now.cycles - (before != nullptr ? std::min(before->cycles, now.cycles) : 0);
  static const Link kNone;
  for (const Link& link : now.links) {
    const Link* const found = before != nullptr ? find(before->links, link) : nullptr;
    const Link& old = found != nullptr ? *found : kNone;
    table.rows.push_back({link.from, link.to, fmt::format("{}", link.bytes), percent(link.busy - old.busy, cycles),
                          percent(link.wait - old.wait, cycles)});
    if (before != nullptr)
      table.rows.back().push_back(rate(static_cast<double>(link.bytes), static_cast<double>(old.bytes), seconds));
  }
  return table;
}

Table cards_of(const Reading& reading) {
  Table table{"card",
              {{"of", false, false},
               {"node", true, false},
               {"process", true, false},
               {"sent", true, true},
               {"slots in use", true, false},
               {"slots", true, false}},
              {}};
  for (const ulfm::fabric::CardUse& c : reading.cards)
    table.rows.push_back({fmt::format("{}", c.card), fmt::format("{}", c.node), fmt::format("{}", c.process),
                          fmt::format("{}", c.sent), fmt::format("{}", c.used), fmt::format("{}", c.slots)});
  return table;
}

/// The cards' counters, and behind them the model's.
std::vector<Table> counted_by(const Reading& reading) {
  std::vector<Table> tables = tools::tables_of(reading.lines);
  tables.insert(tables.begin(), cards_of(reading));
  return tables;
}

void sort_and_cut(Table& table, const Shape& shape) {
  const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                   [&](const Table::Column& c) { return c.name == shape.sort; });
  if (!shape.sort.empty() && column != table.columns.end()) {
    const auto at = static_cast<std::size_t>(column - table.columns.begin());
    std::stable_sort(table.rows.begin(), table.rows.end(), [&](const auto& a, const auto& b) {
      return column->numeric ? number(a[at]) > number(b[at]) : a[at] < b[at];
    });
  }
  if (shape.top != 0 && table.rows.size() > shape.top) table.rows.resize(shape.top);
}

}  // namespace

std::string card_line(const ulfm::fabric::CardUse& c) {
  return fmt::format("card {}: node {} process {} sent {} slots in use {} of {}", c.card, c.node, c.process, c.sent,
                     c.used, c.slots);
}

Reading reading_of(const ulfm::fabric::FabricReading& read) {
  Reading reading{std::chrono::steady_clock::now(), read.time,  read.cards,
                  tools::read_counters(read.text),  read.links, 0};
  for (const auto& line : reading.lines)
    for (const auto& [name, value] : line.counters)
      if (name == "cycles" && line.subject.find(' ') == std::string::npos) reading.cycles = value;
  return reading;
}

std::vector<Table> tables_of(const Reading& now, const Reading* before, const Shape& shape) {
  const double seconds = before != nullptr ? std::chrono::duration<double>(now.at - before->at).count() : 0;
  std::vector<Table> tables = counted_by(now);
  if (before != nullptr && shape.rates) {
    const std::vector<Table> old = counted_by(*before);
    for (Table& table : tables) table = with_rates(table, old, seconds, shape.totals);
  }
  if (!now.links.empty()) tables.insert(tables.begin() + 1, links_of(now, before, seconds));
  tables.insert(tables.begin(), {"time", {{"time", false, false}}, {{now.time}}});
  for (Table& table : tables) sort_and_cut(table, shape);
  return tables;
}

bool has_column(const std::vector<Table>& tables, const std::string& name) {
  return std::any_of(tables.begin(), tables.end(), [&](const Table& table) {
    return std::any_of(table.columns.begin(), table.columns.end(), [&](const auto& c) { return c.name == name; });
  });
}

std::string column_names(const std::vector<Table>& tables) {
  std::set<std::string> names;
  for (const Table& table : tables)
    for (const auto& column : table.columns) names.insert(column.name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace stat_tool
