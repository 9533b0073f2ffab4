#include "checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include <fmt/core.h>

#include "base/counted.hpp"
#include "base/ip.hpp"

namespace doctor {
namespace {

using nlohmann::json;

constexpr std::int64_t kFewFiles = 1024, kFewProcesses = 512;
constexpr const char* kLimits[] = {"nofile", "nproc", "memlock"};
constexpr double kClocksApart = 1.0;  // second: make and shared folders go by the dates of files

bool is_loopback(const std::string& address) {
  const auto ip = ulfm::Ip::parse(address);
  return ip && ip->is_loopback();
}

bool is_list_of_texts(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const json& one) { return one.is_string(); });
}

std::string amount(std::int64_t number, const char* one, const char* many) {
  return number < 0 ? fmt::format("any number of {}", many)
                    : ulfm::counted(static_cast<std::uint64_t>(number), one, many);
}

}  // namespace

bool is_complete(const json& facts) {
  const auto has_all = [&facts](std::initializer_list<const char*> names, bool (json::*is_kind)() const noexcept) {
    return std::all_of(names.begin(), names.end(),
                       [&](const char* name) { return facts.contains(name) && (facts[name].*is_kind)(); });
  };
  const bool can_carry = has_all({"network_problem"}, &json::is_string) || has_all({"transport"}, &json::is_string);
  return can_carry && has_all({"host", "machine", "libc", "version", "name_problem"}, &json::is_string) &&
         has_all({"abi", "ulfm", "mpi", "identity"}, &json::is_number_integer) &&
         has_all({"folder", "proxy", "hostd"}, &json::is_boolean) &&
         (!facts.contains("provider") || facts["provider"].is_string()) && has_all({"limits"}, &json::is_object) &&
         has_all({"name", "addresses"}, &json::is_array) && is_list_of_texts(facts["name"]) &&
         is_list_of_texts(facts["addresses"]) &&
         std::all_of(std::begin(kLimits), std::end(kLimits), [&facts](const char* one) {
           return facts["limits"].contains(one) && facts["limits"][one].is_number_integer();
         });
}

Finding check_version(const json& here, const json& there) {
  const std::string version = there["version"];
  std::string found = fmt::format("ULFM {}, ABI {}, libc {}, {}", version, there["abi"].get<int>(),
                                  there["libc"].get<std::string>(), there["machine"].get<std::string>());
  if (there["machine"] != here["machine"])
    return {State::failed, fmt::format("{}; here it is {}", found, here["machine"].get<std::string>()),
            "processes of a job need the same kind of machine"};
  if (version != here["version"] || there["abi"] != here["abi"])
    return {State::failed,
            fmt::format("{}; here it is {}, ABI {}", found, here["version"].get<std::string>(), here["abi"].get<int>()),
            "install the same version on both hosts"};
  // What this host has not either may lie elsewhere.
  for (const auto& [fact, library] : {std::pair("ulfm", "libulfm.so.0"), std::pair("mpi", "libmpi.so.12")})
    if (there[fact] == 0 && here[fact] != 0)
      return {State::failed, fmt::format("{}; there is no lib/{}, or it cannot be read", found, library),
              "copy the whole installation"};
  if (!there["proxy"] && here["proxy"])
    return {State::failed, fmt::format("{}; there is no bin/hydra_pmi_proxy that can be run", found),
            "mpiexec starts processes by it: copy the whole installation"};
  if (!there["hostd"] && here["hostd"])
    return {State::warning, fmt::format("{}; there is no bin/ulfm_hostd that can be run", found),
            "processes reach an emulated interconnect on another host by it: copy the whole installation"};
  if (there["mpi"] == 0)
    return {State::warning, fmt::format("{}; there is no lib/libmpi.so.12 beside it", found), "./dev setup builds MPI"};
  if (there["ulfm"] != here["ulfm"] || there["mpi"] != here["mpi"])
    return {State::warning, fmt::format("{}; its libraries are not the same files as here", found),
            "copy the installation, or build both from the same sources"};
  if (there["libc"] != here["libc"])
    return {State::warning, fmt::format("{}; here libc is {}", found, here["libc"].get<std::string>()),
            "programs must be built on the host with the older one"};
  return {State::ok, found, ""};
}

Finding check_name(const std::string& host, const json& here, const json& there) {
  const std::string own = here["host"];
  if (there["identity"] == here["identity"]) return {State::ok, fmt::format("this host, {}", own), ""};
  const auto addresses = there["name"].get<std::vector<std::string>>();
  if (addresses.empty())
    return {State::failed,
            fmt::format("{} knows no address of {} ({})", host, own, there["name_problem"].get<std::string>()),
            "mpiexec is called by it: add it to /etc/hosts there, or start with ulfmrun -localhost ADDRESS"};
  const auto ours = here["addresses"].get<std::vector<std::string>>();
  const std::string found = fmt::format("{} is {} there", own, addresses.front());
  if (std::find(ours.begin(), ours.end(), addresses.front()) == ours.end() || is_loopback(addresses.front()))
    return {State::failed, fmt::format("{}, and that is not this host", found),
            "correct /etc/hosts there, or start with ulfmrun -localhost ADDRESS"};
  return {State::ok, found, ""};
}

Finding check_network(const json& there) {
  if (there.contains("network_problem")) return {State::failed, there["network_problem"].get<std::string>(), ""};
  std::string list;
  for (const auto& one : there["addresses"])
    if (!is_loopback(one.get<std::string>())) list += (list.empty() ? "" : ", ") + one.get<std::string>();
  const std::string transport = there.contains("provider")
                                    ? fmt::format("ofi by {}", there["provider"].get<std::string>())
                                    : there["transport"].get<std::string>();
  return {State::ok, fmt::format("transport {}; addresses {}", transport, list), ""};
}

Finding check_limits(const json& there) {
  const std::int64_t files = there["limits"]["nofile"], processes = there["limits"]["nproc"],
                     locked = there["limits"]["memlock"];
  const std::string found = fmt::format("{}, {}, {} locked memory", amount(files, "open file", "open files"),
                                        amount(processes, "process", "processes"),
                                        locked < 0 ? "any" : fmt::format("{} KB of", locked / 1024));
  if (files >= 0 && files < kFewFiles)
    return {State::warning, found,
            "connections to other hosts take files, two to a peer by ofi and one to a pair of ports by tcp: raise "
            "nofile in /etc/security/limits.conf"};
  if (processes >= 0 && processes < kFewProcesses)
    return {State::warning, found, "a process has up to three threads: raise nproc in /etc/security/limits.conf"};
  return {State::ok, found, ""};
}

Finding check_folder(const std::string& folder, const json& there) {
  if (there["folder"].get<bool>()) return {State::ok, folder, ""};
  return {State::failed, fmt::format("{} is not there, or cannot be entered", folder),
          "processes start in the folder that mpiexec is called in: share it (NFS), make it there, or call mpiexec and "
          "this in one that all have; -wdir FOLDER names another one"};
}

Finding check_clock(double difference, double within) {
  const std::string found = std::abs(difference) <= within
                                ? fmt::format("the same, within {:.1f} ms", 1e3 * within)
                                : fmt::format("{:+.1f} ms (within {:.1f} ms)", 1e3 * difference, 1e3 * within);
  if (std::abs(difference) - within > kClocksApart)
    return {State::warning, found, "MPI does not mind, dates of files and of logs do: set them by NTP (chrony)"};
  return {State::ok, found, ""};
}

Finding check_way(const json& way, int mtu_back) {
  const std::string problem = way.value("problem", ""), address = way.value("address", ""), why = way.value("why", "");
  if (address.empty()) return {State::failed, problem, ""};
  std::string found = address + (why.empty() ? "" : fmt::format(" ({})", why));
  if (!problem.empty()) {
    const bool refused = problem.find("efused") != problem.npos, silent = problem.find("no answer") != problem.npos;
    return {State::failed, fmt::format("{}: {}", found, problem),
            silent    ? "a firewall? let ULFM_PORTS and MPIEXEC_PORT_RANGE through, both ways"
            : refused ? "that address leads to another host, or a firewall rejects it"
                      : "name the network by ULFM_INTERFACE"};
  }
  if (!way.contains("mtu"))
    return {State::ok, fmt::format("{}; not measured: {}", found, way.value("unmeasured", "")), ""};
  const int mtu = way["mtu"];
  found += fmt::format(": round trip {:.0f} us, MTU {} by {}", way["round_trip"].get<double>(), mtu,
                       way.value("interface", ""));
  if (mtu_back != 0 && mtu != mtu_back)
    return {State::warning, fmt::format("{}, and {} the other way", found, mtu_back),
            "set the same MTU on both interfaces and on the switch between them"};
  return {State::ok, found, ""};
}

}  // namespace doctor
