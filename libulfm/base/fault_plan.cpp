#include "base/fault_plan.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include <fmt/core.h>

#include "base/config.hpp"

namespace ulfm {
namespace {

constexpr std::string_view kBlanks = " \t";

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// A cursor over the expression. The first error stays; its column is of the whole text.
class FaultParser {
 public:
  explicit FaultParser(std::string_view text) : text_(text) {}

  Result<FaultPlan> run() {
    while (good_ && !at_end()) {
      take_part();
      skip_blanks();
      if (good_ && !at_end() && !take(',') && !take(';')) refuse("\",\", \";\" or the end", "drop=1e-3,seed=42");
    }
    if (!good_) return fail(Errc::invalid, std::move(error_));
    return std::move(plan_);
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  void skip_blanks() {
    while (!at_end() && kBlanks.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view take_word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (!at_end() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string found() const {
    if (at_end()) return "the end";
    return fmt::format("\"{}\"", text_.substr(at_, std::min<std::size_t>(text_.find_first_of(",;", at_) - at_, 24)));
  }
  void refuse(const std::string& needed, const std::string& example) {
    if (!good_) return;
    good_ = false;
    error_ = fmt::format("column {}: needs {}, found {}; for example {}", at_ + 1, needed, found(), example);
  }
  void refuse_at(std::size_t at, const std::string& needed, const std::string& example) {
    at_ = at;
    refuse(needed, example);
  }

  void take_part() {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_end() || text_[at_] == ',' || text_[at_] == ';') return;  // nothing between two separators
    const std::string_view word = take_word();
    const bool may_come_again = word == "link" || word == "switch" || word == "node";
    if (!may_come_again && !given_.emplace(word).second)
      return refuse_at(begin, fmt::format("{} only once", word),
                       std::string(word) + (word == "seed" ? "=42" : "=1e-3"));
    if (word == "link") take_link();
    else if (word == "switch") take_death(FaultEvent::Kind::switch_dead, "switch 4 dead at 10s");
    else if (word == "node") take_death(FaultEvent::Kind::node_dead, "node 3 dead at 4s");
    else if (word == "seed") take_seed();
    else if (double* rate = rate_called(word)) take_rate(word, *rate);
    else refuse_unknown(begin, word);
  }

  double* rate_called(std::string_view word) {
    if (word == "drop") return &plan_.drop;
    if (word == "corrupt") return &plan_.corrupt;
    if (word == "duplicate") return &plan_.duplicate;
    if (word == "reorder") return &plan_.reorder;
    return word == "delay" ? &plan_.delay : nullptr;
  }

  void refuse_unknown(std::size_t begin, std::string_view word) {
    static const std::array<std::string, 9> known{"drop", "corrupt", "duplicate", "reorder", "delay",
                                                  "seed", "link",    "switch",    "node"};
    const std::string near = nearest(word.substr(0, 20), known);
    refuse_at(begin, "drop, corrupt, duplicate, reorder, delay, seed, link, switch or node",
              (near.empty() ? "drop" : near) + (near == "link"                       ? " 2-3 down at 5s"
                                                : near == "switch" || near == "node" ? " 4 dead at 10s"
                                                : near == "seed"                     ? "=42"
                                                                                     : "=1e-3"));
  }

  bool take_equals(std::string_view name, const std::string& example) {
    skip_blanks();
    if (take('=')) return true;
    refuse(fmt::format("\"=\" behind {}", name), example);
    return false;
  }

  void take_rate(std::string_view name, double& rate) {
    const std::string example = std::string(name) + (name == "delay" ? "=1e-3:200us" : "=1e-3");
    if (!take_equals(name, example)) return;
    skip_blanks();
    const std::size_t begin = at_;
    if (!take_number(rate) || !(rate >= 0 && rate <= 1)) return refuse_at(begin, "a probability from 0 to 1", example);
    if (name == "delay" && take(':')) take_time(plan_.delay_by, "a time", example);
  }

  bool take_number(double& value) {
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{} || !std::isfinite(value)) return false;
    at_ = static_cast<std::size_t>(end - text_.data());
    return true;
  }

  void take_seed() {
    if (!take_equals("seed", "seed=42")) return;
    skip_blanks();
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), plan_.seed);
    if (error != std::errc{}) return refuse("a whole number below 2^64", "seed=42");
    at_ = static_cast<std::size_t>(end - text_.data());
  }

  bool take_index(std::uint32_t& index, const std::string& what, const std::string& example) {
    skip_blanks();
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), index);
    if (error != std::errc{}) {
      refuse(fmt::format("the number of {}", what), example);
      return false;
    }
    at_ = static_cast<std::size_t>(end - text_.data());
    return true;
  }

  /// A word that has to stand here.
  bool take_fixed(std::string_view word, const std::string& example) {
    skip_blanks();
    const std::size_t begin = at_;
    if (take_word() == word) return true;
    refuse_at(begin, fmt::format("\"{}\"", word), example);
    return false;
  }

  void take_time(std::chrono::nanoseconds& time, const std::string& what, const std::string& example) {
    constexpr double kLongest = 1e6;  // seconds
    skip_blanks();
    const std::size_t begin = at_;
    double value = 0;
    if (!take_number(value)) return refuse_at(begin, fmt::format("{} with ns, us, ms or s", what), example);
    const std::size_t unit_at = at_;
    const std::string_view unit = take_word();
    const double scale = unit == "ns" ? 1e-9 : unit == "us" ? 1e-6 : unit == "ms" ? 1e-3 : unit == "s" ? 1.0 : 0.0;
    if (scale == 0.0) return refuse_at(unit_at, "ns, us, ms or s behind the number", example);
    if (!(value >= 0 && value * scale <= kLongest))
      return refuse_at(begin, fmt::format("{} from 0 to 1000000s", what), example);
    time = std::chrono::nanoseconds(static_cast<std::int64_t>(std::llround(value * scale * 1e9)));
  }

  void take_link() {
    const std::string example = "link 2-3 down at 5s for 2s";
    FaultEvent event;
    if (!take_index(event.from, "a switch", example)) return;
    skip_blanks();
    if (!take('-')) return refuse("\"-\" between two switches", example);
    const std::size_t second = text_.find_first_not_of(kBlanks, at_);
    if (!take_index(event.to, "the second switch", example)) return;
    if (event.from == event.to) return refuse_at(second, "another switch than the first", example);
    if (!take_fixed("down", example) || !take_fixed("at", example)) return;
    take_time(event.at, "a moment", example);
    skip_blanks();
    if (good_ && text_.substr(at_, 3) == "for") {
      at_ += 3;
      const std::size_t begin = at_;
      take_time(event.lasts, "a time", example);
      if (good_ && event.lasts.count() == 0) return refuse_at(begin, "a time above 0", example);
    }
    if (good_) plan_.events.push_back(event);
  }

  void take_death(FaultEvent::Kind kind, const std::string& example) {
    FaultEvent event;
    event.kind = kind;
    if (!take_index(event.from, kind == FaultEvent::Kind::node_dead ? "a node" : "a switch", example)) return;
    if (!take_fixed("dead", example) || !take_fixed("at", example)) return;
    take_time(event.at, "a moment", example);
    if (good_) plan_.events.push_back(event);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  FaultPlan plan_;
  std::set<std::string, std::less<>> given_;  ///< rates, and the seed
  bool good_ = true;
  std::string error_;
};

}  // namespace

Result<FaultPlan> parse_fault_plan(std::string_view text) {
  auto plan = FaultParser(text).run();
  if (!plan) return fail(std::move(plan.error()).within(fmt::format("faults \"{}\"", text.substr(0, 80))));
  return plan;
}

}  // namespace ulfm
