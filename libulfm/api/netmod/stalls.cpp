// Waits that do not end: what MPICH and this library know of them.
#include <unistd.h>

#include <algorithm>

#include <fmt/core.h>

#include "api/netmod/channel.hpp"
#include "base/counted.hpp"

namespace ulfm::netmod {
namespace {

// What the library knows of a wait in MPI: not of requests, which are MPICH's, but of everybody it talks with.
std::string stall_text(const ulfm_nm* nm, std::chrono::nanoseconds time) {
  const std::string who = nm->process->stall_prefix();
  std::string text =
      fmt::format("{}nothing has come since {}{}; received {}, sent {}{}\n", who, stall_time(time),
                  nm->idle_how == ULFM_NM_IDLE_BLOCK || nm->idle_how == ULFM_NM_IDLE_WAIT ? " in an MPI call that waits"
                                                                                          : " while the program polls",
                  counted(nm->counters.received_messages.get(), "message"), nm->counters.sent_messages.get(),
                  nm->sends_waiting ? "; messages wait for room" : "");
  for (const ulfm_nm_vc* vc : nm->vcs)
    text += fmt::format("{}has a connection to {}{}\n", who, vc->outlet->peer().text(),
                        vc->outlet->peer_listening() ? ", which runs" : ", which has ended or left");
  for (std::uint32_t i = 0; i < nm->cookies.size(); ++i)
    if (const OriginInfo from = nm->inlet->origin(i); from.process)
      text += fmt::format("{}hears from {}\n", who, from.process.text());
  return text;
}

struct Waits : ulfm_nm_waits {
  StallState* state;
};

void add_wait(ulfm_nm_waits* waits, const ulfm_nm_wait* wait) {
  StallState& state = *static_cast<Waits*>(waits)->state;
  if (state.n == kMostStallWaits) {
    ++state.more;
    return;
  }
  StallWait& to = state.waits[state.n++];
  to = {static_cast<StallKind>(wait->kind), wait->rank, wait->tag, 0, wait->bytes, {}};
  std::string_view(wait->name).copy(to.name, kStallName - 1);
}

StallState state_of(ulfm_nm* nm, std::chrono::steady_clock::time_point now) {
  StallState state{};
  state.pid = getpid();
  const auto since = nm->idle_since == std::chrono::steady_clock::time_point{} ? now : nm->idle_since;
  state.since = since.time_since_epoch().count();
  if (nm->describe == nullptr) return state;
  Waits waits{};
  waits.add = add_wait;
  waits.state = &state;
  nm->describe(&waits);
  state.blocked = waits.blocked;
  state.posted = waits.posted, state.arrived = waits.arrived, state.unsent = waits.unsent;
  return state;
}

}  // namespace

void on_stall(ulfm_nm* nm, void (*describe)(ulfm_nm_waits*)) { nm->describe = describe; }

void report_stalls(ulfm_nm& nm, std::chrono::steady_clock::time_point now) {
  nm.process->report_stalls(
      nm.stall, nm.idle_since, now, [&] { return state_of(&nm, now); },
      [&](std::chrono::nanoseconds time) { return stall_text(&nm, time); });
}

bool wait_timed(ulfm_nm& nm, VirtualTime& time, std::uint64_t until, VirtualTime::Patience patience) {
  return nm.process->wait_timed(time, until, patience, [&] { return state_of(&nm, std::chrono::steady_clock::now()); });
}

}  // namespace ulfm::netmod
