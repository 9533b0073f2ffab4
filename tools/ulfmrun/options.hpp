// The command line: ulfmrun's own options, and enough of mpiexec's grammar to find where each program begins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "program.hpp"

namespace ulfmrun {

/// -hosts LIST or -f FILE.
struct NamedHosts {
  std::string option, value;
  bool is_file;
};

struct CommandLine {
  bool help = false;
  bool version = false;
  bool dry_run = false;
  /// The launcher leaves the other ranks alone when one dies.
  bool survives_deaths = false;

  /// ULFM_* settings from our options, as given; the ranks get them as variables.
  std::vector<ulfm::CommandLineSetting> settings;
  /// ULFM_* variables that -genv and -env give the ranks.
  std::vector<ulfm::CommandLineSetting> passed_on;
  std::string config;                ///< --config; empty: not given
  std::optional<std::string> time;   ///< as behind --time
  std::optional<std::string> times;  ///< file for the times

  /// Everything that is mpiexec's, in order.
  std::vector<std::string> arguments;
  /// Positions in `arguments` of values that the user gives to LD_LIBRARY_PATH; they must not hide our
  /// libraries.
  std::vector<std::size_t> library_paths;

  std::vector<Program> programs;
  int processes = 0;  ///< of all programs
  int cube = 0;       ///< nodes of the cube that the one program loads itself; 0: it is no host
  std::vector<NamedHosts> hosts;
  std::string launcher, launcher_exec, manager;  ///< as given; empty: not given
  /// Other hosts are named, here or by the environment: what is absent here may be there.
  bool elsewhere = false;
};

/// Fails with kUsage.
CommandLine parse_command_line(const std::vector<std::string>& words);

extern const char* const kUsageLine;
std::string help_text();

}  // namespace ulfmrun
