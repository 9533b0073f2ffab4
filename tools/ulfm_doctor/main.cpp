// ulfm_doctor: looks at hosts before a job runs on them.
#include <signal.h>
#include <ulfm/ulfm.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include <fmt/core.h>

#include "../common/command_line.hpp"
#include "../common/host_list.hpp"
#include "agent.hpp"
#include "base/argv.hpp"
#include "base/counted.hpp"
#include "base/standard_streams.hpp"
#include "checks.hpp"
#include "remote.hpp"
#include "socket.hpp"
#include "transport/hosts/interfaces.hpp"

namespace {

using namespace doctor;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kStart{15000}, kAnswer{15000};
constexpr std::size_t kManyWays = 30;  // then the good ones of a host are one line

struct Options {
  std::vector<std::string> hosts, lists;
  std::string hostfile, launcher, launcher_exec, local_name;
  bool quiet = false, agent = false;
};

std::string own_name() {
  char name[256] = {};
  (void)gethostname(name, sizeof name - 1);
  return name;
}

std::string without_user(const std::string& host) { return host.substr(host.find('@') + 1); }

bool is_this_host(const std::string& name) {
  const std::string host = without_user(name);
  if (host == "localhost" || host == own_name()) return true;
  const auto around = ulfm::hosts::surroundings_of_this_host();
  std::string unknown;
  const auto addresses = resolve(host, unknown);
  if (!around || addresses.empty()) return false;
  for (const auto& one : around->interfaces)
    if (one.address.ip == addresses.front()) return true;
  return false;
}

/// Each host once, whatever it was named in; nothing when the file cannot be read. `wrong`: what mpiexec would refuse.
std::optional<std::vector<std::string>> all_hosts(const Options& options, std::string& wrong) {
  std::vector<std::string> hosts;
  const auto add = [&](const std::vector<tools::ListedHost>& more) {
    for (const auto& host : more) {
      if (wrong.empty()) wrong = tools::what_mpiexec_refuses(host);
      const std::string name = host.user.empty() ? host.name : fmt::format("{}@{}", host.user, host.name);
      if (std::find(hosts.begin(), hosts.end(), name) == hosts.end()) hosts.push_back(name);
    }
  };
  for (const auto& words : {options.lists, options.hosts})
    for (const std::string& word : words) add(tools::hosts_of_list(word));
  if (options.hostfile.empty()) return hosts;
  const auto of_file = tools::hosts_of_file(options.hostfile);
  if (!of_file) return std::nullopt;
  add(*of_file);
  return hosts;
}

struct Host {
  std::unique_ptr<Remote> remote;
  json facts;
};

/// Starts the agent and says what came of it.
bool reach(Host& host, const json& about, const Launcher& launcher, Report& report) {
  const auto begun = std::chrono::steady_clock::now();
  auto facts = host.remote->ask(about, kStart);
  const std::string by = host.remote->is_local() ? "no launcher needed" : launcher.program;
  if (facts && !is_complete(*facts)) facts = ulfm::fail(ulfm::Errc::protocol, kOtherVersion);
  if (facts) {
    host.facts = std::move(*facts);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    report.add(host.remote->host(), "start", {State::ok, fmt::format("{}, {:.2f} s", by, seconds), ""});
    return true;
  }
  const std::string said = facts.error().what.empty() ? "no word why" : facts.error().what;
  Finding finding{State::failed, fmt::format("{}: {}", by, said), ""};
  if (facts.error().code == ulfm::Errc::protocol) finding.remedy = "install the same version on both hosts";
  else if (host.remote->status() == 127)
    finding.remedy = "ULFM is needed at the same path there: a shared folder, or ./dev install the same PREFIX";
  else if (said.find("resolve") != said.npos || said.find("not known") != said.npos)
    finding.remedy = "add the name to /etc/hosts here";
  else if (said.find("denied") != said.npos)
    finding.remedy =
        fmt::format("ssh without a password is needed: ssh-keygen, then ssh-copy-id {}", host.remote->host());
  else if (host.remote->has_said("IDENTIFICATION HAS CHANGED"))
    finding.remedy = fmt::format("if it is another machine now, ssh-keygen -R {}", without_user(host.remote->host()));
  else if (said.find("key verification") != said.npos)
    finding.remedy = fmt::format("log in once by hand, so that ssh knows the host: ssh {}", host.remote->host());
  else if (said.find("refused") != said.npos) finding.remedy = "no ssh server runs there: apt install openssh-server";
  else
    finding.remedy = fmt::format("does \"{} {} echo hello\" print hello? ~/.bashrc there may end the shell before",
                                 launcher.program, host.remote->host());
  report.add(host.remote->host(), "start", finding);
  return false;
}

void check_clock_of(Host& host, Report& report) {
  double best = 1e9, difference = 0;
  for (int i = 0; i < 3; ++i) {
    const auto now = [] {
      return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    };
    const double before = now();
    auto answer = host.remote->ask({{"do", "time"}}, kAnswer);
    const double after = now();
    if (!answer || after - before >= best) continue;
    best = after - before;
    difference = answer->value("now", 0.0) - (before + after) / 2;
  }
  report.add(host.remote->host(), "clock", check_clock(difference, best / 2));
}

json question_about(const Host& to) {
  return {{"do", "connect"},
          {"card", to.facts.value("card", "")},
          {"echo", to.facts.value("echo", 0)},
          {"secret", to.facts.value("secret", std::uint64_t{0})}};
}

using Ways = std::vector<std::vector<json>>;

// All hosts at once, each one way after the other.
Ways try_ways(std::vector<Host>& hosts) {
  Ways ways(hosts.size(), std::vector<json>(hosts.size()));
  std::vector<std::thread> threads;
  for (std::size_t from = 0; from < hosts.size(); ++from)
    threads.emplace_back([&, from] {
      for (std::size_t step = 1; step < hosts.size(); ++step) {  // not all come to the same one at once
        const std::size_t to = (from + step) % hosts.size();
        if (!hosts[to].facts.contains("card") || !hosts[from].facts.contains("card")) continue;
        auto way = hosts[from].remote->ask(question_about(hosts[to]), kAnswer);
        ways[from][to] = way ? std::move(*way) : json{{"problem", way.error().what}};
      }
    });
  for (std::thread& one : threads) one.join();
  return ways;
}

void report_ways(const std::vector<Host>& hosts, const Ways& ways, Report& report) {
  const bool many = hosts.size() * (hosts.size() - 1) > kManyWays;
  for (std::size_t from = 0; from < hosts.size(); ++from) {
    std::size_t good = 0;
    for (std::size_t to = 0; to < hosts.size(); ++to) {
      if (ways[from][to].is_null()) continue;
      const json& back = ways[to][from];
      const int mtu_back = back.is_object() && from < to ? back.value("mtu", 0) : 0;
      const Finding finding = check_way(ways[from][to], mtu_back);
      if (many && finding.state == State::ok) ++good;
      else report.add(fmt::format("{} > {}", hosts[from].remote->host(), hosts[to].remote->host()), "data", finding);
    }
    if (good != 0)
      report.add(hosts[from].remote->host(), "data",
                 {State::ok, fmt::format("to {}", ulfm::counted(good, "host")), ""});
  }
}

int examine(const std::vector<std::string>& names, const Options& options, const Launcher& launcher) {
  Report report(options.quiet);
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error),
                    caller = options.local_name.empty() ? own_name() : options.local_name;
  if (error) {
    std::fprintf(stderr, "ulfm_doctor: the current folder has no path: %s; change to one that exists\n",
                 error.message().c_str());
    return tools::kUsage;
  }
  std::vector<Host> hosts;
  // mpiexec runs here, so this host takes part whether it was named or not.
  const auto local = std::find_if(names.begin(), names.end(), is_this_host);
  hosts.push_back({std::make_unique<Remote>(local == names.end() ? own_name() : *local, true, launcher), {}});
  for (const std::string& name : names)
    if (local == names.end() || name != *local)
      hosts.push_back({std::make_unique<Remote>(name, is_this_host(name), launcher), {}});
  const std::size_t asked = hosts.size();
  const json about = {{"do", "facts"}, {"name", caller}, {"folder", folder}, {"others", asked > 1}};
  for (auto host = hosts.begin(); host != hosts.end();) {
    if (reach(*host, about, launcher, report)) ++host;
    else if (host == hosts.begin()) return report.conclude(asked);
    else host = hosts.erase(host);
  }
  const json here = hosts.front().facts;
  const bool listens = here.value("calls", 0) != 0;
  if (!listens)
    report.add(hosts.front().remote->host(), "mpiexec",
               {State::failed, "no port of MPIEXEC_PORT_RANGE is free here", "mpiexec needs some: widen the range"});
  for (Host& host : hosts) {
    const std::string& name = host.remote->host();
    report.add(name, "version", check_version(here, host.facts));
    report.add(name, "network", check_network(host.facts));
    report.add(name, "limits", check_limits(host.facts));
    if (host.remote->is_local()) continue;
    report.add(name, "name", check_name(name, here, host.facts));
    report.add(name, "folder", check_folder(folder, host.facts));
    check_clock_of(host, report);
    if (!listens) continue;
    const auto called = host.remote->ask({{"do", "call"},
                                          {"name", caller},
                                          {"calls", here.value("calls", 0)},
                                          {"secret", here.value("secret", std::uint64_t{0})}},
                                         kAnswer);
    report.add(name, "mpiexec", check_way(called ? *called : json{{"problem", called.error().what}}, 0));
  }
  report_ways(hosts, try_ways(hosts), report);
  return report.conclude(asked);
}

Launcher launcher_of(const Options& options, std::string& wrong) {
  const auto variable = [](const char* name) {
    return std::string(std::getenv(name) == nullptr ? "" : std::getenv(name));
  };
  Launcher launcher;
  const std::string kind = options.launcher.empty() ? variable("HYDRA_LAUNCHER") : options.launcher;
  if (!kind.empty()) launcher = {kind, kind == "ssh"};
  if (!kind.empty() && kind != "ssh" && kind != "rsh")
    wrong = fmt::format("{}: hosts are reached by ssh or rsh; found \"{}\"",
                        options.launcher.empty() ? "HYDRA_LAUNCHER" : "--launcher", kind);
  const std::string program = options.launcher_exec.empty() ? variable("HYDRA_LAUNCHER_EXEC") : options.launcher_exec;
  if (!program.empty()) launcher = {program, std::filesystem::path(program).filename() == "ssh"};
  return launcher;
}

// mpiexec's long options have one dash; so they may here.
std::vector<std::string> with_two_dashes(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::string& word : words)
    for (const char* one : {"-hosts", "-hostfile", "-launcher", "-launcher-exec", "-localhost"})
      if (word == one || word.starts_with(fmt::format("{}=", one))) {
        word.insert(0, "-");
        break;
      }
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  signal(SIGPIPE, SIG_IGN);  // an agent may end while it is asked
  // What goes to other hosts goes by command lines, which everybody can read. The agents agree without the key.
  for (const char* of_job : {"ULFM_JOB_KEY", "ULFM_FABRIC", "ULFM_FABRIC_DOOR", "ULFM_RECORD", "ULFM_STALL_BOARD"})
    unsetenv(of_job);
  Options options;
  CLI::App app{"Looks at hosts before a job runs on them: a line for each finding, and what may help", "ulfm_doctor"};
  app.set_version_flag("--version", fmt::format("ulfm_doctor {}", ulfm_version()));
  app.add_option("HOST", options.hosts, "hosts that a job is to run on, besides this one");
  app.add_option("--hosts", options.lists, "the same as a list, as for mpiexec: node1,node2");
  app.add_option("-f,--hostfile", options.hostfile, "the same as lines of a file, as for mpiexec");
  app.add_option("--launcher", options.launcher,
                 "what starts processes on other hosts: ssh (default) or rsh, as for mpiexec");
  app.add_option("--launcher-exec", options.launcher_exec, "its program, as for mpiexec");
  app.add_option("--localhost", options.local_name, "name or address of this host for the others, as for mpiexec");
  app.add_flag("-q,--quiet", options.quiet, "only what is not as it should be");
  app.add_flag("--agent", options.agent)->group("");
  app.footer(
      "Example: ulfm_doctor node1 node2\n"
      "Exit code: 0 when a job can run, 1 when something failed, 2 for a wrong command line.\n"
      "Manual: ulfm_doctor(1).");
  std::vector<std::string> words = with_two_dashes(argc, argv);
  std::vector<char*> pointers = ulfm::argv_of(words);
  if (const auto code = tools::parse(app, argc, pointers.data())) return *code;
  if (options.agent) return run_agent();
  std::string wrong;
  const auto hosts = all_hosts(options, wrong);
  if (wrong.empty()) wrong = tools::what_mpiexec_refuses_of_ports();
  const Launcher launcher = launcher_of(options, wrong);
  if (!wrong.empty()) return tools::complain(app, wrong);
  if (!hosts) return tools::complain(app, fmt::format("the hostfile {} cannot be read", options.hostfile));
  if (hosts->empty()) return tools::complain(app, "a host is needed, as in: ulfm_doctor node1 node2");
  return examine(*hosts, options, launcher);
}
