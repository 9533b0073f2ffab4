// ulfmrun: runs any MPICH-ABI program over ULFM.
//
// It finds the installation it belongs to, checks the command line and the programs, arranges that the ranks
// load this installation's MPI library, and becomes mpiexec, or waits for it when the job leaves something to write.
#include <ulfm/ulfm.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "../common/output.hpp"
#include "base/argv.hpp"
#include "base/standard_streams.hpp"
#include "child.hpp"
#include "collect.hpp"
#include "fabric/engine/process.hpp"
#include "failure.hpp"
#include "hosts.hpp"
#include "job/stall_board.hpp"
#include "job_key.hpp"
#include "leftovers.hpp"
#include "options.hpp"
#include "program.hpp"
#include "settings.hpp"
#include "timed.hpp"
#include "transport/proxy/door.hpp"

namespace fs = std::filesystem;
using namespace ulfmrun;
using ulfm::fabric::FabricHost;

namespace {

struct Stage {
  fs::path mpiexec, libraries, programs;
};

Stage find_stage() {
  const fs::path prefix = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  Stage stage{prefix / "bin/mpiexec", prefix / "lib", prefix / "bin"};
  for (const auto& needed : {stage.mpiexec, stage.libraries / "libmpi.so.12"}) {
    if (access(needed.c_str(), R_OK) != 0)
      fail(kInstallation,
           fmt::format("needs {} beside it: {}; run the ulfmrun of a complete build/stage or of an installation",
                       needed.string(), std::strerror(errno)));
  }
  return stage;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string joined(const std::string& first, const std::string& rest, char separator) {
  return rest.empty() ? first : first + separator + rest;
}

/// What the ranks get, beyond what they inherit.
using Variables = std::vector<std::pair<std::string, std::string>>;

Variables rank_variables(const CommandLine& line, const ulfm::Config& settings, const Stage& stage) {
  Variables variables;
  for (const auto& setting : line.settings) variables.emplace_back(fmt::format("ULFM_{}", setting.row), setting.value);
  // Other hosts were named. A process cannot tell by itself: what it spawns may be on another host.
  if (line.elsewhere && settings.text("TRANSPORT") == "auto") {
    std::erase_if(variables, [](const auto& variable) { return variable.first == "ULFM_TRANSPORT"; });
    variables.emplace_back("ULFM_TRANSPORT", "mux");
  }
  if (const std::string& transport = settings.text("TRANSPORT");
      ulfm::fabric::is_shared_object(ulfm::fabric::name_of_transport(transport))) {
    std::erase_if(variables, [](const auto& variable) { return variable.first == "ULFM_TRANSPORT"; });
    variables.emplace_back("ULFM_TRANSPORT", transport);
  }
  // Said to have no effect, and not to be said again by the ranks.
  if (ulfm::fabric::model_of_transport(settings.text("TRANSPORT")) == nullptr && !settings.text("TOPOLOGY").empty())
    variables.emplace_back("ULFM_TOPOLOGY", "");
  variables.emplace_back("MPIR_CVAR_NEMESIS_NETMOD", "ulfm");
  if (line.survives_deaths) variables.emplace_back("MPIR_CVAR_ENABLE_FT", "1");
  // A program linked with another MPICH's libmpich.so.12 finds ours first.
  variables.emplace_back("LD_LIBRARY_PATH", joined(stage.libraries, environment("LD_LIBRARY_PATH"), ':'));
  std::string preload;
  for (const auto& program : line.programs) {
    const Inspection found = inspect(program, stage.libraries, line.elsewhere);
    if (found.preload.empty()) continue;
    std::fprintf(stderr, "ulfmrun: %s\n", found.remark.c_str());
    preload = found.preload;
  }
  // Before the MPI library: its calls are told to the clock.
  if (line.time) preload = joined(stage.libraries / "libulfm_time.so.0", preload, ':');
  if (!preload.empty()) variables.emplace_back("LD_PRELOAD", joined(preload, environment("LD_PRELOAD"), ':'));
  return variables;
}

/// The interconnect of an emulation, made and thus checked; nothing when messages go another way.
std::optional<FabricHost> make_fabric(const CommandLine& line, const ulfm::Config& settings) {
  const std::string& transport = settings.text("TRANSPORT");
  if (ulfm::fabric::model_of_transport(transport) == nullptr) return std::nullopt;
  if (line.time && !only_this_host(line))
    fail(
        kUsage,
        "--time: virtual time is kept by processes of one host; leave it out, or name no other hosts (in an allocation "
        "of several, -hosts localhost)");
  const bool is_host = line.cube != 0;
  const auto processes = static_cast<std::uint32_t>(is_host ? line.cube : line.processes);
  auto host = FabricHost::create(
      {transport, settings.text("TOPOLOGY"), processes, settings.text("FAULT"), line.time.value_or(""), {}, is_host});
  if (!host) {
    // Which of the two settings is wrong stands in the sentence, so the origin of both does.
    std::string origin = origin_prefix(settings, "TRANSPORT");
    if (const std::string other = origin_prefix(settings, "TOPOLOGY"); other != origin) origin += other;
    fail(kUsage, origin + host.error().what);
  }
  return std::move(*host);
}

/// The interconnect is there before the first process is; mpiexec, which this process becomes, holds it open for them.
/// A rank that dies while it moves the interconnect takes along what is on its way for everybody, so where deaths are
/// survived no rank moves it.
FabricHost& publish(FabricHost& host, const ulfm::Config& settings, const CommandLine& line, const Stage& stage) {
  if (auto ok = host.publish(); !ok) fail(kInstallation, ok.error().what);
  // A host ends its nodes as it likes, also in the middle of something.
  if (settings.text("ENGINE") == "process" || ((line.survives_deaths || line.cube != 0) && !line.time))
    if (auto ok = ulfm::fabric::start_engine_process(host, stage.programs); !ok) fail(kInstallation, ok.error().what);
  // The mapping and the descriptor go on to mpiexec.
  static FabricHost kept = std::move(host);
  return kept;
}

/// For processes on other hosts: how they get to the interconnect.
void open_door(const FabricHost& host, const ulfm::Config& settings, const Stage& stage) {
  std::vector<std::pair<std::string, std::string>> own;
  for (const char* row : {"INTERFACE", "PORTS", "CONGESTION", "GIVE_UP"})
    if (settings.origin(row) != ulfm::Origin::default_value)
      own.emplace_back(fmt::format("ULFM_{}", row), settings.text(row));
  const auto door = ulfm::proxy::start_door(host.arena(), stage.programs, own);
  if (!door) fail(kInstallation, door.error().what);
  setenv("ULFM_FABRIC_DOOR", encode(*door).c_str(), 1);
}

/// mpiexec's command, or that of a host. Variables go in as -genv, not in mpiexec's own environment: -genvnone and
/// -genvlist must not take them away, remote hosts must get them, and mpiexec and its launcher must not be touched by
/// them.
std::vector<std::string> command_of(const CommandLine& line, const Stage& stage, const Variables& variables) {
  if (line.cube != 0) return line.arguments;  // and the variables are in this process's environment
  std::vector<std::string> command = {stage.mpiexec};
  for (const auto& [name, value] : variables) command.insert(command.end(), {"-genv", name, value});
  if (line.survives_deaths) command.emplace_back("-disable-auto-cleanup");
  std::vector<std::string> arguments = line.arguments;
  for (const std::size_t i : line.library_paths) arguments[i] = joined(stage.libraries, arguments[i], ':');
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::string quoted(const std::string& word) {
  static constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return fmt::format("{}'", text);
}

int print(const std::string& text) { return tools::print("ulfmrun", text); }

int print(const std::vector<std::string>& command, const Variables& variables) {
  for (const auto& [name, value] : variables) std::printf("%s=%s\n", name.c_str(), quoted(value).c_str());
  std::string text;
  for (const auto& word : command) text += (text.empty() ? "" : " ") + quoted(word);
  return print(fmt::format("{}\n", text));
}

/// What processes of this job show each other before they talk between hosts. It goes by the environment, which Hydra
/// hands on to its proxies, and not on a command line, which everybody can read. Jobs that connect to each other need
/// the same: that is the one of the user.
void make_job_key() {
  if (std::getenv("ULFM_JOB_KEY") == nullptr) setenv("ULFM_JOB_KEY", key_of_user().c_str(), 0);
}

/// The table of waits, which this process holds open for the ranks, also as mpiexec. Without one they report by
/// themselves, as where some are on other hosts and could not write into it.
void make_stall_board(const CommandLine& line) {
  unsetenv("ULFM_STALL_BOARD");
  if (line.processes <= 0 || !only_this_host(line)) return;
  auto board = ulfm::StallBoard::create(line.processes);
  if (board) setenv("ULFM_STALL_BOARD", board->place().c_str(), 1);
}

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> argv = ulfm::argv_of(command);
  execvp(argv[0], argv.data());
  fail(kInstallation, fmt::format("{}: {}", command.front(), std::strerror(errno)));
}

/// What a host and the nodes that it loads find in their environment.
void prepare_host(const Variables& variables, const FabricHost* host) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  if (host == nullptr) return;
  const std::string number = fmt::format("{}", host->arena().sizes().processes - 1);
  setenv("ULFM_FABRIC_HOST", number.c_str(), 1);
  setenv("ULFM_FABRIC_RANK", number.c_str(), 1);
}

int run(const std::vector<std::string>& words) {
  const CommandLine line = parse_command_line(words);
  if (line.help) return print(help_text());
  if (line.version) return print(fmt::format("ulfmrun (ULFM) {}\n", ulfm_version()));
  const ulfm::Config settings = resolve_settings(line);
  check_settings(line, settings);
  check_time(line, settings);
  check_hosts(line);
  const Stage stage = find_stage();
  Variables variables = rank_variables(line, settings, stage);
  std::optional<FabricHost> fabric = make_fabric(line, settings);
  if (line.dry_run) return print(command_of(line, stage, variables), variables);
  check_limits(line);
  check_time_files(line);
  make_job_key();
  remove_leftovers();
  FabricHost* const host = fabric ? &publish(*fabric, settings, line, stage) : nullptr;
  if (host != nullptr && line.elsewhere && !only_this_host(line)) open_door(*host, settings, stage);
  if (line.cube == 0) make_stall_board(line);
  const bool timed = line.time && host != nullptr;
  const auto collector = Collector::for_job(line, settings);
  if (collector) variables.push_back(collector->variable());
  if (line.cube != 0) prepare_host(variables, host);
  const auto command = command_of(line, stage, variables);
  if (!timed && !collector) become(command);
  const int code = timed ? run_timed(*host, command, line.times.value_or("")) : run_child(command);
  if (collector) collector->write();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  try {
    return run({argv + 1, argv + argc});
  } catch (const Failure& failure) {
    std::fprintf(stderr, "ulfmrun: %s\n", failure.text.c_str());
    return failure.code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ulfmrun: %s\n", error.what());
    return kInstallation;
  }
}
