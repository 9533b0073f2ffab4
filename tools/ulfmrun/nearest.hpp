// "Did you mean": the known name nearest to a mistyped one.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace ulfmrun {

/// Levenshtein distance, one row at a time.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, change});
    }
  }
  return row[b.size()];
}

/// The nearest of `names` within `limit` edits; "" when none is that near.
template <class Names>
std::string nearest(std::string_view name, const Names& names, std::size_t limit) {
  std::string best;
  for (const auto& candidate : names) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance > limit || (!best.empty() && distance >= edit_distance(name, best))) continue;
    best = candidate;
  }
  return best;
}

}  // namespace ulfmrun
