// What the doctor says: a line for each finding, and what may help.
#pragma once

#include <string>

namespace doctor {

enum class State { ok, warning, failed };

struct Finding {
  State state = State::ok;
  std::string text, remedy;
};

/// Prints and counts.
class Report {
 public:
  explicit Report(bool quiet) : quiet_(quiet) {}
  /// A line about a host, or about the way between two ("h1 > h2").
  void add(const std::string& where, const std::string& topic, const Finding& finding);
  /// The last line, and the exit status.
  int conclude(std::size_t hosts) const;

 private:
  bool quiet_;  ///< what is as it should be is left out
  std::size_t checks_ = 0, warnings_ = 0, failures_ = 0;
};

}  // namespace doctor
