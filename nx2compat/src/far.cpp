#include "far.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/core.h>

extern char** environ;

namespace nx2 {
namespace {

bool is_this_host(const std::string& name) {
  char own[256] = "";
  gethostname(own, sizeof own - 1);
  return name == "localhost" || name == "127.0.0.1" || name == own ||
         name == std::string_view(own).substr(0, std::string_view(own).find('.'));
}

std::string shell_word(std::string_view word) {
  std::string text = "'";
  // csh looks for ! in quotes, too
  for (const char c : word) text += c == '\'' || c == '!' ? fmt::format("'\\{}'", c) : std::string(1, c);
  return fmt::format("{}'", text);
}

// What belongs to a login and not to a program, and what the host alone was told.
bool goes_along(std::string_view name) {
  // The other host's shell does not take the last ones.
  static constexpr std::array<std::string_view, 20> kStay = {
      "_",        "PWD",       "OLDPWD",    "SHLVL",        "HOSTNAME",
      "HOME",     "USER",      "LOGNAME",   "DISPLAY",      "NX2_CUBE",
      "NX2_LOAD", "NX2_NODES", "NX2_HOSTS", "NX2_LAUNCHER", "ULFM_STALL_BOARD",
      "UID",      "EUID",      "PPID",      "SHELLOPTS",    "BASHOPTS"};
  const auto is_of_a_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.starts_with("SSH_") && !name.starts_with("BASH_") && !name.empty() &&
         std::all_of(name.begin(), name.end(), is_of_a_name) &&
         std::find(kStay.begin(), kStay.end(), name) == kStay.end();
}

// "export NAME='value'; " for each variable that goes along and begins so.
std::string exports(char** environment, std::string_view begin) {
  std::string text;
  for (char** at = environment; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const std::size_t equals = variable.find('=');
    if (equals == variable.npos || !variable.starts_with(begin) || !goes_along(variable.substr(0, equals))) continue;
    text += fmt::format("export {}={}; ", variable.substr(0, equals), shell_word(variable.substr(equals + 1)));
  }
  return text;
}

// Of an IPv6 address, which may have a user in front.
std::string without_brackets(std::string name) {
  std::erase_if(name, [](char c) { return c == '[' || c == ']'; });
  return name;
}

}  // namespace

FarHosts::FarHosts() {
  const char* const list = std::getenv("NX2_HOSTS");
  if (list == nullptr) return;
  if (const char* const launcher = std::getenv("NX2_LAUNCHER"); launcher != nullptr && *launcher != '\0')
    launcher_ = launcher;
  std::istringstream hosts(list);
  for (std::string word; std::getline(hosts, word, ',');) {
    const std::size_t bracket = word.find(']');
    const std::size_t colon = word.find(':', bracket == word.npos ? 0 : bracket);
    const int count = colon == word.npos ? 1 : std::atoi(word.c_str() + colon + 1);
    const std::string name = without_brackets(word.substr(0, colon));
    places_.insert(places_.end(), static_cast<std::size_t>(std::max(count, 1)), is_this_host(name) ? "" : name);
  }
  if (std::all_of(places_.begin(), places_.end(), [](const std::string& place) { return place.empty(); }))
    places_.clear();
}

const std::string& FarHosts::of(int node) const noexcept {
  static const std::string here;
  return places_.empty() ? here : places_[static_cast<std::size_t>(node) % places_.size()];
}

// No display goes along; rsh never had one.
std::vector<std::string> FarHosts::shell_on(int node) const {
  std::vector<std::string> words = {launcher_};
  if (!launcher_.ends_with("rsh")) words.emplace_back("-x");
  const std::string& place = of(node);
  const std::size_t at = place.find('@');
  if (at != place.npos) words.insert(words.end(), {"-l", place.substr(0, at)});
  words.insert(words.end(), {at == place.npos ? place : place.substr(at + 1), "sh", "-s"});
  return words;
}

// A launcher may hand on its own environment. One line for the shell, so that it has read all of it before the program
// runs, and what follows is the program's end.
std::string script_for(const std::vector<std::string>& command, const std::string& cube, char** environment) {
  std::error_code none;
  std::string text = fmt::format("cd {} || exit 1; ", shell_word(std::filesystem::current_path(none).string()));
  if (environment != nullptr) text += exports(environment, "");
  text += exports(environ, environment != nullptr ? "ULFM_" : "");
  text +=
      fmt::format("export NX2_CUBE={}; unset NX2_NODES NX2_LOAD NX2_HOSTS NX2_LAUNCHER; exec 3<&0; ", shell_word(cube));
  for (const std::string& word : command) text += fmt::format("{} ", shell_word(word));
  return fmt::format(
      "{}</dev/null 3<&- & program=$!; {{ cat <&3 >/dev/null; kill -9 $program; }} 2>/dev/null & watch=$!; exec "
      "2>/dev/null; wait $program; status=$?; kill $watch; exit $status\n",
      text);
}

}  // namespace nx2
