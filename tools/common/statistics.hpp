// Lines of counters ("ulfm: stats SUBJECT: sent 5 messages 40 bytes, full 0") as tables with labelled columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tools {

/// One line: who counts, and what.
struct CounterLine {
  std::string subject;                                          ///< "rank 0 transport direct port 1"
  std::vector<std::pair<std::string, std::uint64_t>> counters;  ///< "sent messages" and its number
};

/// The lines of a text that begin with the mark; others are left out.
std::vector<CounterLine> read_counters(std::string_view text);

/// A table: all rows have the same columns. Cells are texts; a column of numbers is `numeric`.
struct Table {
  struct Column {
    std::string name;
    bool numeric = true;
    bool rises = true;  ///< with what happens, so that its rate means something
  };
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

enum class Form { text, json, csv };

/// For people: columns aligned under their names. Columns in which all numbers are 0 are left out of tables with many.
/// JSON: an array of {"table": title, "rows": [{column: value}]}. CSV: a line of names before the lines of each table,
/// whose first column is the table's title.
std::string render(const std::vector<Table>& tables, Form form);

/// Lines whose subjects begin alike and that have the same counters, in the order of their first appearance. A subject
/// "rank 3 ..." becomes a column "rank" and a title of the rest.
std::vector<Table> tables_of(const std::vector<CounterLine>& lines);

/// Adds a row of sums, the largest of "peak" and "most" columns, under each table of several ranks.
void add_totals(std::vector<Table>& tables);

}  // namespace tools
