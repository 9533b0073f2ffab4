#include "fabric/options.hpp"

#include <charconv>

namespace ulfm::fabric {
namespace {

std::string known(std::initializer_list<Options::Row> rows) {
  std::string all;
  for (const Options::Row& row : rows)
    all += (all.empty() ? "" : ", ") + std::string(row.name) + "=" +
           (row.word != nullptr ? row.word : std::to_string(row.least) + ".." + std::to_string(row.most));
  return all;
}

}  // namespace

Result<Options> Options::parse(std::string_view text, std::initializer_list<Row> rows) {
  Options options;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::string shown(word.substr(0, 60));
    const std::string_view name = word.substr(0, word.find('='));
    const Row* row = nullptr;
    for (const Row& candidate : rows)
      if (name == candidate.name) row = &candidate;
    if (row == nullptr) return fail(Errc::invalid, "no option \"" + shown + "\"; there are: " + known(rows));
    const std::string_view digits = word.substr(std::min(word.size(), name.size() + 1));
    std::int64_t value = 1;
    if (row->word != nullptr && digits != row->word)
      return fail(Errc::invalid, "option \"" + shown + "\": needs " + row->name + "=" + row->word);
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = end.ec == std::errc{} && end.ptr == digits.data() + digits.size();
    if (row->word == nullptr && (!whole || value < row->least || value > row->most))
      return fail(Errc::invalid, "option \"" + shown + "\": needs a number from " + std::to_string(row->least) +
                                     " to " + std::to_string(row->most));
    if (!options.values_.emplace(name, value).second)
      return fail(Errc::invalid, "option \"" + shown + "\" is given twice");
  }
  return options;
}

}  // namespace ulfm::fabric
