#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "calls.hpp"
#include "checks.hpp"
#include "timed.hpp"

extern "C" long msginfo[8];

namespace nx2::calls {
namespace {

std::chrono::nanoseconds since_start() {
  const Node& node = Node::instance();
  if (is_timed()) return std::chrono::nanoseconds(ulfm_time_now());  // since the job began
  return std::chrono::steady_clock::now() - node.started_at;
}

}  // namespace

Outcome infotype() { return {msginfo[0], 0}; }
Outcome infocount() { return {msginfo[1], 0}; }
Outcome infonode() { return {msginfo[2], 0}; }
Outcome infnode() { return infonode(); }
Outcome infoptype() { return {msginfo[3], 0}; }
Outcome infopid() { return infoptype(); }

Outcome mynode() {
  const Node& node = Node::instance();
  return {node.self(), 0};
}
Outcome numnodes() { return {Node::instance().nodes(), 0}; }
Outcome myhost() { return {Node::instance().host_place(), 0}; }
Outcome myptype() { return {Node::instance().engine()->ptype, 0}; }
Outcome mypid() { return myptype(); }

// The dimension of the smallest cube that has that many nodes.
Outcome nodedim() { return {std::bit_width(static_cast<unsigned>(Node::instance().nodes() - 1)), 0}; }

Outcome gray(Number n) {
  const auto bits = static_cast<std::uint32_t>(n);
  return {static_cast<std::int32_t>(bits ^ bits >> 1), 0};
}

Outcome ginv(Number n) {
  auto bits = static_cast<std::uint32_t>(n);
  for (int shift = 1; shift < 32; shift *= 2) bits ^= bits >> shift;
  return {static_cast<std::int32_t>(bits), 0};
}

Outcome setpid(Number pid) {
  Node::host();
  Call call;
  if (pid < 0) return failed(EQPID);
  if (call.node().is_host() && call.engine().ptype != kNoPtype && call.engine().ptype != pid) return failed(EQSET);
  call.engine().ptype = pid;
  return {};
}

Outcome setptype(Number ptype) {
  Call call;
  if (ptype < 0) return failed(EQPID);
  call.engine().ptype = ptype;
  return {};
}

Outcome masktrap(Number state) {
  Call call;
  if (state != 0 && state != 1) return failed(EQPARAM);
  const bool before = call.engine().handlers_blocked;
  call.engine().handlers_blocked = state == 1;
  call.engine().run_handlers();
  return {before ? 1 : 0, 0};
}

// ---- time
// -----------------------------------------------------------------------------------------------------------

unsigned long mclock() {
  return static_cast<unsigned long>(std::chrono::duration_cast<std::chrono::milliseconds>(since_start()).count());
}

double dclock() { return std::chrono::duration<double>(since_start()).count(); }

// 10 MHz; low half first.
Outcome hwclock(void* time) {
  if (time == nullptr) return failed(EQPBUF);
  const auto ticks = static_cast<std::uint64_t>(since_start().count()) / 100;
  const std::uint32_t halves[2] = {static_cast<std::uint32_t>(ticks), static_cast<std::uint32_t>(ticks >> 32)};
  std::memcpy(time, halves, sizeof halves);
  return {};
}

// ---- others
// ---------------------------------------------------------------------------------------------------------

// Gives the core to others for a moment.
Outcome flick() {
  Call call;
  call.engine().step(0);
  return {};
}

// There is no light to turn on.
Outcome led(Number) { return {}; }

// From a node: the whole job ends, whichever node is named. Nodes that are in a call end well; the launcher
// ends the others, because this one then ends badly.
Outcome killcube(Number node, Number pid) {
  Node::host();
  Call call;
  if (call.node().is_host()) {
    if (node >= call.node().nodes()) return failed(EQNODE);
    call.node().kill_nodes(node < 0 ? -1 : node, pid);
    return {};
  }
  if (call.engine().moved() == 0 && !call.node().cube().exists()) {
    const bool alone = call.node().nodes() == 1;
    std::fprintf(stderr,
                 "nx: node %d calls killcube before any message%s: the job ends, this program too. A host program is "
                 "started by nxhost -n NODES HOST\n",
                 call.node().self(), alone ? ", in a job without other nodes" : "");
    if (alone) end_all(1);
  }
  call.engine().send_kill();
  const bool all = call.engine().wait_for([&] { return call.engine().everybody_left(); }, 1000);
  if (all) std::exit(0);
  std::fflush(nullptr);
  end_all(1);
}

Outcome killproc(Number node, Number pid) { return killcube(node, pid); }

}  // namespace nx2::calls
