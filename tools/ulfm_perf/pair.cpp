#include "pair.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include <hwloc.h>

#include "base/config.hpp"
#include "look.hpp"

namespace perf {
namespace {

constexpr std::uint16_t kPort = 7;

// Two cores, one processing unit each: the first two that hwloc lists among the allowed ones, which are neighbours.
std::vector<int> pick_cores() {
  std::vector<int> picked;
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return picked;
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (hwloc_topology_load(topology) == 0) {
    for (int i = 0; i < hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) && picked.size() < 2; ++i) {
      hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, static_cast<unsigned>(i));
      const int unit = hwloc_bitmap_first(core->cpuset);
      if (unit >= 0) picked.push_back(unit);
    }
  }
  hwloc_topology_destroy(topology);
  return picked;
}

bool exchange(int channel, const void* out, void* in, std::size_t n) {
  if (send(channel, out, n, MSG_NOSIGNAL) != static_cast<ssize_t>(n)) return false;
  return recv(channel, in, n, MSG_WAITALL) == static_cast<ssize_t>(n);
}

ulfm::Result<void> open_port(Side& side, const Options& options) {
  auto port =
      side.job->open_port({.number = kPort, .slot_bytes = 0, .depth = static_cast<std::uint32_t>(options.depth)});
  if (!port) return tl::unexpected(port.error());
  side.port = std::make_unique<ulfm::Port>(std::move(*port));
  return {};
}

using Fabric = std::optional<ulfm::fabric::FabricHost>;

// An emulated interconnect has to be there before the two sides are; ulfmrun sees to it in a job.
ulfm::Result<Fabric> set_up_fabric(const Options& options) {
  const auto settings = ulfm::Config::load();
  if (!settings) return tl::unexpected(settings.error());
  const std::string& transport = settings->text("TRANSPORT");
  if (ulfm::fabric::model_of_transport(transport) == nullptr || std::getenv("ULFM_FABRIC") != nullptr) return Fabric{};
  auto host = ulfm::fabric::FabricHost::create({transport,
                                                settings->text("TOPOLOGY"),
                                                2,
                                                settings->text("FAULT"),
                                                "",
                                                {options.nodes.begin(), options.nodes.end()}});
  if (!host) return tl::unexpected(host.error());
  if (auto ok = host->publish(); !ok) return tl::unexpected(ok.error());
  return Fabric(std::move(*host));
}

ulfm::Result<Side> join_job(const Options& options) {
  Side side;
  auto job = ulfm::Job::join();
  if (!job) return tl::unexpected(job.error());
  side.job = std::make_unique<ulfm::Job>(std::move(*job));
  if (side.job->size() < 2)
    return ulfm::fail(ulfm::Errc::invalid, "a job of 1 process has nobody to measure with; start 2");
  side.number = side.job->rank();
  side.spectator = side.number > 1;
  if (!side.spectator) {
    bind_side(side.number, options);
    if (auto ok = open_port(side, options); !ok) return tl::unexpected(ok.error());
  }
  if (auto ok = side.job->barrier(); !ok) return tl::unexpected(ok.error());
  if (side.spectator) return side;
  auto peer = side.job->address(1 - side.number, kPort);
  if (!peer) return tl::unexpected(peer.error());
  side.peer = *peer;
  return side;
}

}  // namespace

void Side::barrier() {
  char mine = 'm', theirs = 0;
  if (channel >= 0 && !exchange(channel, &mine, &theirs, 1)) std::_Exit(1);  // the peer has said why
  if (channel < 0 && job) (void)job->barrier();
}

bool Side::peer_left() const {
  char byte = 0;
  return channel >= 0 && recv(channel, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

int Side::wait_for_child() {
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int Side::leave() {
  port.reset();
  job.reset();
  return wait_for_child();
}

void bind_side(int side, const Options& options) {
  (void)look_policy();
  if (!options.bound) return;
  const std::vector<int> cores = options.bind.empty() ? pick_cores() : options.bind;
  if (cores.size() < 2) return;  // one core: binding both to it would only add to the trouble
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[static_cast<std::size_t>(side)], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    std::fprintf(stderr, "ulfm_perf: cannot bind to core %d; measuring unbound\n",
                 cores[static_cast<std::size_t>(side)]);
}

ulfm::Result<Side> fork_pair() {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return ulfm::fail_errno("socketpair");
  Side side;
  side.child = fork();
  if (side.child < 0) return ulfm::fail_errno("fork");
  side.number = side.child == 0 ? 1 : 0;
  if (side.number == 1) prctl(PR_SET_PDEATHSIG, SIGKILL);  // no peer is left behind when the first is killed
  side.channel = ends[static_cast<std::size_t>(side.number)];
  close(ends[static_cast<std::size_t>(1 - side.number)]);
  return side;
}

bool is_alone() { return std::getenv("PMI_FD") == nullptr && std::getenv("PMI_PORT") == nullptr; }

ulfm::Result<Side> make_pair_of_processes(const Options& options) {
  if (!is_alone()) return join_job(options);
  auto fabric = set_up_fabric(options);
  if (!fabric) return tl::unexpected(fabric.error());
  auto made = fork_pair();
  if (!made) return made;
  Side side = std::move(*made);
  setenv("ULFM_FABRIC_RANK", side.number == 0 ? "0" : "1", 1);
  side.fabric = std::move(*fabric);
  auto job = ulfm::Job::alone();
  if (!job) return tl::unexpected(job.error());
  side.job = std::make_unique<ulfm::Job>(std::move(*job));
  bind_side(side.number, options);
  if (auto ok = open_port(side, options); !ok) return tl::unexpected(ok.error());
  std::array<char, 256> mine{}, theirs{};
  side.job->card().copy(mine.data(), mine.size() - 1);
  if (!exchange(side.channel, mine.data(), theirs.data(), mine.size()))
    return ulfm::fail(ulfm::Errc::peer_failed, "the other side could not open its port");
  auto peer = side.job->address_of_card(theirs.data(), kPort);
  if (!peer) return tl::unexpected(peer.error());
  side.peer = *peer;
  return side;
}

}  // namespace perf
