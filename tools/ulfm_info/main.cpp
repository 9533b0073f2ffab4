// ulfm_info: what this installation has, what it is set to, and where each setting comes from.
#include <ulfm/ulfm.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "../common/command_line.hpp"
#include "../common/output.hpp"
#include "base/standard_streams.hpp"
#include "fabric/models.hpp"
#include "print.hpp"

namespace {

struct Options {
  info::Sections sections;
  bool json = false, mpi = false, man_rows = false;
  std::string rows_of;  ///< --man-rows of one transport
};

int complain(const std::string& text, int code) {
  std::fprintf(stderr, "ulfm_info: %s\n", text.c_str());
  return code;
}

void declare(CLI::App& app, Options& options) {
  app.set_help_flag("-h,--help", "this text");
  app.add_flag("-v,--version", options.sections.version, "version and build");
  app.add_flag("-t,--transports", options.sections.transports, "transports: capabilities, cost, why one is unusable");
  app.add_flag("-c,--config", options.sections.config, "settings: value, unit and where it comes from");
  app.add_flag("-f,--full", options.sections.full, "settings with help, range and default");
  app.add_flag("-e,--effective", options.sections.effective, "only settings that differ from the default");
  app.add_flag("--json", options.json, "everything, as one JSON object");
  app.add_flag("--mpi", options.mpi, "the MPI library this installation has, and whether it is ULFM's");
  app.add_option("--man-rows", options.rows_of, "the settings (of one transport) as man-page text")
      ->type_name("[TRANSPORT]")
      ->expected(0, 1);
  app.allow_extras();  // what is left over gets a better sentence than the library's
  app.footer(
      "Without options: version, transports, settings and how waits behave.\n"
      "Example: ulfm_info -t\n"
      "Exit code: 2 for a wrong command line or setting. Manual: ulfm_info(1), ulfm(7).");
}

int complain_about(const CLI::App& app, const std::string& word) {
  if (word[0] != '-')
    return complain(fmt::format("takes options only; found \"{}\"; `ulfm_info --help` lists them", word),
                    tools::kUsage);
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back(fmt::format("--{}", name));
  const std::string near = ulfm::nearest(word.substr(0, word.find('=')), names);
  return complain(
      fmt::format("there is no option {}{}", word,
                  near.empty() ? "; `ulfm_info --help` lists them" : fmt::format("; did you mean {}?", near)),
      tools::kUsage);
}

int print(const std::string& text) { return tools::print("ulfm_info", text); }

int print_man_rows(const std::string& transport) {
  const auto rows = info::rows_of(transport);
  if (rows.empty()) return complain(fmt::format("--man-rows: no transport is called \"{}\"", transport), tools::kUsage);
  return print(info::man_rows(rows));
}

int run(Options options) {
  if (options.man_rows) return print_man_rows(options.rows_of);
  auto facts = info::gather();
  if (!facts) return complain(facts.error().what, tools::kUsage);
  if (options.json) return print(info::json_of(*facts, info::find_mpi()));

  info::Sections& s = options.sections;
  s.config = s.config || s.full || s.effective;
  if (!s.version && !s.transports && !s.config && !options.mpi) s.version = s.transports = s.config = s.waiting = true;
  for (const auto& warning : facts->warnings) complain(fmt::format("warning: {}", warning), 0);
  int code = print(info::text_of(*facts, s));
  if (options.mpi) code |= print(info::text_of(info::find_mpi()));
  if (!facts->problem.empty()) return complain(facts->problem, tools::kUsage);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  Options options;
  CLI::App app{"Shows what this ULFM has and how it is set", "ulfm_info"};
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : tools::kUsage;
  }
  for (const std::string& word : app.remaining()) {
    if (!ulfm::fabric::is_shared_object(word)) return complain_about(app, word);
    setenv("ULFM_TRANSPORT", word.c_str(), 1);
    options.sections.transports = true;
  }
  options.man_rows = app.get_option("--man-rows")->count() != 0;
  return run(options);
}
