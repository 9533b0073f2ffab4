#include "hosts.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include <fmt/core.h>

#include "../common/host_list.hpp"
#include "base/argv.hpp"
#include "base/ip.hpp"
#include "failure.hpp"

namespace ulfmrun {
namespace {

/// What starts processes on other hosts: the command line goes before the environment, an executable before a kind.
bool reached_by_ssh(const CommandLine& line) {
  const auto chosen = [](const std::string& given, std::initializer_list<const char*> variables) {
    if (!given.empty()) return given;
    for (const char* name : variables)
      if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return std::string(value);
    return std::string();
  };
  const std::string program = chosen(line.launcher_exec, {"HYDRA_LAUNCHER_EXEC", "HYDRA_BOOTSTRAP_EXEC"});
  if (!program.empty()) return std::filesystem::path(program).filename() == "ssh";
  const std::string kind = chosen(line.launcher, {"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP"});
  return kind.empty() || kind == "ssh";
}

/// The output of a program, for as long as it fits; "" when it fails.
std::string output_of(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv = ulfm::argv_of(command);
  pid_t child = -1;
  const int rc = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; rc == 0 && (got = ::read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = -1;
  if (rc == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  return status == 0 ? text : "";
}

/// The user's ssh may call the host something else, or go by way of another one, which then looks the name up.
bool ssh_knows(const std::string& name) {
  const std::string settings = fmt::format("\n{}", output_of({"ssh", "-G", name}));
  for (const char* way : {"\nproxyjump ", "\nproxycommand "})
    if (settings.find(way) != settings.npos) return true;
  const std::size_t line = settings.find("\nhostname ");
  if (line == settings.npos) return false;
  const std::size_t begin = line + std::strlen("\nhostname ");
  const std::string real = settings.substr(begin, settings.find('\n', begin) - begin);
  return real != name && tools::why_unknown(real).empty();
}

void check_name(const std::string& origin, const std::string& word) {
  const std::string name = word.substr(word.rfind('@') + 1);
  if (name.empty() || name.front() == '-')
    fail(kUsage, fmt::format("{}: a host is needed, as in node1:4; found \"{}\"", origin, word));
  // An interface may follow a '%'.
  if (name.find(':') != name.npos && !ulfm::Ip::parse(name.substr(0, name.find('%'))))
    fail(kUsage,
         fmt::format("{} \"{}\": with several colons, an address of IPv6 is needed, as in fd00::1 or [fd00::1]:4",
                     origin, word));
}

void look_up(const std::string& origin, const std::string& word) {
  const std::string name = word.substr(word.rfind('@') + 1);
  const std::string why = tools::why_unknown(name);
  if (!why.empty() && !ssh_knows(name))
    fail(kUsage, fmt::format("{}: the host \"{}\" has no address here: {}; mend the name, or add it to /etc/hosts",
                             origin, name, why));
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_this_host(const std::string& host) {
  char name[256] = {};
  (void)gethostname(name, sizeof name - 1);
  const std::string own = name;
  return host == "localhost" || host == own || host == own.substr(0, own.find('.')) ||
         host == environment("SLURMD_NODENAME");
}

/// Resource managers in the order in which mpiexec looks for them, and the variable in which each gives its hosts: a
/// list, a list with a number behind each host, or the name of a file.
struct Manager {
  const char *name, *variable;
  enum { list, counted, file } form;
};
constexpr Manager kManagers[] = {
    {"slurm", "SLURM_NODELIST", Manager::list},  {"ll", "LOADL_HOSTFILE", Manager::file},
    {"lsf", "LSB_MCPU_HOSTS", Manager::counted}, {"sge", "PE_HOSTFILE", Manager::file},
    {"pbs", "PBS_NODEFILE", Manager::file},      {"cobalt", "COBALT_NODEFILE", Manager::file}};

/// Slurm's short form of several, n[1-4], is no name of a host, and so not the one of this host.
std::vector<std::string> hosts_of(const Manager& manager) {
  const std::string value = environment(manager.variable);
  std::vector<std::string> names;
  if (manager.form == Manager::counted) {
    std::istringstream words(value);
    for (std::string name, count; words >> name >> count;) names.push_back(name);
    return names;
  }
  auto hosts = manager.form == Manager::file ? tools::hosts_of_file(value) : tools::hosts_of_list(value);
  for (const tools::ListedHost& host : hosts.value_or(std::vector<tools::ListedHost>{})) names.push_back(host.name);
  return names;
}

}  // namespace

void check_hosts(const CommandLine& line) {
  if (const std::string wrong = tools::what_mpiexec_refuses_of_ports(); !wrong.empty()) fail(kUsage, wrong);
  if (line.hosts.size() > 1)
    fail(kUsage,
         fmt::format("{} after {}: hosts are named once; leave one out", line.hosts[1].option, line.hosts[0].option));
  const bool are_looked_up = reached_by_ssh(line);
  for (const auto& [option, value, is_file] : line.hosts) {
    const std::string origin = is_file ? fmt::format("{} {}", option, value) : option;
    const auto hosts = is_file ? tools::hosts_of_file(value) : tools::hosts_of_list(value);
    if (!hosts)
      fail(kUsage, fmt::format("{}: {}; a readable file with a host a line is needed", origin, std::strerror(errno)));
    if (hosts->empty()) fail(kUsage, fmt::format("{}: a host is needed, as in node1:4; found none", origin));
    if (!is_file && value.find_first_of(" \t") != value.npos)
      fail(kUsage, fmt::format("{} \"{}\": there is a blank in the list; write it without, as in node1:4,node2", option,
                               value));
    std::set<std::string> seen;
    for (const tools::ListedHost& host : *hosts) {
      if (const std::string wrong = tools::what_mpiexec_refuses(host); !wrong.empty())
        fail(kUsage, fmt::format("{}: {}", origin, wrong));
      check_name(origin, host.name);
      if (are_looked_up && seen.insert(host.name).second) look_up(origin, host.name);
    }
  }
}

void take_hosts_of_environment(CommandLine& line) {
  if (line.elsewhere || line.cube != 0) return;
  if (const std::string file = environment("HYDRA_HOST_FILE"); !file.empty()) {
    line.hosts.push_back({"HYDRA_HOST_FILE", file, true});
    line.elsewhere = true;
    line.elsewhere = !only_this_host(line);
    return;
  }
  const std::string manager = line.manager.empty() ? environment("HYDRA_RMK") : line.manager;
  const auto used = std::find_if(std::begin(kManagers), std::end(kManagers), [&](const Manager& one) {
    return manager.empty() ? !environment(one.variable).empty() : manager == one.name;
  });
  if (used == std::end(kManagers)) return;
  const auto hosts = hosts_of(*used);
  line.elsewhere = !std::all_of(hosts.begin(), hosts.end(), is_this_host);
}

bool only_this_host(const CommandLine& line) {
  if (!line.elsewhere) return true;
  const auto is_here = [&](const tools::ListedHost& host) { return is_this_host(host.name); };
  return !line.hosts.empty() && std::all_of(line.hosts.begin(), line.hosts.end(), [&](const NamedHosts& named) {
    const auto hosts = named.is_file ? tools::hosts_of_file(named.value) : tools::hosts_of_list(named.value);
    return hosts && std::all_of(hosts->begin(), hosts->end(), is_here);
  });
}

}  // namespace ulfmrun
