// Configuration rows: every setting has a name, type, unit, range, default and help, and one parser.
//
// Sources, strongest first: the command line, the environment (ULFM_<NAME>), a TOML file (ULFM_CONFIG), the default.
// An unknown ULFM_* variable or key of the file is a warning that names the nearest row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace ulfm {

enum class RowType { boolean, count, bytes, milliseconds, text, choice };

/// One setting. `name` is in upper case without the prefix; the file's key is the same in lower case.
struct ConfigRow {
  const char* name;
  RowType type;
  const char* unit;  ///< "bytes", "ms", "" ...
  const char* default_value;
  std::int64_t min, max;  ///< for numbers
  const char* choices;    ///< for RowType::choice: "a|b|c"
  const char* help;
};

/// Every row, in the order of the documentation.
std::span<const ConfigRow> config_rows();

enum class Origin { default_value, file, environment, command_line };
const char* name(Origin origin) noexcept;

/// A setting from a command line, and how the user wrote it there.
struct CommandLineSetting {
  std::string row;  ///< as in ConfigRow::name
  std::string value;
  std::string where;  ///< "--transport", for messages
};

class Config {
 public:
  /// Defaults, then the file (if ULFM_CONFIG names one), then the environment. A value that does not parse is an
  /// error that says what the row accepts.
  static Result<Config> load();

  /// The same for a program that has a command line too: `file` (empty: none), the environment block, the settings of
  /// the line.
  static Result<Config> resolve(const std::string& file, const char* const* environment,
                                std::span<const CommandLineSetting> line);

  /// Sets a row as the command line does.
  Result<void> set(std::string_view row, std::string_view value, Origin origin, const std::string& where);

  std::int64_t number(std::string_view row) const;
  bool flag(std::string_view row) const { return number(row) != 0; }
  const std::string& text(std::string_view row) const;
  Origin origin(std::string_view row) const;
  const std::string& where(std::string_view row) const;

  /// Sentences about names that nobody knows.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Reads the settings of a TOML text; `path` is for messages.
  Result<void> read_file_text(std::string_view text, const std::string& path);
  /// Reads the ULFM_* variables of an environment block ("NAME=value" ... nullptr).
  Result<void> read_environment(const char* const* environment);

 private:
  Config();
  struct Value {
    std::string text;
    std::int64_t number = 0;
    Origin origin = Origin::default_value;
    std::string where;
  };
  std::size_t index(std::string_view row) const;

  std::vector<Value> values_;
  std::vector<std::string> warnings_;
};

/// Parses one value for a row: numbers take K, M, G for bytes, ms and s for times.
Result<std::int64_t> parse_value(const ConfigRow& row, std::string_view value);

/// The nearest of `names` to `word`, or "" when none is near: within an edit distance of 3, and of one more than a
/// third of the word's length.
std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace ulfm
