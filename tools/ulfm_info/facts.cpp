#include "facts.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <ulfm/ulfm.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <fmt/core.h>

#include "fabric/models.hpp"
#include "port/node.hpp"

namespace info {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}", __clang_version__);
#else
  return fmt::format("GCC {}", __VERSION__);
#endif
}

bool optimised() {
#ifdef __OPTIMIZE__
  return true;
#else
  return false;
#endif
}

bool has_barriers() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
}

/// Those of the model that the transport is an emulation of; none for others.
std::vector<std::string> options_of(std::string_view transport) {
  std::vector<std::string> all;
  const ulfm::fabric::ModelKind* const kind = ulfm::fabric::model_of_transport(transport);
  if (kind == nullptr) return all;
  for (const auto& row : kind->options)
    all.push_back(
        fmt::format("{}={}", row.name, row.words != nullptr ? row.words : fmt::format("{}..{}", row.least, row.most)));
  return all;
}

Waiting gather_waiting(const ulfm::Config& config) {
  const int cores = ulfm::usable_cores();
  return {cores, has_barriers(), ulfm::wait_policy_from(config, cores), ulfm::wait_policy_from(config, cores + 1)};
}

}  // namespace

std::vector<std::string> TransportFacts::settings() const {
  std::istringstream in(descriptor->config_rows);
  std::vector<std::string> names;
  for (std::string name; in >> name;) names.push_back(fmt::format("ULFM_{}", name));
  return names;
}

ulfm::Result<Facts> gather() {
  auto config = ulfm::Config::load();
  if (!config) return ulfm::fail(config.error());
  Facts facts;
  facts.version = ulfm_version();
  facts.compiler = compiler();
  facts.optimised = optimised();
  for (const auto* descriptor : ulfm::transports())
    facts.transports.push_back({descriptor, descriptor->unavailable(), options_of(descriptor->name)});
  facts.asked = config->text("TRANSPORT");
  if (auto found = ulfm::select_transport(facts.asked)) {
    facts.selected = (*found)->name;
    if (const auto name = ulfm::fabric::name_of_transport(facts.asked); ulfm::fabric::is_shared_object(name))
      facts.transports.push_back({*found, "", options_of(name)});
  } else {
    facts.problem = found.error().what;
  }
  for (const auto& row : ulfm::config_rows())
    facts.settings.push_back(
        {&row, config->text(row.name), config->number(row.name), config->origin(row.name), config->where(row.name)});
  facts.waiting = gather_waiting(*config);
  facts.warnings = config->warnings();
  return facts;
}

std::vector<const ulfm::ConfigRow*> rows_of(std::string_view transport) {
  std::vector<std::string> wanted;
  for (const auto* descriptor : ulfm::transports())
    if (transport == descriptor->name) wanted = TransportFacts{descriptor, "", {}}.settings();
  std::vector<const ulfm::ConfigRow*> rows;
  for (const auto& row : ulfm::config_rows())
    if (transport.empty() || std::find(wanted.begin(), wanted.end(), fmt::format("ULFM_{}", row.name)) != wanted.end())
      rows.push_back(&row);
  return rows;
}

std::string range_text(const ulfm::ConfigRow& row) {
  using ulfm::RowType;
  switch (row.type) {
    case RowType::text: return "text";
    case RowType::boolean: return "0 or 1 (also no or yes, off or on)";
    case RowType::choice: {
      std::string all = row.choices;
      for (std::size_t at = 0; (at = all.find('|', at)) != std::string::npos;) all.replace(at, 1, ", ");
      return fmt::format("one of {}", all);
    }
    default: break;
  }
  const char* suffixes = row.type == RowType::bytes          ? " (also with K, M, G)"
                         : row.type == RowType::milliseconds ? " (also with ms, s)"
                                                             : "";
  return fmt::format("from {} to {}{}", row.min, row.max, suffixes);
}

}  // namespace info
