// The rows for man pages; docs/man/update puts them there and a test compares.
#include "print.hpp"

#include <fmt/core.h>

namespace info {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return fmt::format("{}.", text);
}

std::string of(const ulfm::ConfigRow& row) {
  const std::string standard = row.default_value[0] == '\0' ? "none" : row.default_value;
  const std::string unit = row.unit[0] == '\0' ? "" : fmt::format(", in {}", row.unit);
  return fmt::format(".TP\n.B {}\n{}\n{}\n", escaped(fmt::format("ULFM_{}", row.name)), escaped(sentence(row.help)),
                     escaped(sentence(fmt::format("{}{}; default {}", range_text(row), unit, standard))));
}

}  // namespace

std::string man_rows(const std::vector<const ulfm::ConfigRow*>& rows) {
  std::string text;
  for (const auto* row : rows) text += of(*row);
  return text;
}

}  // namespace info
