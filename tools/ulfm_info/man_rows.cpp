// The rows for man pages; docs/man/update puts them there and a test compares.
#include "print.hpp"

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
  return text + ".";
}

std::string of(const ulfm::ConfigRow& row) {
  const std::string standard = row.default_value[0] == '\0' ? "none" : row.default_value;
  const std::string unit = row.unit[0] == '\0' ? "" : std::string(", in ") + row.unit;
  return ".TP\n.B " + escaped(std::string("ULFM_") + row.name) + "\n" + escaped(sentence(row.help)) + "\n" +
         escaped(sentence(range_text(row) + unit + "; default " + standard)) + "\n";
}

}  // namespace

std::string man_rows(const std::vector<const ulfm::ConfigRow*>& rows) {
  std::string text;
  for (const auto* row : rows) text += of(*row);
  return text;
}

}  // namespace info
