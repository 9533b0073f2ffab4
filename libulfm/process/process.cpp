#include "process/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/core.h>

#include "base/job_record.hpp"
#include "base/standard_streams.hpp"
#include "base/thread_data.hpp"
#include "base/virtual_time.hpp"
#include "job/launcher.hpp"

namespace ulfm {
namespace {

std::string port_statistics(const std::string& who, const std::string& transport, std::uint16_t port,
                            const PortCounters& c) {
  const auto n = [](const auto& counter) { return fmt::format("{}", counter.get()); };
  std::string all = fmt::format(
      "ulfm: stats {} transport {} port {}: sent {} messages {} bytes, received {} messages {} bytes, frames {} open "
      "{} lane, lanes {} opened {} granted, full {}, message cache {} in {} hits {} bytes peak\n",
      who, transport, port, n(c.sent_messages), n(c.sent_bytes), n(c.received_messages), n(c.received_bytes),
      n(c.open_frames), n(c.lane_frames), n(c.lanes_opened), n(c.lanes_granted), n(c.full), n(c.cache_in),
      n(c.cache_hits), n(c.cache_bytes_peak));
  if (c.exchanged_frames.get() + c.common_frames.get() != 0)
    all +=
        fmt::format("ulfm: stats {} port {} exchange: {} of the frames in lanes, common cells: {} of both directions\n",
                    who, port, n(c.exchanged_frames), n(c.common_frames));
  if (c.once_messages.get() != 0)
    all += fmt::format("ulfm: stats {} port {} copied once: messages {}, bytes {}\n", who, port, n(c.once_messages),
                       n(c.once_bytes));
  if (c.group_messages.get() + c.group_frames.get() != 0)
    all +=
        fmt::format("ulfm: stats {} port {} multicast: messages {}, frames {} at once to {} receivers, {} one by one\n",
                    who, port, n(c.group_messages), n(c.group_frames), n(c.group_copies), n(c.group_singles));
  return all;
}

std::string wait_statistics(const std::string& who) {
  std::string text = fmt::format("ulfm: stats {} waits:", who);
  for (std::size_t i = 0; i < kRungNames.size(); ++i)
    text += fmt::format(" {} {}", kRungNames[i], wait_counters().steps[i].load());
  return fmt::format("{}\n", text);
}

}  // namespace

WaitPolicy wait_policy_from(const Config& config, int processes) {
  WaitPolicy policy = WaitPolicy::for_processes(processes);
  if (const std::int64_t spins = config.number("SPIN"); spins >= 0) {
    policy.spins = static_cast<std::uint32_t>(spins);
    policy.pauses = 0;
  }
  policy.yield_for = std::chrono::milliseconds(config.number("PARK_AFTER"));
  policy.park_limit = std::chrono::milliseconds(config.number("PARK_LIMIT"));
  return policy;
}

std::uint64_t moment_after(std::uint64_t now, std::chrono::nanoseconds deadline) {
  if (deadline == kForever) return kNoMoment;
  return now + static_cast<std::uint64_t>(std::max<std::int64_t>(deadline.count(), 1)) * 1000;
}

Process::Process(Config config, const TransportDescriptor& descriptor, TransportStack stack, const Place& place,
                 WaitPolicy policy)
    : config_(std::move(config)),
      descriptor_(&descriptor),
      stack_(std::move(stack)),
      rank_(place.rank),
      first_(place.rank == place.first),
      name_(place.name.empty() ? fmt::format("rank {}", place.rank) : place.name),
      policy_(policy),
      stall_seconds_(config_.number("STALL_REPORT")) {}

Result<std::unique_ptr<Process>> Process::start(Config config, const Place& place) {
  reserve_standard_streams();
  reserve_thread_data();
  if (place.rank == place.first)
    for (const std::string& warning : config.warnings()) std::fprintf(stderr, "ulfm: %s\n", warning.c_str());
  if (const std::string why = place.size == 1 && !place.alone ? started_in_vain() : ""; !why.empty())
    std::fprintf(stderr, "ulfm: %s\n", why.c_str());
  auto descriptor = select_transport(config.text("TRANSPORT"));
  if (!descriptor) return fail(descriptor.error());
  // ulfmrun has said so before, and hands no topology on.
  if (place.rank == place.first && !(*descriptor)->links && !config.text("TOPOLOGY").empty())
    std::fprintf(stderr,
                 "ulfm: %s: TOPOLOGY has no effect: transport %s has no topology; set TRANSPORT to xswitch, for "
                 "example\n",
                 config.where("TOPOLOGY").c_str(), (*descriptor)->name);
  StallWatch::begin();  // making the stack waits too: for a proxy
  auto stack = make_stack(config, **descriptor, place.rank);
  if (!stack) return fail(stack.error());
  const WaitPolicy policy = wait_policy_from(config, place.sharing);
  std::unique_ptr<Process> process(new Process(std::move(config), **descriptor, std::move(*stack), place, policy));
  if (auto board = StallBoard::attach(place.rank, place.size); board && !place.alone)
    process->stall_board_.emplace(std::move(*board));
  return process;
}

Result<std::unique_ptr<Inlet>> Process::open(std::uint16_t number, const InletOptions& options) {
  auto inlet = stack_.transport->open(number, options);
  if (inlet && !policy_.has_own_core()) (*inlet)->wake_source().expect_many_sleeps();
  return inlet;
}

bool Process::park(std::span<Inlet* const> inlets, std::chrono::nanoseconds limit, Outlet* full) {
  if (full == nullptr) return park(inlets, limit, {}, {});
  return park(inlets, limit, full->await_room(), [full] { return full->has_room(); });
}

bool Process::park(std::span<Inlet* const> inlets, std::chrono::nanoseconds limit, WaitWord other, const Look& look) {
  const auto something = [&] {
    return (look && look()) || std::ranges::any_of(inlets, [](Inlet* inlet) { return inlet->has_frame(); });
  };
  std::array<WakeSource*, kPortsPerProcess> all;
  const std::span sources = std::span(all).first(inlets.size());
  std::ranges::transform(inlets, all.begin(), [](Inlet* inlet) { return &inlet->wake_source(); });
  for (WakeSource* source : sources) source->arm();
  bool has_come = something();
  if (!has_come)
    for (Inlet* inlet : inlets) limit = std::min(limit, inlet->next_deadline());
  if (!has_come && limit.count() > 0) {
    wait_counters().count(Rung::park);
    has_come = sleep_on_any(sources, limit, other, std::cref(something));
  }
  for (WakeSource* source : sources) source->cancel();
  return has_come;
}

std::string Process::stall_prefix() const { return fmt::format("ulfm: stall {} (process {}): ", name_, getpid()); }

bool Process::counts() const { return config_.flag("STATS") || !config_.text("STATS_FILE").empty(); }

void Process::note_closed_port(std::uint16_t number, const PortCounters& counters) {
  if (counts()) closed_ports_ += port_statistics(name_, stack_.name, number, counters);
}

void Process::report_statistics() {
  const std::string control = close_control(name_, *stack_.transport);
  if (!counts()) return;
  std::string text = closed_ports_ + stack_statistics_text(name_, *stack_.transport) + control +
                     collectives_.text(name_) + wait_statistics(name_);
  if (first_) text += stack_.transport->shared_statistics();
  // One write, so that the lines of several processes do not mix.
  if (config_.flag("STATS")) (void)!write(STDERR_FILENO, text.data(), text.size());
  record::leave_counters(config_.text("STATS_FILE"), rank_, text);
}

}  // namespace ulfm
