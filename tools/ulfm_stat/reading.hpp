// Two readings of a job's interconnect as tables: totals, what came in a second, and how busy links are.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "../common/statistics.hpp"
#include "fabric/engine/observer.hpp"

namespace stat_tool {

struct Reading {
  std::chrono::steady_clock::time_point at;
  std::string time;  ///< whose it is
  std::vector<ulfm::fabric::CardUse> cards;
  std::vector<tools::CounterLine> lines;  ///< of the model
  std::vector<ulfm::fabric::LinkUse> links;
  std::uint64_t cycles = 0;  ///< of the model; 0: it counts none
};

/// "card 0: node 0 process 4711 sent 5 slots in use 1 of 64", which the option --lines prints.
std::string card_line(const ulfm::fabric::CardUse& card);

Reading reading_of(const ulfm::fabric::FabricReading& read);

struct Shape {
  bool totals = true;   ///< since the job began
  bool rates = false;   ///< in a second, between two readings
  std::string sort;     ///< by this column, largest first; empty: as they come
  std::size_t top = 0;  ///< rows of a table; 0: all
};

/// `before` is nullptr for the first reading, which has no rates.
std::vector<tools::Table> tables_of(const Reading& now, const Reading* before, const Shape& shape);

/// Some table has that column.
bool has_column(const std::vector<tools::Table>& tables, const std::string& name);
std::string column_names(const std::vector<tools::Table>& tables);

}  // namespace stat_tool
