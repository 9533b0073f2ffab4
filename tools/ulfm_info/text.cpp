// The form for people.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "print.hpp"

namespace info {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* form, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string version_text(const Facts& facts) {
  return format("ulfm_info (ULFM, user-level fast message) %s\n", facts.version.c_str()) +
         format("  built with   %s%s\n", facts.compiler.c_str(), facts.optimised ? "" : ", without optimisation");
}

std::string capabilities(const ulfm::TransportDescriptor& t) {
  std::vector<std::string> words;
  for (const auto& [has, word] : {std::pair{t.reliable, "reliable"},
                                  {t.ordered, "ordered"},
                                  {t.multicast, "multicast"},
                                  {t.multi_host, "between hosts"}})
    if (has) words.emplace_back(word);
  return joined(words, ", ");
}

std::string transport_text(const TransportFacts& facts) {
  const auto& t = *facts.descriptor;
  std::string text = format("  %-12s %s\n", t.name, t.summary);
  text += format("    capable    %s\n", capabilities(t).c_str());
  text += format("    frames     up to %zu bytes; longer messages are divided\n", t.max_frame);
  text += format("    cost       about %g us and %g MB/s; rough, for choosing among transports\n", t.latency_us,
                 t.bandwidth_MBps);
  if (!facts.options.empty()) text += "    options    " + joined(facts.options, ", ") + "\n";
  text += "    settings   " + joined(facts.settings(), " ") + "\n";
  text += "    usable     " + (facts.unavailable.empty() ? "yes" : "no: " + facts.unavailable) + "\n";
  return text;
}

std::string transports_text(const Facts& facts) {
  std::string text = "Transports\n";
  for (const auto& transport : facts.transports) text += transport_text(transport);
  if (facts.problem.empty()) text += "  ULFM_TRANSPORT=" + facts.asked + " takes " + facts.selected + "\n";
  else text += "  ULFM_TRANSPORT=" + facts.asked + " takes none\n";
  return text;
}

std::string shown_value(const Setting& setting) {
  if (!setting.value.empty()) return setting.value;
  return setting.is_number() ? "(automatic)" : "(none)";
}

std::string help_text(const ulfm::ConfigRow& row) {
  const std::string standard = row.default_value[0] == '\0' ? "none" : row.default_value;
  return format("      %s\n      %s; default %s\n", row.help, range_text(row).c_str(), standard.c_str());
}

std::string config_text(const Facts& facts, const Sections& sections) {
  std::string text = sections.effective ? "Settings that differ from the default\n" : "Settings\n";
  std::size_t width = 12;
  for (const auto& setting : facts.settings) width = std::max(width, shown_value(setting).size());
  bool any = false;
  for (const auto& setting : facts.settings) {
    if (sections.effective && !setting.changed()) continue;
    any = true;
    text += format("  %-16s %-*.200s %-9s %s\n", setting.variable().c_str(),
                   static_cast<int>(std::min<std::size_t>(width, 40)), shown_value(setting).c_str(), setting.row->unit,
                   setting.origin_text().c_str());
    if (sections.full) text += help_text(*setting.row);
  }
  return any ? text : text + "  none\n";
}

std::string ladder(const ulfm::WaitPolicy& policy) {
  const auto ms = [](std::chrono::nanoseconds t) { return static_cast<double>(t.count()) / 1e6; };
  return format("%u turns of looking, %u with a pause, yields for %g ms, sleeps of up to %g ms", policy.spins,
                policy.pauses, ms(policy.yield_for), ms(policy.park_limit));
}

std::string waiting_text(const Waiting& waiting) {
  return format("Waiting\n  cores that this process and its launcher may use: %d\n", waiting.cores) +
         format("  up to %d processes   %s\n", waiting.cores, ladder(waiting.enough).c_str()) +
         format("  more than that      %s\n", ladder(waiting.shared).c_str()) +
         (waiting.barriers ? "  a sleeper is woken by its sender (membarrier)\n"
                           : "  the kernel has no membarrier: sleeps end after 1 ms at the latest\n");
}

}  // namespace

std::string text_of(const Facts& facts, const Sections& sections) {
  std::string text;
  if (sections.version) text += version_text(facts);
  if (sections.transports) text += transports_text(facts);
  if (sections.config) text += config_text(facts, sections);
  if (sections.waiting) text += waiting_text(facts.waiting);
  return text;
}

std::string text_of(const MpiLibrary& mpi) {
  std::string text = "MPI library\n  " + mpi.path + "\n";
  if (!mpi.problem.empty()) return text + "  " + mpi.problem + "\n";
  text += mpi.is_ulfm ? "  is MPICH with the netmod ulfm\n"
                      : "  was NOT built with the netmod ulfm: programs that use it do not run over ULFM\n";
  text += "  says of itself:\n";
  for (std::size_t at = 0; at < mpi.version.size();) {
    const std::size_t end = std::min(mpi.version.find('\n', at), mpi.version.size());
    text += "    " + mpi.version.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace info
