#include "report.hpp"

#include <cstdio>

#include <fmt/core.h>

#include "../common/output.hpp"
#include "base/counted.hpp"

namespace doctor {
namespace {

using ulfm::counted;

// An error of the library may be a table.
std::string on_one_line(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n') {
      out += text[i];
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ';';
    out += ' ';
    while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
  }
  return out;
}

}  // namespace

void Report::add(const std::string& where, const std::string& topic, const Finding& finding) {
  static constexpr const char* kWords[] = {"ok", "warning", "FAILED"};
  ++checks_;
  warnings_ += finding.state == State::warning;
  failures_ += finding.state == State::failed;
  if (quiet_ && finding.state == State::ok) return;
  std::printf("%-16s %-10s %-8s %s%s%s\n", where.c_str(), topic.c_str(), kWords[static_cast<int>(finding.state)],
              on_one_line(finding.text).c_str(), finding.remedy.empty() ? "" : ": ", finding.remedy.c_str());
  std::fflush(stdout);
}

int Report::conclude(std::size_t hosts) const {
  if (failures_ == 0) {
    const std::string but = warnings_ == 0 ? "" : fmt::format(", {}", counted(warnings_, "warning"));
    std::printf("%s, %s: jobs can run here%s\n", counted(hosts, "host").c_str(), counted(checks_, "check").c_str(),
                but.c_str());
    return tools::written("ulfm_doctor", 0);
  }
  std::printf("%s, %s: %zu FAILED%s\n", counted(hosts, "host").c_str(), counted(checks_, "check").c_str(), failures_,
              warnings_ == 0 ? "" : fmt::format(", {}", counted(warnings_, "warning")).c_str());
  return tools::written("ulfm_doctor", 1);
}

}  // namespace doctor
