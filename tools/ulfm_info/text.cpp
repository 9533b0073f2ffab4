// The form for people.
#include <algorithm>

#include <fmt/core.h>

#include "print.hpp"

namespace info {
namespace {

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string version_text(const Facts& facts) {
  return fmt::format("ulfm_info (ULFM, user-level fast message) {}\n  built with   {}{}\n", facts.version,
                     facts.compiler, facts.optimised ? "" : ", without optimisation");
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
  std::string text = fmt::format("  {:<12} {}\n", t.name, t.summary);
  text += fmt::format("    capable    {}\n", capabilities(t));
  text += fmt::format("    frames     up to {} bytes; longer messages are divided\n", t.max_frame);
  text += fmt::format("    cost       about {:g} us and {:g} MB/s; rough, for choosing among transports\n",
                      t.latency_us, t.bandwidth_MBps);
  if (!facts.options.empty()) text += fmt::format("    options    {}\n", joined(facts.options, ", "));
  text += fmt::format("    settings   {}\n", joined(facts.settings(), " "));
  text +=
      fmt::format("    usable     {}\n", facts.unavailable.empty() ? "yes" : fmt::format("no: {}", facts.unavailable));
  return text;
}

std::string transports_text(const Facts& facts) {
  std::string text = "Transports\n";
  for (const auto& transport : facts.transports) text += transport_text(transport);
  if (facts.problem.empty()) text += fmt::format("  ULFM_TRANSPORT={} takes {}\n", facts.asked, facts.selected);
  else text += fmt::format("  ULFM_TRANSPORT={} takes none\n", facts.asked);
  return text;
}

std::string shown_value(const Setting& setting) {
  if (!setting.value.empty()) return setting.value;
  return setting.is_number() ? "(automatic)" : "(none)";
}

std::string help_text(const ulfm::ConfigRow& row) {
  const std::string standard = row.default_value[0] == '\0' ? "none" : row.default_value;
  return fmt::format("      {}\n      {}; default {}\n", row.help, range_text(row), standard);
}

std::string config_text(const Facts& facts, const Sections& sections) {
  std::string text = sections.effective ? "Settings that differ from the default\n" : "Settings\n";
  std::size_t names = 0, width = 12;
  for (const auto& setting : facts.settings) {
    names = std::max(names, setting.variable().size());
    width = std::max(width, shown_value(setting).size());
  }
  bool any = false;
  for (const auto& setting : facts.settings) {
    if (sections.effective && !setting.changed()) continue;
    any = true;
    text += fmt::format("  {:<{}} {:<{}.200} {:<9} {}\n", setting.variable(), names, shown_value(setting),
                        std::min<std::size_t>(width, 40), setting.row->unit, setting.origin_text());
    if (sections.full) text += help_text(*setting.row);
  }
  return any ? text : fmt::format("{}  none\n", text);
}

std::string ladder(const ulfm::WaitPolicy& policy) {
  const auto ms = [](std::chrono::nanoseconds t) { return static_cast<double>(t.count()) / 1e6; };
  return fmt::format("{} turns of looking, {} with a pause, yields for {:g} ms, sleeps of up to {:g} ms", policy.spins,
                     policy.pauses, ms(policy.yield_for), ms(policy.park_limit));
}

std::string waiting_text(const Waiting& waiting) {
  return fmt::format("Waiting\n  cores that this process and its launcher may use: {}\n", waiting.cores) +
         fmt::format("  up to {} processes   {}\n", waiting.cores, ladder(waiting.enough)) +
         fmt::format("  more than that      {}\n", ladder(waiting.shared)) +
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
  std::string text = fmt::format("MPI library\n  {}\n", mpi.path);
  if (!mpi.problem.empty()) return fmt::format("{}  {}\n", text, mpi.problem);
  text += mpi.is_ulfm ? "  is MPICH with the netmod ulfm\n"
                      : "  was NOT built with the netmod ulfm: programs that use it do not run over ULFM\n";
  text += "  says of itself:\n";
  for (std::size_t at = 0; at < mpi.version.size();) {
    const std::size_t end = std::min(mpi.version.find('\n', at), mpi.version.size());
    text += fmt::format("    {}\n", mpi.version.substr(at, end - at));
    at = end + 1;
  }
  return text;
}

}  // namespace info
