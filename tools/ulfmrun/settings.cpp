#include "settings.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fmt/core.h>

#include "base/counted.hpp"
#include "base/fault_plan.hpp"
#include "base/segment.hpp"
#include "fabric/models.hpp"
#include "failure.hpp"
#include "hosts.hpp"
#include "transport/hosts/settings.hpp"
#include "transport/registry.hpp"

extern char** environ;

namespace ulfmrun {
namespace {

using ulfm::TransportDescriptor;

std::vector<std::string> known() {
  std::vector<std::string> names = {"auto"};
  for (const TransportDescriptor* transport : ulfm::transports()) names.emplace_back(transport->name);
  return names;
}

std::string name_of(const std::string& spec) { return spec.substr(0, spec.find(',')); }

/// How the user wrote it: "--transport", "ULFM_TRANSPORT", or a line of the file.
std::string origin_of(const ulfm::Config& settings, const char* row) {
  return settings.origin(row) == ulfm::Origin::environment ? fmt::format("ULFM_{}", row) : settings.where(row);
}

/// The transport that will be used, "auto" resolved: with other hosts it is mux (rank_variables() in main.cpp).
const TransportDescriptor& check_transport(const ulfm::Config& settings, bool elsewhere) {
  const std::string& named = settings.text("TRANSPORT");
  const std::string spec = elsewhere && named == "auto" ? "mux" : named;
  const std::string origin = origin_of(settings, "TRANSPORT");
  for (std::size_t at = spec.find(','); at != std::string::npos;) {
    const std::size_t end = spec.find(',', at + 1);
    const std::string setting = spec.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (const std::size_t equals = setting.find('='); equals == 0 || equals == std::string::npos)
      fail(kUsage, fmt::format("{}: after the transport's name, option=value is needed; found \"{}\" in \"{}\"", origin,
                               setting, spec));
    at = end;
  }
  const auto found = ulfm::select_transport(spec);
  if (found) return **found;
  // The sentence about a wrong name has the list already, and a file is not chosen from one.
  const bool needs_list = found.error().code != ulfm::Errc::not_found && !ulfm::fabric::is_shared_object(name_of(spec));
  fail(kUsage, fmt::format("{}: {}{}", origin, found.error().what,
                           needs_list ? fmt::format("; choose among: {}", transport_list()) : ""));
}

/// "add --transport with one of: ...": those that have what is needed.
std::string remedy(bool TransportDescriptor::*needed) {
  std::string list;
  for (const TransportDescriptor* transport : ulfm::transports())
    if (transport->*needed) list += (list.empty() ? "" : ", ") + std::string(transport->name);
  return fmt::format("add --transport with one of: {}", list);
}

/// The nodes of a cube reach an interconnect without a proxy, so they have it on one host only.
void check_reach(const ulfm::Config& settings, const TransportDescriptor& transport) {
  if (settings.text("TRANSPORT") == "auto" || transport.multi_host) return;
  fail(kUsage, fmt::format("{}: transport {} is for a cube on one host; leave out -hosts, or {}",
                           origin_of(settings, "TRANSPORT"), transport.name, remedy(&TransportDescriptor::multi_host)));
}

/// A setting that only an emulated interconnect has was given without one.
void only_emulated(const ulfm::Config& settings, const char* row, const TransportDescriptor& transport) {
  const std::string sentence = fmt::format("{}: transport {} has no {}; {}", origin_of(settings, row), transport.name,
                                           std::strcmp(row, "TOPOLOGY") == 0 ? "topology" : "emulated nodes",
                                           remedy(&TransportDescriptor::links));
  if (settings.origin(row) == ulfm::Origin::command_line) fail(kUsage, sentence);
  std::fprintf(stderr, "ulfmrun: %s; the setting has no effect on this job\n", sentence.c_str());
}

void check_fault(const ulfm::Config& settings, const TransportDescriptor& transport) {
  const auto plan = ulfm::parse_fault_plan(settings.text("FAULT"));
  if (!plan) fail(kUsage, fmt::format("{}: {}", origin_of(settings, "FAULT"), plan.error().what));
  if (settings.text("FAULT").find_first_not_of(",; \t") == std::string::npos)
    fail(kUsage, fmt::format("{}: needs a fault such as drop=1e-3; found \"{}\"", origin_of(settings, "FAULT"),
                             settings.text("FAULT")));
  if (!plan->events.empty() && !transport.link_faults)
    fail(kUsage, fmt::format("{}: transport {} has no links, switches and nodes that could fail at a moment; {}",
                             origin_of(settings, "FAULT"), transport.name, remedy(&TransportDescriptor::link_faults)));
}

/// The file is written when the job ends, which is late to find out that it cannot be.
void check_result_file(const ulfm::Config& settings, const char* row) {
  const std::filesystem::path file = settings.text(row);
  const std::string origin = fmt::format("{} {}", origin_of(settings, row), file.string());
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (std::filesystem::is_directory(status))
    fail(kUsage, fmt::format("{}: is a folder; the name of a file in a folder is needed, for example {}", origin,
                             (file / (std::strcmp(row, "TRACE") == 0 ? "trace.json" : "counters")).string()));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail(kUsage, fmt::format("{}: is no ordinary file; name a file that may be written anew", origin));
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    fail(kUsage, fmt::format("{}: {}: {}; a folder that can be written is needed", origin, folder.string(),
                             std::strerror(errno)));
}

void check_two_files(const ulfm::Config& settings) {
  const std::string &trace = settings.text("TRACE"), &counters = settings.text("STATS_FILE");
  std::error_code error;
  const bool same =
      !trace.empty() && !counters.empty() &&
      std::filesystem::weakly_canonical(trace, error) == std::filesystem::weakly_canonical(counters, error);
  if (same && !error)
    fail(kUsage, fmt::format("{} and {}: both are {}; name two files", origin_of(settings, "TRACE"),
                             origin_of(settings, "STATS_FILE"), trace));
}

void check_config_file(const std::string& file, const char* origin) {
  struct stat info {};
  if (stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    fail(kUsage, fmt::format("{} {}: is a folder; a readable TOML file is needed", origin, file));
  if (access(file.c_str(), R_OK) != 0)
    fail(kUsage, fmt::format("{} {}: {}; a readable TOML file is needed", origin, file, std::strerror(errno)));
}

/// The shared object of a model, with its whole path: ranks may have another working folder. One that is not there
/// stays as it is, for check_transport() to refuse.
void locate_shared_object(ulfm::Config& settings) {
  const std::string spec = settings.text("TRANSPORT"), name = name_of(spec);
  if (!ulfm::fabric::is_shared_object(name)) return;
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(name, error);
  if (error) return;
  (void)settings.set("TRANSPORT", whole.string() + spec.substr(name.size()), settings.origin("TRANSPORT"),
                     settings.where("TRANSPORT"));
}

/// Processes and threads that this user has now; 0 when /proc does not tell.
std::size_t processes_of_user() {
  std::size_t count = 0;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return 0;
  while (const dirent* entry = readdir(proc)) {
    if (!std::isdigit(static_cast<unsigned char>(entry->d_name[0]))) continue;
    struct stat info {};
    const std::string tasks = fmt::format("/proc/{}/task", entry->d_name);
    if (stat(tasks.c_str(), &info) == 0 && info.st_uid == getuid()) count += info.st_nlink > 2 ? info.st_nlink - 2 : 1;
  }
  closedir(proc);
  return count;
}

/// Descriptors that the launcher's proxy needs for one rank: three streams, the PMI connection, and room.
constexpr rlim_t kDescriptorsPerRank = 5;
constexpr rlim_t kDescriptorsBesides = 64;
constexpr rlim_t kLeastStack = 128 * 1024;

}  // namespace

std::string transport_list() {
  std::string list;
  for (const auto& name : known()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string origin_prefix(const ulfm::Config& settings, const char* row) {
  return settings.origin(row) == ulfm::Origin::command_line || settings.origin(row) == ulfm::Origin::default_value
             ? ""
             : fmt::format("{}: ", origin_of(settings, row));
}

/// The ranks would get the one, and this program would go by the other.
void refuse_two_values(const CommandLine& line) {
  for (const ulfm::CommandLineSetting& passed : line.passed_on)
    for (const ulfm::CommandLineSetting& option : line.settings)
      if (passed.row == option.row && passed.value != option.value)
        fail(kUsage, fmt::format("{} \"{}\" and {} \"{}\" are two values of one setting; leave one of them out",
                                 option.where, option.value, passed.where, passed.value));
}

ulfm::Config resolve_settings(const CommandLine& line) {
  refuse_two_values(line);
  std::string file = line.config;
  if (!file.empty()) check_config_file(file, "--config");
  if (const char* named = std::getenv("ULFM_CONFIG"); file.empty() && named != nullptr && *named != '\0') {
    file = named;
    check_config_file(file, "ULFM_CONFIG");
  }
  std::vector<ulfm::CommandLineSetting> settings = line.settings;
  settings.insert(settings.end(), line.passed_on.begin(), line.passed_on.end());
  auto resolved = ulfm::Config::resolve(file, environ, settings);
  if (!resolved) fail(kUsage, resolved.error().what);
  locate_shared_object(*resolved);
  return std::move(*resolved);
}

void check_settings(const CommandLine& line, const ulfm::Config& settings) {
  const TransportDescriptor& transport = check_transport(settings, line.elsewhere && line.cube == 0);
  if (line.cube != 0 && line.elsewhere) check_reach(settings, transport);
  if (!transport.links) {
    for (const char* row : {"TOPOLOGY", "SHARE", "ENGINE"})
      if (settings.origin(row) != ulfm::Origin::default_value && !settings.text(row).empty())
        only_emulated(settings, row, transport);
  }
  if (!settings.text("FAULT").empty()) check_fault(settings, transport);
  if (const auto ports = ulfm::hosts::parse_ports(settings.text("PORTS")); !ports) fail(kUsage, ports.error().what);
  for (const char* row : {"TRACE", "STATS_FILE"})
    if (!settings.text(row).empty()) check_result_file(settings, row);
  check_two_files(settings);
}

void check_limits(const CommandLine& line) {
  const auto ranks = static_cast<rlim_t>(line.processes);
  rlimit limit{};
  const bool here = only_this_host(line);
  if (here && geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const std::size_t now = processes_of_user();
    if (now + ranks + 1 > limit.rlim_cur)
      fail(kUsage, fmt::format("-n {} needs {}, but the limit is {} and {} are running; start fewer, or "
                               "raise it (ulimit -u)",
                               ranks, ulfm::counted(ranks + 1, "more process", "more processes"), limit.rlim_cur, now));
  }
  // Below that mpiexec's proxies die of it before they can say so. A host is started without them.
  if (line.cube == 0 && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kLeastStack)
    fail(kUsage, fmt::format("mpiexec and its proxies need stacks of {}, but the limit is {}; raise it (ulimit -s)",
                             ulfm::human_bytes(kLeastStack), ulfm::human_bytes(limit.rlim_cur)));
  if (!here || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t needed = ranks * kDescriptorsPerRank + kDescriptorsBesides;
  if (limit.rlim_max != RLIM_INFINITY && needed > limit.rlim_max)
    fail(kUsage, fmt::format("-n {} needs {} file descriptors in the launcher, but the hard limit is {}; start fewer, "
                             "or raise it (ulimit -Hn)",
                             ranks, needed, limit.rlim_max));
  if (limit.rlim_cur != RLIM_INFINITY && needed > limit.rlim_cur) {
    limit.rlim_cur = needed;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace ulfmrun
