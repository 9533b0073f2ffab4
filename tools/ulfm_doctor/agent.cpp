#include "agent.hpp"

#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <ulfm/netmod.h>
#include <ulfm/ulfm.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/core.h>

#include "base/crc32c.hpp"
#include "fabric/models.hpp"
#include "job/liveness.hpp"
#include "socket.hpp"
#include "transport/ofi/network.hpp"
#include "transport/registry.hpp"
#include "transport/tcp/network.hpp"

namespace doctor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ulfm::tcp::TcpNetwork;

constexpr std::uint16_t kPort = 0;  // of ours, that others connect to

// 0 when it cannot be read.
std::uint32_t checksum_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(1 << 20);
  std::uint32_t sum = 0;
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    sum = ulfm::crc32c(reinterpret_cast<const std::byte*>(block.data()), static_cast<std::size_t>(in.gcount()), sum);
  return sum;
}

json limits() {
  const auto soft = [](auto what) {
    rlimit limit{};
    if (getrlimit(what, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::int64_t{-1};
    return static_cast<std::int64_t>(limit.rlim_cur);
  };
  return {{"nofile", soft(RLIMIT_NOFILE)}, {"nproc", soft(RLIMIT_NPROC)}, {"memlock", soft(RLIMIT_MEMLOCK)}};
}

class Agent {
 public:
  json answer(const json& question) {
    const std::string what = question.value("do", "");
    if (what == "facts")
      return facts(question.value("name", ""), question.value("folder", ""), question.value("others", true));
    if (what == "time") return time();
    if (what == "connect") return connect(question);
    if (what == "call") return call(question);
    return {{"error", "no such question"}};
  }

 private:
  json facts(const std::string& name, const std::string& folder, bool has_others) {
    utsname machine{};
    (void)uname(&machine);
    const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path();
    const fs::path libraries = programs.parent_path() / "lib";
    json out = {{"host", machine.nodename},
                {"machine", machine.machine},
                {"kernel", machine.release},
                {"libc", gnu_get_libc_version()},
                {"version", ulfm_version()},
                {"abi", ULFM_NM_ABI},
                {"ulfm", checksum_of(libraries / "libulfm.so.0")},
                {"mpi", checksum_of(libraries / "libmpi.so.12")},
                {"proxy", access((programs / "hydra_pmi_proxy").c_str(), X_OK) == 0},
                {"hostd", access((programs / "ulfm_hostd").c_str(), X_OK) == 0},
                {"identity", ulfm::host_identity()},
                {"limits", limits()},
                {"folder", folder.empty() || access(folder.c_str(), R_OK | X_OK) == 0}};
    std::string problem;
    out["name"] = json::array();
    for (const ulfm::Ip& ip : resolve_for_mpiexec(name, problem)) out["name"].push_back(ip.text());
    out["name_problem"] = problem;
    std::set<std::string> own;
    if (auto around = ulfm::hosts::surroundings_of_this_host())
      for (const auto& one : around->interfaces) own.insert(one.address.ip.text());
    out["addresses"] = own;
    out["secret"] = secret_;
    listen_for_calls(out);
    listen(out, has_others);
    return out;
  }

  // As mpiexec would.
  void listen_for_calls(json& out) {
    unsigned first = 0, last = 0;
    if (const char* range = std::getenv("MPIEXEC_PORT_RANGE")) (void)std::sscanf(range, "%u:%u", &first, &last);
    calls_ = std::make_unique<Echo>(static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last), secret_);
    out["calls"] = calls_->port();
  }

  // Whether a job with these settings opens libfabric here, and by which provider.
  static bool opens_libfabric(const ulfm::Config& config, json& out) {
    const std::string& asked = config.text("TRANSPORT");
    if (asked.substr(0, asked.find(',')) != "ofi" && asked.find(",provider=") == asked.npos) return true;
    auto settings = ulfm::hosts::settings_from(config);
    auto network = settings ? ulfm::ofi::OfiNetwork::create(*settings) : ulfm::fail(settings.error());
    if (network) out["provider"] = (*network)->provider();
    else out["network_problem"] = network.error().what;
    return network.has_value();
  }

  // Whether processes with these settings can talk with those of other hosts, when there are some.
  static bool reaches_hosts(const ulfm::Config& config, bool has_others, json& out) {
    const auto transport = ulfm::select_transport(config.text("TRANSPORT"));
    if (!transport) {
      out["network_problem"] = transport.error().what;
      return false;
    }
    const bool is_emulated = ulfm::fabric::model_of_transport((*transport)->name) != nullptr;
    const bool is_asked_for = config.origin("TRANSPORT") != ulfm::Origin::default_value;
    if ((*transport)->multi_host || is_emulated || !is_asked_for || !has_others) return true;
    out["network_problem"] = fmt::format("{}: transport {} carries nothing between hosts: unset it, or take mux",
                                         config.where("TRANSPORT"), (*transport)->name);
    return false;
  }

  // As a process of a job would, and an echo beside it.
  void listen(json& out, bool has_others) {
    auto config = ulfm::Config::load();
    if (config && !reaches_hosts(*config, has_others, out)) return;
    if (config && !opens_libfabric(*config, out)) return;
    if (config)  // options of another transport are not ours
      (void)config->set("TRANSPORT", std::string(TcpNetwork::kTransport), ulfm::Origin::command_line, "ulfm_doctor");
    auto settings = config ? ulfm::hosts::settings_from(*config) : ulfm::fail(config.error());
    auto network = settings ? TcpNetwork::create(*settings) : ulfm::fail(settings.error());
    auto port = network ? (*network)->open(kPort) : ulfm::fail(network.error());
    if (!port) {
      out["network_problem"] = port.error().what;
      return;
    }
    network_ = std::move(*network);
    port_ = std::move(*port);
    echo_ = std::make_unique<Echo>(settings->first_port, settings->last_port, secret_);
    out["transport"] = TcpNetwork::kTransport;
    out["card"] = ulfm::hosts::encode(TcpNetwork::kTransport, network_->self());
    out["echo"] = echo_->port();
  }

  static json time() {
    return {{"now", std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()}};
  }

  // As a process of a job connects, and what that way is like then.
  json connect(const json& question) {
    auto card = ulfm::hosts::decode(TcpNetwork::kTransport, question.value("card", ""));
    if (!card || !network_) return {{"problem", card ? "no network here" : card.error().what}};
    const auto introduction =
        ulfm::hosts::introduction(ulfm::hosts::encode(TcpNetwork::kTransport, network_->self()), {});
    // Without a port of its own, so that the other one's connection to here does not serve.
    auto connection = network_->connect(*card, kPort, ulfm::kNoPort, introduction);
    if (!connection) return {{"problem", connection.error().what}};
    const std::string why = (*connection)->why;
    const ulfm::Ip ip = (*connection)->where.ip();
    network_->retire(*connection);
    return described(SocketAddress(ip, question.value("echo", std::uint16_t{0})),
                     question.value("secret", std::uint64_t{0}), why);
  }

  // As Hydra's proxies call mpiexec: by its name.
  static json call(const json& question) {
    std::string problem;
    const auto addresses = resolve_for_mpiexec(question.value("name", ""), problem);
    json answer = {{"problem", problem}};
    for (const ulfm::Ip& ip : addresses) {
      answer = described(SocketAddress(ip, question.value("calls", std::uint16_t{0})),
                         question.value("secret", std::uint64_t{0}), "");
      if (answer.value("problem", "").empty()) break;
    }
    return answer;
  }

  static json described(const SocketAddress& where, std::uint64_t secret, const std::string& why) {
    if (where.port() == 0)
      return {{"address", where.ip().text()}, {"why", why}, {"unmeasured", "no other port of ULFM_PORTS is free"}};
    const Way way = try_way(where, secret);
    return {{"address", where.ip().text()},    {"why", why},    {"problem", way.problem}, {"interface", way.interface},
            {"round_trip", way.round_trip_us}, {"mtu", way.mtu}};
  }

  std::unique_ptr<TcpNetwork> network_;
  std::unique_ptr<ulfm::tcp::TcpPort> port_;
  const std::uint64_t secret_ = ulfm::random_token();
  std::unique_ptr<Echo> echo_, calls_;

 public:
  ~Agent() {
    if (port_) network_->close(std::move(port_));
  }
};

}  // namespace

int run_agent() {
  Agent agent;
  for (std::string line; std::getline(std::cin, line);) {
    const json question = json::parse(line, nullptr, false);
    if (!question.is_object()) return 1;
    json answer = agent.answer(question);
    answer["id"] = question.value("id", std::uint64_t{0});
    std::cout << kMark << answer.dump() << std::endl;
  }
  return 0;
}

}  // namespace doctor
