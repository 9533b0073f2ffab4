#include "fabric/topology/screen.hpp"

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
    if (c == ' ' || c == '\t' || c == '\r') return step();
    if (c == '#') return skip_comment();
    if (c == '"' || c == '\'') return skip_string(c);
    if (c == '[') return open();
    if (c == ']') in_array_ = false;
    if (c == '{' || c == '}')
      return refuse("tables in braces are of no use in a topology; write [[switch]] tables");
    if (c == '.') return refuse("a dot outside of quotes; names of ports go in quotes, as in \"s0.B\"");
    if (c < ' ' || c > '~') return refuse("only plain ASCII may stand outside of strings and comments");
    return step();
  }

  Result<void> open() {
    constexpr std::string_view kHeader = "[[switch]]";
    if (in_array_) return refuse("an array inside an array, or an array that was not closed with ]");
    if (!line_begins_) {
      in_array_ = true;
      return step();
    }
    if (text_.substr(at_, kHeader.size()) != kHeader)
      return refuse(
          "the only table of a topology is [[switch]]; settings of the whole stand above the first one");
    at_ += kHeader.size();
    line_begins_ = false;
    return {};
  }

  Result<void> skip_string(char quote) {
    if (text_.substr(at_, 3) == std::string(3, quote))
      return refuse("needs a string on one line, in single quotes or double ones");
    const std::size_t begin = at_;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      const bool escapes = quote == '"' && text_[at_] == '\\' && text_.substr(at_ + 1, 1) != "\n";
      if (escapes)
        ++at_;
      else if (text_[at_] == quote)
        return step();
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
    return {};
  }

  Result<void> step() {
    line_begins_ = line_begins_ && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r');
    ++at_;
    return {};
  }

  Result<void> refuse(const std::string& why) const {
    return fail(Errc::invalid, path_ + ":" + std::to_string(line_) + ":" +
                                   std::to_string(at_ - line_start_ + 1) + ": " + why);
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
  bool line_begins_ = true;  // nothing but blanks on this line so far
  bool in_array_ = false;
};

}  // namespace

Result<void> screen(std::string_view text, const std::string& path) { return Screen(text, path).run(); }

}  // namespace ulfm::fabric
