// What the command lines of the tools have in common: one sentence for a wrong one, with the nearest name that there
// is.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/config.hpp"

namespace tools {

/// Exit status of a wrong command line.
inline constexpr int kUsage = 2;

/// The first word that should have been a command of `app` and is none; "" when there is one, or no such word.
inline std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.empty() || word.front() == '-') return "";
    const auto commands = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
    return commands.empty() ? word : "";
  }
  return "";
}

/// "; did you mean NAME?" or "."
inline std::string meant(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = ulfm::nearest(word, names);
  return near.empty() ? "." : fmt::format("; did you mean {}?", near);
}

inline std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// All option names of an application and its commands, with their dashes.
inline std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  const auto add = [&](const CLI::App& one) {
    for (const CLI::Option* option : one.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back(fmt::format("--{}", name));
  };
  add(app);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) add(*command);
  return names;
}

/// What is wrong with the line, as a sentence.
inline std::string sentence(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  if (!commands.empty())
    if (const std::string word = unknown_command(app, argc, argv); !word.empty())
      return fmt::format("there is no command \"{}\"{} There is: {}", word, meant(word, commands), listed(commands));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i], name = word.substr(0, word.find('='));
      const std::vector<std::string> names = option_names(app);
      if (name.starts_with("--") && std::find(names.begin(), names.end(), name) == names.end())
        return fmt::format("there is no option {}{} --help lists them", name, meant(name, names));
    }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !commands.empty() && argc < 2)
    return fmt::format("a command is needed; there is: {}", listed(commands));
  std::string text = error.what();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// Reads the line. A value when the program is to end with it: 0 after --help and --version, else kUsage with a
/// sentence on standard error.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string name = app.get_name().empty() ? std::string(argv[0]) : app.get_name();
    std::fprintf(stderr, "%s: %s\n", name.substr(name.rfind('/') + 1).c_str(),
                 sentence(app, error, argc, argv).c_str());
    return kUsage;
  }
  return std::nullopt;
}

/// The same sentence for what is found wrong after parse().
inline int complain(const CLI::App& app, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), text.c_str());
  return kUsage;
}

}  // namespace tools
