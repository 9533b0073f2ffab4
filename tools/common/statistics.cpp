#include "statistics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace tools {
namespace {

constexpr std::string_view kMark = "ulfm: stats ";
constexpr std::size_t kMostIdleColumns = 8;  // beyond so many, columns of nothing but 0 are left out of a text

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<std::uint64_t> number(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

void join(std::string& words, std::string_view word) { words += (words.empty() ? "" : " ") + std::string(word); }

// "sent 5 messages 40 bytes": numbers before what they count, behind a word for all of them. "cycles 100 events 50":
// behind it.
void read_group(std::string_view group, CounterLine& line) {
  const std::vector<std::string_view> words = split(group, ' ');
  if (words.empty()) return;
  const bool before = !number(words.back());
  std::string prefix, label, last;
  std::size_t of_last = 0;  // numbers behind one label: the parts of a histogram
  std::optional<std::uint64_t> pending;
  const auto finish = [&] {
    if (pending) line.counters.emplace_back((prefix.empty() ? "" : fmt::format("{} ", prefix)) + label, *pending);
    label.clear();
  };
  for (const std::string_view word : words) {
    if (const auto value = number(word)) {
      if (before) finish(), pending = value;
      else if (!label.empty()) of_last = 1, last = std::exchange(label, ""), line.counters.emplace_back(last, *value);
      else line.counters.emplace_back(fmt::format("{} {}", last, ++of_last), *value);
    } else if (before && !pending) {
      join(prefix, word);
    } else {
      join(label, word);
    }
  }
  if (before) finish();
}

// "rank 3 transport direct port 1": the rank, and what tables are told apart by.
std::pair<std::string, std::string> split_subject(const std::string& subject) {
  const std::size_t blank = subject.find(' ');
  const std::string first = subject.substr(0, blank);
  if (blank == std::string::npos) return {"", first};
  if (first == "rank") {
    const std::size_t behind = subject.find(' ', blank + 1);
    if (behind == std::string::npos) return {subject.substr(blank + 1), "counters"};
    return {subject.substr(blank + 1, behind - blank - 1), subject.substr(behind + 1)};
  }
  return {subject.substr(blank + 1), first};
}

bool is_largest(std::string_view name) {
  return name.find("peak") != std::string_view::npos || name.find("most") != std::string_view::npos;
}

// What models say beside counters: how much there is now, the largest so far, a size. Such a number has no rate.
bool is_level(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kLast{"present", "stored", "now", "of", "each"};
  const std::string_view last = name.substr(name.rfind(' ') + 1);
  return is_largest(name) || std::find(kLast.begin(), kLast.end(), last) != kLast.end();
}

bool same_columns(const Table& table, const CounterLine& line) {
  if (table.columns.size() != line.counters.size() + 1) return false;
  for (std::size_t i = 0; i < line.counters.size(); ++i)
    if (table.columns[i + 1].name != line.counters[i].first) return false;
  return true;
}

// ---- forms ----------------------------------------------------------------------------------------------------------

std::vector<std::size_t> shown_columns(const Table& table) {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool idle = table.columns[c].numeric && c != 0 && table.columns.size() > kMostIdleColumns &&
                      std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row[c] == "0"; });
    if (!idle) shown.push_back(c);
  }
  return shown;
}

// Long names stand in two lines, so that a table of many counters fits a terminal.
std::pair<std::string, std::string> folded(const std::string& name) {
  const std::size_t blank = name.rfind(' ');
  if (blank == std::string::npos) return {"", name};
  return {name.substr(0, blank), name.substr(blank + 1)};
}

std::string text_of(const Table& table) {
  std::string heads, names, rows;
  const auto columns = shown_columns(table);
  std::vector<std::size_t> widths;
  for (const std::size_t c : columns) {
    const auto [above, below] = folded(table.columns[c].name);
    std::size_t width = std::max(above.size(), below.size());
    for (const auto& row : table.rows) width = std::max(width, row[c].size());
    widths.push_back(width);
    heads += table.columns[c].numeric ? fmt::format("  {:>{}}", above, width) : fmt::format("  {:<{}}", above, width);
    names += table.columns[c].numeric ? fmt::format("  {:>{}}", below, width) : fmt::format("  {:<{}}", below, width);
  }
  const auto trimmed = [](std::string line) { return fmt::format("{}\n", line.erase(line.find_last_not_of(' ') + 1)); };
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i)
      line += table.columns[columns[i]].numeric ? fmt::format("  {:>{}}", row[columns[i]], widths[i])
                                                : fmt::format("  {:<{}}", row[columns[i]], widths[i]);
    rows += trimmed(line);
  }
  heads = trimmed(heads);
  return fmt::format("{}\n{}{}{}", table.title, heads == "\n" ? "" : heads, trimmed(names), rows);
}

std::string quoted_json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return fmt::format("{}\"", out);
}

std::string json_of(const Table& table) {
  std::string text = fmt::format("{{\"table\":{},\"rows\":[", quoted_json(table.title));
  for (const auto& row : table.rows) {
    text += &row == table.rows.data() ? "\n {" : ",\n {";
    for (std::size_t c = 0; c < row.size(); ++c)
      text += fmt::format("{}{}:{}", c == 0 ? "" : ",", quoted_json(table.columns[c].name),
                          table.columns[c].numeric && !row[c].empty() && row[c] != "-" ? row[c] : quoted_json(row[c]));
    text += "}";
  }
  return fmt::format("{}]}}", text);
}

std::string quoted_csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return fmt::format("{}\"", out);
}

std::string csv_of(const Table& table) {
  std::string text = "table";
  for (const auto& column : table.columns) text += fmt::format(",{}", quoted_csv(column.name));
  text += "\n";
  for (const auto& row : table.rows) {
    text += quoted_csv(table.title);
    for (const std::string& cell : row) text += fmt::format(",{}", quoted_csv(cell));
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<CounterLine> read_counters(std::string_view text) {
  std::vector<CounterLine> lines;
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(kMark)) continue;
    line.remove_prefix(kMark.size());
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    CounterLine read{std::string(line.substr(0, colon)), {}};
    for (const std::string_view group : split(line.substr(colon + 2), ',')) read_group(group, read);
    lines.push_back(std::move(read));
  }
  return lines;
}

std::vector<Table> tables_of(const std::vector<CounterLine>& lines) {
  std::vector<Table> tables;
  for (const CounterLine& line : lines) {
    const auto [who, title] = split_subject(line.subject);
    auto table = std::find_if(tables.begin(), tables.end(), [&, t = title](const Table& other) {
      return other.title == t && same_columns(other, line);
    });
    if (table == tables.end()) {
      const bool rank = line.subject.starts_with("rank ");
      tables.push_back({title, {{rank ? "rank" : "of", rank, false}}, {}});
      for (const auto& [name, value] : line.counters) tables.back().columns.push_back({name, true, !is_level(name)});
      table = tables.end() - 1;
    }
    std::vector<std::string> row{who};
    for (const auto& [name, value] : line.counters) row.push_back(fmt::format("{}", value));
    table->rows.push_back(std::move(row));
  }
  return tables;
}

void add_totals(std::vector<Table>& tables) {
  for (Table& table : tables) {
    if (table.rows.size() < 2 || table.columns[0].name != "rank") continue;
    std::sort(table.rows.begin(), table.rows.end(),
              [](const auto& a, const auto& b) { return number(a[0]).value_or(0) < number(b[0]).value_or(0); });
    std::vector<std::string> total{"all"};
    for (std::size_t c = 1; c < table.columns.size(); ++c) {
      const bool largest = is_largest(table.columns[c].name);
      std::uint64_t sum = 0;
      for (const auto& row : table.rows) {
        const std::uint64_t value = number(row[c]).value_or(0);
        sum = largest ? std::max(sum, value) : sum + value;
      }
      total.push_back(fmt::format("{}", sum));
    }
    table.columns[0].numeric = false;
    table.rows.push_back(std::move(total));
  }
}

std::string render(const std::vector<Table>& tables, Form form) {
  std::string text = form == Form::json ? "[" : "";
  for (const Table& table : tables) {
    if (&table != tables.data()) text += form == Form::json ? ",\n" : "\n";
    text += form == Form::json ? json_of(table) : form == Form::csv ? csv_of(table) : text_of(table);
  }
  return form == Form::json ? fmt::format("{}]\n", text) : text;
}

}  // namespace tools
