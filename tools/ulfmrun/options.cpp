#include "options.hpp"

#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "base/config.hpp"
#include "failure.hpp"
#include "hosts.hpp"
#include "settings.hpp"
#include "values.hpp"

namespace ulfmrun {

const char* const kUsageLine = "usage: ulfmrun [options] -n N PROGRAM [arguments] [: -n M PROGRAM [arguments]]...";

namespace {

/// What an option of mpiexec means to ulfmrun, beyond being passed on.
enum class Meaning {
  none,
  count,
  hosts,
  host_file,
  manager,
  launcher,
  launcher_exec,
  directory,
  environment,
  informs,
  config_file,
  once  ///< of the job, however many programs it has
};

struct HydraOption {
  const char* name;
  int values;
  Meaning meaning = Meaning::none;
};

// Hydra matches names without regard to case and to the number of dashes; so does the search below.
// From the match table of MPICH 4.0's src/pm/hydra/ui/mpich/utils.c.
constexpr HydraOption kHydra[] = {
    {"n", 1, Meaning::count},
    {"np", 1, Meaning::count},
    {"genv", 2, Meaning::environment},
    {"env", 2, Meaning::environment},
    {"genvlist", 1},
    {"envlist", 1},
    {"genvnone", 0},
    {"genvall", 0},
    {"envnone", 0},
    {"envall", 0},
    {"f", 1, Meaning::host_file},
    {"hostfile", 1, Meaning::host_file},
    {"machinefile", 1, Meaning::host_file},
    {"machine", 1, Meaning::hosts},
    {"machines", 1, Meaning::hosts},
    {"machinelist", 1, Meaning::hosts},
    {"host", 1, Meaning::hosts},
    {"hosts", 1, Meaning::hosts},
    {"hostlist", 1, Meaning::hosts},
    {"rmk", 1, Meaning::manager},
    {"configfile", 1, Meaning::config_file},
    {"wdir", 1, Meaning::directory},
    {"ppn", 1, Meaning::once},
    {"profile", 0},
    {"output-from", 1, Meaning::once},
    {"prepend-rank", 0},
    {"l", 0},
    {"prepend-pattern", 1, Meaning::once},
    {"outfile-pattern", 1, Meaning::once},
    {"errfile-pattern", 1, Meaning::once},
    {"outfile", 1},
    {"errfile", 1},
    {"launcher", 1, Meaning::launcher},
    {"launcher-exec", 1, Meaning::launcher_exec},
    {"bootstrap", 1, Meaning::launcher},
    {"bootstrap-exec", 1, Meaning::launcher_exec},
    {"enable-x", 0},
    {"disable-x", 0},
    {"topolib", 1, Meaning::once},
    {"binding", 1, Meaning::once},
    {"bind-to", 1, Meaning::once},
    {"map-by", 1, Meaning::once},
    {"membind", 1, Meaning::once},
    {"demux", 1, Meaning::once},
    {"verbose", 0},
    {"v", 0},
    {"debug", 0},
    {"info", 0, Meaning::informs},
    {"version", 0, Meaning::informs},
    {"help", 0, Meaning::informs},
    {"print-all-exitcodes", 0},
    {"iface", 1, Meaning::once},
    {"nameserver", 1, Meaning::once},
    {"disable-auto-cleanup", 0},
    {"dac", 0},
    {"enable-auto-cleanup", 0},
    {"disable-hostname-propagation", 0},
    {"enable-hostname-propagation", 0},
    {"order-nodes", 1, Meaning::once},
    {"localhost", 1, Meaning::once},
    {"usize", 1, Meaning::once},
    {"pmi-port", 0},
    {"skip-launch-node", 0},
    {"gpus-per-proc", 1},
    {"g", 1},
};

struct OwnOption {
  const char* name;      ///< with its two dashes
  const char* value;     ///< how the help calls the value; nullptr when there is none
  const char* variable;  ///< what it sets; nullptr when it is not a setting
  const char* help;
};

constexpr OwnOption kOwn[] = {
    {"--transport", "NAME[,OPTION=VALUE...]", "ULFM_TRANSPORT", "transport that carries the messages"},
    {"--topology", "SHAPE[:SIZES]", "ULFM_TOPOLOGY", "shape of an emulated interconnect"},
    {"--share", "node|host", "ULFM_SHARE",
     "MPI's neighbours on an emulated interconnect: of a node, or all of the host"},
    {"--fault", "LIST", "ULFM_FAULT", "faults to inject: drop=1e-3,corrupt=1e-4,...; see ulfm-fault(7)"},
    {"--time", "virtual[,OPTION=VALUE...]", nullptr,
     "time of the emulated interconnect in place of the host's; see ulfm-time(7)"},
    {"--times", "FILE", nullptr, "write where the virtual time went to FILE, as JSON"},
    {"--stats", nullptr, "ULFM_STATS", "print counters on standard error when the job ends"},
    {"--stats-file", "FILE", "ULFM_STATS_FILE", "write the counters of all ranks to FILE: a table, or .json, or .csv"},
    {"--ft", nullptr, nullptr, "a rank that dies does not end the job: MPI's fault tolerance (MPIX_Comm_*)"},
    {"--trace", "FILE", "ULFM_TRACE", "write a trace of all ranks to FILE, for Perfetto or chrome://tracing"},
    {"--cube", "NODES", nullptr, "the program is a host, which loads that many nodes itself; nxhost(1) uses it"},
    {"--config", "FILE", "ULFM_CONFIG", "TOML file with settings"},
    {"--dry-run", nullptr, nullptr, "print the command and what it adds to the environment, and run nothing"},
    {"--help", nullptr, nullptr, "this text; mpiexec's own options: ulfmrun -help"},
    {"--version", nullptr, nullptr, "version of ULFM; mpiexec's own: ulfmrun -version"},
};

const OwnOption* own_option(std::string_view name) {
  const auto* found = std::find_if(std::begin(kOwn), std::end(kOwn), [&](const auto& o) { return name == o.name; });
  return found == std::end(kOwn) ? nullptr : found;
}

const HydraOption* hydra_option(const std::string& name) {
  const std::size_t start = name.find_first_not_of('-');
  if (start == std::string::npos) return nullptr;
  for (const auto& option : kHydra) {
    if (strcasecmp(name.c_str() + start, option.name) == 0) return &option;
  }
  return nullptr;
}

/// An option without its dashes.
std::string bare(const std::string& option) {
  return option.substr(std::min(option.find_first_not_of('-'), option.size()));
}

/// What users of other launchers mean by an option that mpiexec does not have.
std::string advice_for(const std::string& option) {
  struct Advice {
    const char *name, *text;
  };
  static constexpr Advice kAdvice[] = {
      {"x", "Open MPI passes a variable on with it; write -genv NAME VALUE"},
      {"mca", "it is Open MPI's; ULFM's settings are ULFM_* variables, and ulfm_info lists them"},
      {"gmca", "it is Open MPI's; ULFM's settings are ULFM_* variables, and ulfm_info lists them"},
      {"oversubscribe", "it is Open MPI's and not needed here: more processes than cores may run; leave it out"},
      {"allow-run-as-root", "it is Open MPI's and not needed here: leave it out"},
      {"use-hwthread-cpus", "it is Open MPI's; write -bind-to hwthread"},
      {"tag-output", "it is Open MPI's; write -l"},
      {"npernode", "it is Open MPI's; write -ppn N"},
      {"n-per-node", "write -ppn N"},
      {"ntasks", "it is srun's; write -n N"},
      {"c", "it is Open MPI's; write -n N"},
      {"H", "it is Open MPI's; write -hosts HOST,HOST"},
      {"report-bindings", "it is Open MPI's; HYDRA_TOPO_DEBUG=1 in the environment prints the bindings"},
  };
  const std::string name = bare(option);
  for (const Advice& advice : kAdvice)
    if (name == advice.name) return advice.text;
  const std::size_t letters = name.find_first_of("0123456789");
  if (letters != std::string::npos && (name.substr(0, letters) == "n" || name.substr(0, letters) == "np"))
    return fmt::format("write -{} {}", name.substr(0, letters), name.substr(letters));
  return "";
}

bool asks_for_help(const std::string& word) { return word == "-h" || word == "-help" || word == "--help"; }

int check_count(const std::string& option, const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 1)
    fail(kUsage, fmt::format("{} needs a number of processes, 1 or more; found \"{}\"", option, text));
  return count;
}

/// Relative names are of it, and mpiexec cannot start without one.
void need_current_folder() {
  std::error_code error;
  (void)std::filesystem::current_path(error);
  if (error)
    fail(kUsage, fmt::format("the current folder has no path: {}; change to one that exists", error.message()));
}

std::string absolute_file(const std::string& text) {
  need_current_folder();
  return std::filesystem::absolute(text).lexically_normal();
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& words) : words_(words) {}

  CommandLine run() {
    if (words_.empty()) fail(kUsage, fmt::format("a program is needed; found nothing\n{}", kUsageLine));
    do {
      directory_.clear();
      count_.reset();
      while (!at_end() && words_[at_].starts_with('-') && !passive_) take_option();
      if (passive_) take_rest();
    } while (take_program());
    if (!passive_) need_current_folder();
    if (line_.cube != 0) {
      check_host_program();
      line_.elsewhere = std::getenv("NX2_HOSTS") != nullptr;  // nxhost(1) names the hosts of the nodes there
    }
    take_hosts_of_environment(line_);
    return std::move(line_);
  }

 private:
  bool at_end() const { return at_ == words_.size(); }

  /// Splits --name=value and hands the option to whoever it belongs to.
  void take_option() {
    const std::string word = words_[at_++];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    inline_value_.reset();
    if (equals != std::string::npos) inline_value_ = word.substr(equals + 1);
    if (const auto* own = own_option(name == "-h" ? "--help" : name)) return take_own(*own);
    if (const auto* hydra = hydra_option(name)) return take_hydra(name, *hydra);
    take_unknown(name, word);
  }

  std::string take_value(const std::string& option) {
    if (inline_value_) return *std::exchange(inline_value_, std::nullopt);
    if (at_end()) fail(kUsage, fmt::format("{} needs a value; the command line ends after it", option));
    return words_[at_++];
  }

  void refuse_value(const std::string& option) const {
    if (inline_value_) fail(kUsage, fmt::format("{} takes no value; found \"{}\"", option, *inline_value_));
  }

  void take_own(const OwnOption& option) {
    const std::string_view name = option.name;
    if (!option.value) {
      refuse_value(option.name);
      if (name == "--help") line_.help = passive_ = true;
      if (name == "--version") line_.version = passive_ = true;
      if (name == "--dry-run") line_.dry_run = true;
      if (name == "--ft") line_.survives_deaths = true;
      if (name == "--stats") note(option, "1");
      return;
    }
    std::string value = take_value(option.name);
    if (value.empty()) fail(kUsage, fmt::format("{} needs {}; found an empty value", option.name, option.value));
    refuse_second(option.name, value);
    // Ranks may run in another directory than this one.
    if (name == "--config" || name == "--trace" || name == "--stats-file") value = absolute_file(value);
    if (name == "--config") line_.config = value;
    if (name == "--cube") line_.cube = check_count(option.name, value);
    if (name == "--time") line_.time = value;
    if (name == "--times") line_.times = absolute_file(value);
    if (option.variable != nullptr) note(option, value);
  }

  /// The job has one of each, also when it has several programs.
  /// True: it has been given before, with the same value.
  bool refuse_second(const std::string& name, const std::string& value) {
    const auto [first, is_new] = given_.try_emplace(name, value);
    if (!is_new && first->second != value)
      fail(kUsage, fmt::format("{} is given twice, with \"{}\" and with \"{}\"; a job has one: leave one of them out",
                               name, first->second, value));
    return !is_new;
  }

  void note(const OwnOption& option, const std::string& value) {
    line_.settings.push_back({std::string(option.variable).substr(std::strlen("ULFM_")), value, option.name});
  }

  void take_hydra(const std::string& name, const HydraOption& option) {
    line_.arguments.push_back(name);
    if (option.values == 0) refuse_value(name);
    if (option.meaning == Meaning::environment) return take_environment(name);
    for (int i = 0; i < option.values; ++i) {
      const std::string value = take_value(name);
      line_.arguments.push_back(value);
      if (asks_for_help(value)) passive_ = true;  // "-bind-to -help" explains -bind-to
      else if (option.meaning == Meaning::count) take_count(name, value);
      else note_value(name, option, value);
    }
    const bool is_one = option.meaning == Meaning::once || option.meaning == Meaning::launcher ||
                        option.meaning == Meaning::launcher_exec || option.meaning == Meaning::manager;
    if (is_one && !passive_ && refuse_second(fmt::format("-{}", option.name), line_.arguments.back()))
      line_.arguments.resize(line_.arguments.size() - 2);  // mpiexec takes it once
    if (option.meaning == Meaning::informs || option.meaning == Meaning::config_file) passive_ = true;
  }

  void take_count(const std::string& name, const std::string& value) {
    const int count = check_count(name, value);
    if (count_ && !passive_)
      fail(kUsage,
           fmt::format("{} is given twice for one program, with \"{}\" and with \"{}\"; leave one of them out, or "
                       "put a colon between two programs",
                       name, *count_, count));
    count_ = count;
  }

  void note_value(const std::string& name, const HydraOption& option, const std::string& value) {
    check_value(name, option.name, value);
    const bool named = option.meaning == Meaning::hosts || option.meaning == Meaning::host_file;
    if (named) line_.hosts.push_back({name, value, option.meaning == Meaning::host_file});
    if (named) line_.elsewhere = true;
    if (option.meaning == Meaning::manager) line_.manager = value;
    if (option.meaning == Meaning::launcher) line_.launcher = value;
    if (option.meaning == Meaning::launcher_exec) line_.launcher_exec = value;
    if (option.meaning == Meaning::directory) directory_ = value;
  }

  /// -genv NAME VALUE, which may also be written -genv NAME=VALUE.
  void take_environment(const std::string& option) {
    std::string variable = take_value(option);
    const std::size_t equals = variable.find('=');
    if (asks_for_help(variable)) passive_ = true;
    line_.arguments.push_back(variable.substr(0, equals));
    if (passive_) return;
    const std::string value = equals == std::string::npos ? take_value(option) : variable.substr(equals + 1);
    if (line_.arguments.back() == "LD_LIBRARY_PATH") line_.library_paths.push_back(line_.arguments.size());
    if (const std::string& name = line_.arguments.back(); name.starts_with("ULFM_"))
      line_.passed_on.push_back({name.substr(std::strlen("ULFM_")), value, fmt::format("{} {}", option, name)});
    line_.arguments.push_back(value);
  }

  [[noreturn]] void take_unknown(const std::string& name, const std::string& word) {
    if (const std::string advice = advice_for(name); !advice.empty())
      fail(kUsage, fmt::format("there is no option {}: {}", word, advice));
    // Without dashes, which all have: they would make names look alike.
    std::vector<std::string> names;
    for (const auto& option : kOwn) names.push_back(bare(option.name));
    const auto own = static_cast<std::ptrdiff_t>(names.size());
    for (const auto& option : kHydra) names.emplace_back(option.name);
    std::string near;
    if (bare(name).size() > 1) near = ulfm::nearest(bare(name), names);  // a letter is near to every other
    const bool is_own = std::find(names.begin(), names.begin() + own, near) != names.begin() + own;
    if (!near.empty()) near.insert(0, is_own ? "--" : "-");
    fail(kUsage,
         fmt::format("there is no option {}{}ulfmrun --help lists ULFM's own options and ulfmrun -help mpiexec's", name,
                     near.empty() ? "; " : fmt::format("; did you mean {}? ", near)));
  }

  void take_rest() {
    line_.arguments.insert(line_.arguments.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    at_ = words_.size();
  }

  /// A host is started without mpiexec, whose options mean nothing then.
  void check_host_program() const {
    if (passive_) return;
    if (line_.programs.size() != 1 || line_.arguments.front() != line_.programs.front().name)
      fail(kUsage, fmt::format("--cube starts one program, without mpiexec; found {}: leave that out",
                               line_.programs.size() != 1 ? "several programs"
                                                          : fmt::format("its option {}", line_.arguments.front())));
  }

  /// Copies a program and its arguments; true when ":" announces another.
  bool take_program() {
    if (passive_) return false;
    if (at_end() || words_[at_] == ":") {
      const std::string found = at_end() ? "the end of the command line" : "\":\"";
      fail(kUsage, fmt::format("a program is needed; found {}\n{}", found, kUsageLine));
    }
    line_.programs.push_back({words_[at_], directory_});
    line_.processes += count_.value_or(1);
    while (!at_end()) {
      line_.arguments.push_back(words_[at_++]);
      if (line_.arguments.back() == ":") return true;
    }
    return false;
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::optional<int> count_;  // processes of the program that is being read; 1 when it does not say
  std::optional<std::string> inline_value_;
  std::map<std::string, std::string> given_;  // values of own options
  std::string directory_;                     ///< -wdir of the program to come
  bool passive_ = false;                      ///< the rest of the line is mpiexec's to read, or nobody's
  CommandLine line_;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words) { return Parser(words).run(); }

std::string help_text() {
  std::string text = fmt::format("{}\n\nRuns MPICH-ABI programs over ULFM, as they are.\n\n", kUsageLine);
  for (const auto& option : kOwn) {
    std::string left = fmt::format("  {}{}", option.name, option.value ? fmt::format(" {}", option.value) : "");
    left.resize(std::max<std::size_t>(left.size() + 2, 40), ' ');
    text += fmt::format("{}{}\n", left, option.help);
  }
  text += fmt::format("\nTransports: {}.\n", transport_list());
  text +=
      "Every option of mpiexec is passed on: -n N, -hosts LIST, -genv NAME VALUE, -wdir DIRECTORY, -l ...\n"
      "Example: ulfmrun -n 4 ./hello\n"
      "Exit code: mpiexec's; 1 when something of the installation or a result file is missing, 2 for a wrong "
      "command line, 126 for a program that cannot run, 127 for one not found.\n"
      "Manual: ulfmrun(1).\n";
  return text;
}

}  // namespace ulfmrun
