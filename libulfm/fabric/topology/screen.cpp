#include "fabric/topology/screen.hpp"

#include <cctype>
#include <string_view>

#include <fmt/core.h>

namespace ulfm::fabric {
namespace {

class Screen {
 public:
  Screen(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<void> run() {
    while (at_ < text_.size()) {
      if (auto ok = take_one(); !ok) return ok;
    }
    return {};
  }

 private:
  Result<void> take_one() {
    const char c = text_[at_];
    if (c == '\n') return take_line_end();
    if (c == ' ' || c == '\t' || (c == '\r' && text_.substr(at_ + 1, 1) == "\n")) return step();
    if (c == '#') return skip_comment();
    if (c == '"' || c == '\'') return skip_string(c);
    if (c == '[') return open();
    if (c == '{' || c == '}') return refuse("tables in braces are of no use in a topology; write [[switch]] tables");
    if (c == '.') return refuse("a dot outside of quotes; names of ports go in quotes, as in \"s0.B\"");
    if (c < ' ' || c > '~') return refuse("only plain ASCII may stand outside of strings and comments");
    return in_value_ ? take_value(c) : take_key(c);
  }

  Result<void> take_key(char c) {
    in_value_ = c == '=';
    if (in_value_ || std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') return step();
    return refuse(fmt::format("needs key = value, found {}", std::string(1, c)));
  }

  // Numbers alone are left: a dash inside of one would make it a date.
  Result<void> take_value(char c) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) || c == '_';
    const bool sign = (c == '+' || c == '-') && !std::isdigit(static_cast<unsigned char>(text_[at_ - 1]));
    if (c == ']' && in_array_) in_array_ = false;
    else if (!digit && !sign && !(c == ',' && in_array_))
      return refuse("needs a string in quotes, a whole number, or an array of these in [ ]");
    return step();
  }

  Result<void> open() {
    constexpr std::string_view kHeader = "[[switch]]";
    if (in_array_) return refuse("an array inside an array, or an array that was not closed with ]");
    if (in_value_ && !begins_word()) return refuse("needs a blank or = in front of an array");
    if (in_value_) {
      in_array_ = true;
      return step();
    }
    if (!line_begins_ || text_.substr(at_, kHeader.size()) != kHeader)
      return refuse("the only table of a topology is [[switch]]; settings of the whole stand above the first one");
    at_ += kHeader.size();
    line_begins_ = false;
    return {};
  }

  // toml++ goes through what is wrong up to the next of these, for its message, and takes a quote or a bracket for part
  // of it; some characters in them are undefined behaviour then.
  bool begins_word() const {
    return at_ == 0 || std::string_view(" \t\n=[,").find(text_[at_ - 1]) != std::string_view::npos;
  }

  Result<void> skip_string(char quote) {
    if (!begins_word()) return refuse("needs a blank or one of = [ , in front of a quote");
    if (text_.substr(at_, 3) == std::string(3, quote))
      return refuse("needs a string on one line, in single quotes or double ones");
    const std::size_t begin = at_;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      const bool escapes = quote == '"' && text_[at_] == '\\' && text_.substr(at_ + 1, 1) != "\n";
      if (escapes) ++at_;
      else if (text_[at_] == quote) return step();
    }
    at_ = begin;
    return refuse("a string that is not closed on its line");
  }

  Result<void> skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    return {};
  }

  Result<void> take_line_end() {
    ++at_, ++line_;
    line_start_ = at_;
    line_begins_ = true;
    in_value_ = in_value_ && in_array_;
    return {};
  }

  Result<void> step() {
    line_begins_ = line_begins_ && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r');
    ++at_;
    return {};
  }

  Result<void> refuse(const std::string& why) const {
    return fail(Errc::invalid, fmt::format("{}:{}:{}: {}", path_, line_, at_ - line_start_ + 1, why));
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
  bool line_begins_ = true;  // nothing but blanks on this line so far
  bool in_value_ = false;    // behind the equals sign
  bool in_array_ = false;
};

}  // namespace

Result<void> screen(std::string_view text, const std::string& path) { return Screen(text, path).run(); }

}  // namespace ulfm::fabric
