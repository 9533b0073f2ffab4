#include "values.hpp"

#include <net/if.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/config.hpp"
#include "failure.hpp"

namespace ulfmrun {
namespace {

bool is_number(std::string_view text, int least) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= least;
}

/// Options that take one of some words. From MPICH 4.0's hydra: tools/bootstrap, tools/demux, ui/mpich.
struct Choice {
  const char *names, *words;
};
constexpr Choice kChoices[] = {
    {"launcher bootstrap", "ssh rsh fork slurm ll lsf sge manual persist"},
    {"rmk", "user slurm ll lsf sge pbs cobalt"},
    {"demux", "poll select"},
    {"topolib", "hwloc"},
    {"order-nodes", "ascending ASCENDING up UP descending DESCENDING down DOWN"},
};

std::vector<std::string> words_of(const char* list) {
  std::istringstream in(list);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string one_of(const std::vector<std::string>& words, const std::string& value) {
  std::string text = "needs one of";
  for (const std::string& word : words) text += (&word == &words.front() ? " " : ", ") + word;
  const std::string near = ulfm::nearest(value, words);
  return fmt::format("{}; found \"{}\"{}", text, value, near.empty() ? "" : fmt::format(", did you mean {}?", near));
}

/// What a process may be bound to, with a number of them behind a colon. From tools/topo/hwloc/topo_hwloc.c.
std::string wrong_binding(const std::string& value) {
  static const auto objects = words_of(
      "none rr machine socket package numa numanode core hwthread l1cache l1dcache l1icache l1ucache l2cache l2dcache "
      "l2icache l2ucache l3cache l3dcache l3icache l3ucache l4cache l4dcache l4ucache l5cache l5dcache l5ucache");
  for (const char* other : {"user:", "pci:", "gpu", "ib", "hfi", "eth", "en"})
    if (value.starts_with(other)) return "";  // mpiexec knows which devices there are
  const std::size_t colon = value.find(':');
  const std::string object = value.substr(0, colon);
  if (std::find(objects.begin(), objects.end(), object) == objects.end()) {
    const std::string near = ulfm::nearest(object, objects);
    return fmt::format(
        "needs none, rr, user:LIST, machine, package, numa, core, hwthread or a cache such as l2cache; found \"{}\"{}",
        object, near.empty() ? "" : fmt::format(", did you mean {}?", near));
  }
  if (colon == value.npos || is_number(std::string_view(value).substr(colon + 1), 1)) return "";
  return fmt::format("needs a number, 1 or more, behind {}:; found \"{}\"", object, value.substr(colon + 1));
}

/// Memory nodes are those of another host, perhaps: mpiexec's part there knows which there are.
std::string wrong_memory_binding(const std::string& value) {
  if (value == "none" || value == "firsttouch" || value == "nexttouch") return "";
  for (const char* policy : {"bind:", "interleave:"})
    if (value.starts_with(policy) && value.find_first_not_of("0123456789,-", std::strlen(policy)) == std::string::npos)
      return "";
  return fmt::format(
      "needs none, firsttouch, nexttouch, bind:LIST or interleave:LIST, with memory nodes as 0,2-3; "
      "found \"{}\"",
      value);
}

/// Patterns have the rank and others as %r, %g, %p, %t and %h.
std::string wrong_pattern(const std::string& pattern) {
  for (std::size_t at = pattern.find('%'); at < pattern.size(); at = pattern.find('%', at + 2)) {
    const char what = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (what == '\0' || std::strchr("%rgpth", what) == nullptr)
      return fmt::format("needs r (rank), g (group), p (proxy), t (seconds), h (host) or % behind %; found \"{}\"",
                         pattern.substr(at, 2));
  }
  return "";
}

std::string wrong_output_file(const std::string& pattern) {
  if (std::string wrong = wrong_pattern(pattern); !wrong.empty()) return wrong;
  std::filesystem::path folder = std::filesystem::path(pattern).parent_path();
  if (folder.native().find('%') != std::string::npos) return "";
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return fmt::format("{}: {}; a folder that can be written is needed", folder.string(), std::strerror(errno));
}

std::string wrong_value(const std::string& name, const std::string& value) {
  for (const Choice& choice : kChoices) {
    const auto names = words_of(choice.names), words = words_of(choice.words);
    if (std::find(names.begin(), names.end(), name) != names.end())
      return std::find(words.begin(), words.end(), value) == words.end() ? one_of(words, value) : "";
  }
  if (name == "bind-to" || name == "binding" || name == "map-by") return wrong_binding(value);
  if (name == "membind") return wrong_memory_binding(value);
  if (name == "prepend-pattern") return wrong_pattern(value);
  if (name == "outfile" || name == "errfile" || name == "outfile-pattern" || name == "errfile-pattern")
    return wrong_output_file(value);
  if (name == "ppn" && !is_number(value, 1))
    return fmt::format("needs a number of processes, 1 or more; found \"{}\"", value);
  if (name == "output-from" && !is_number(value, 0)) return fmt::format("needs a rank, 0 or more; found \"{}\"", value);
  if (name == "usize" && value != "SYSTEM" && value != "INFINITE" && !is_number(value, 1))
    return fmt::format("needs a number of processes, 1 or more, SYSTEM or INFINITE; found \"{}\"", value);
  if (name == "iface" && if_nametoindex(value.c_str()) == 0)
    return fmt::format("\"{}\" is no network interface of this host; ip link lists them", value);
  if ((name == "launcher-exec" || name == "bootstrap-exec") && value.find('/') != value.npos &&
      access(value.c_str(), X_OK) != 0)
    return fmt::format("{}: {}; a program that starts processes on hosts is needed", value, std::strerror(errno));
  if (name == "configfile" && access(value.c_str(), R_OK) != 0)
    return fmt::format("{}: {}; a readable file of command lines is needed", value, std::strerror(errno));
  return "";
}

}  // namespace

void check_value(const std::string& option, const std::string& name, const std::string& value) {
  if (const std::string wrong = wrong_value(name, value); !wrong.empty())
    fail(kUsage, fmt::format("{} {}", option, wrong));
}

}  // namespace ulfmrun
