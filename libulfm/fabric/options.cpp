#include "fabric/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include <fmt/core.h>

#include "fabric/durations.hpp"
#include "fabric/model.hpp"
#include "fabric/models.hpp"

namespace ulfm::fabric {
namespace {

std::string known(std::span<const Options::Row> rows) {
  std::string all;
  for (const Options::Row& row : rows)
    all += fmt::format("{}{}={}", all.empty() ? "" : ", ", row.name,
                       row.words != nullptr ? row.words : fmt::format("{}..{}", row.least, row.most));
  return all;
}

// The place of `word` among words with bars between them; -1 when it is none.
std::int64_t place_of(std::string_view word, std::string_view words) {
  for (std::int64_t place = 0;; ++place) {
    const std::size_t bar = words.find('|');
    if (word == words.substr(0, bar)) return place;
    if (bar == std::string_view::npos) return -1;
    words.remove_prefix(bar + 1);
  }
}

const Options::Row* row_of(std::string_view name, std::span<const Options::Row> rows) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Options::Row& row) { return name == row.name; });
  return found != rows.end() ? &*found : nullptr;
}

/// Takes the next "name=value" off the front.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(','));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

Result<std::int64_t> value_of(std::string_view word, const Options::Row& row) {
  const std::string shown(word.substr(0, 60));
  const std::string_view digits = word.substr(std::min(word.size(), std::string_view(row.name).size() + 1));
  std::int64_t value = 0;
  if (row.words != nullptr) {
    value = place_of(digits, row.words);
    if (value < 0) return fail(Errc::invalid, fmt::format("option \"{}\": needs {}={}", shown, row.name, row.words));
    return value;
  }
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string_view unit(end.ptr, static_cast<std::size_t>(digits.data() + digits.size() - end.ptr));
  const int shift = unit == "K" || unit == "k" ? 10 : unit == "M" || unit == "m" ? 20 : 0;
  const bool whole = end.ec == std::errc{} && unit.size() == (shift != 0 ? 1 : 0) && value <= INT64_MAX >> shift;
  if (whole && value > 0) value <<= shift;
  if (!whole || value < row.least || value > row.most)
    return fail(Errc::invalid, fmt::format("option \"{}\": needs a number (K and M are allowed) from {} to {}", shown,
                                           row.least, row.most));
  return value;
}

}  // namespace

Result<Options> Options::parse(std::string_view text, std::span<const Row> rows) {
  Options options;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    const std::string shown(word.substr(0, 60));
    const std::string_view name = word.substr(0, word.find('='));
    const Row* row = row_of(name, rows);
    if (row == nullptr) row = row_of(name, kDurationRows);
    if (row == nullptr)
      return fail(Errc::invalid,
                  fmt::format("no option \"{}\"; there are: {}, and durations, see ulfm-time(7)", shown, known(rows)));
    auto value = value_of(word, *row);
    if (!value) return fail(value.error());
    if (!options.values_.emplace(name, *value).second)
      return fail(Errc::invalid, fmt::format("option \"{}\" is given twice", shown));
  }
  return options;
}

std::int64_t Options::one(std::string_view text, std::string_view name, std::int64_t otherwise) {
  const Row any{"", INT64_MIN, INT64_MAX};
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || word.substr(0, equals) != name) continue;
    if (auto value = value_of(word.substr(equals), any)) return *value;
  }
  return otherwise;
}

Result<Options> read_options(const ModelKind& kind, ModelOptions options) {
  std::string presets;
  for (const Preset& preset : kind.presets) presets += (presets.empty() ? "" : "|") + std::string(preset.name);
  std::vector<Options::Row> rows(kind.options.begin(), kind.options.end());
  if (!presets.empty()) rows.push_back({kPresetOption, 0, 0, presets.c_str()});
  auto given = Options::parse(options, rows);
  if (!given) return fail(std::move(given.error()).within(kind.name));
  return given;
}

Result<void> check_links(const ModelKind& kind, const Topology& topology) {
  if (kind.own_links || !topology.has_own_links()) return {};
  std::string able;
  for (const ModelKind* other : kModels)
    if (other->own_links) able += fmt::format("{}{}", able.empty() ? "" : " or ", other->name);
  return fail(Errc::invalid, fmt::format("topology {}: {} has no latency and no rate of single links, which the file "
                                         "gives; leave them out, or take --transport {}",
                                         topology.name, kind.name, able));
}

}  // namespace ulfm::fabric
