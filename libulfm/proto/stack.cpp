#include "proto/stack.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/trace.hpp"
#include "base/virtual_time.hpp"
#include "job/liveness.hpp"
#include "proto/reliable/reliable.hpp"
#include "transport/control/control.hpp"
#include "transport/fault/fault.hpp"
#include "transport/trace/trace.hpp"

namespace ulfm {
namespace {

// The control channel that settings or the transport ask for; nullptr for none.
Result<std::unique_ptr<control::Control>> make_control(const Config& config, const TransportDescriptor& descriptor,
                                                       Transport& transport, int rank) {
  const std::int64_t asked = config.number("CONTROL");  // of auto|tcp|unix
  // A control channel works by the host's time; in virtual time nobody has one (ulfmrun refuses what asks for it).
  if (VirtualTime::of_process() != nullptr || (asked == 0 && !descriptor.control))
    return std::unique_ptr<control::Control>{};
  control::ControlSettings settings;
  const bool by_unix = asked == 2 || (asked == 0 && !control::has_loopback());
  settings.kind = by_unix ? control::SocketKind::unix_socket : control::SocketKind::tcp;
  settings.rank = rank;
  auto channel = control::Control::start(settings, transport.card(),
                                         [&transport](std::uint32_t what) { return transport.descriptor(what); });
  if (channel) transport.use_control(**channel);
  return channel;
}

}  // namespace

reliable::ReliableSettings protocol_settings(const Config& config) {
  reliable::ReliableSettings settings;
  settings.window = static_cast<std::uint32_t>(config.number("WINDOW"));
  settings.give_up = std::chrono::milliseconds(config.number("GIVE_UP"));
  // Two frames and their headers, or a long one would find no room beside another.
  settings.most_bytes = std::max(settings.most_bytes, static_cast<std::size_t>(config.number("FRAME")) * 2 + 1024);
  // Streams of a process that had this port before must not be taken for ours.
  settings.first_stream = static_cast<std::uint32_t>(random_token());
  if (VirtualTime::of_process() == nullptr) {
    // Only the default knows nothing of the network and the host. A time that somebody has set is kept to.
    if (config.origin("GIVE_UP") == Origin::default_value) settings.crowding = &crowding;
    return settings;
  }
  // Time-outs count the time of the network, in which nobody looks after the ports of a process that computes; and the
  // order in which things are gone through is the same in each run.
  settings.clock = &clock_of_job();
  settings.keepalive_every = std::chrono::nanoseconds(0);
  settings.first_stream = 1;
  return settings;
}

Result<TransportStack> make_stack(const Config& config, const TransportDescriptor& descriptor, int rank) {
  const std::string& trace_file = config.text("TRACE");
  if (!trace_file.empty())
    if (auto ok = trace::begin(trace_file, rank); !ok) return fail(std::move(ok.error()).within("ULFM_TRACE"));
  auto plan = parse_fault_plan(config.text("FAULT"));
  if (!plan) return fail(std::move(plan.error()).within("ULFM_FAULT"));
  if (!plan->events.empty() && !descriptor.links)
    return fail(Errc::invalid, fmt::format("ULFM_FAULT: transport {} has no links, switches and nodes that could fail; "
                                           "leave the scheduled events out, or choose an emulated interconnect",
                                           descriptor.name));
  auto transport = descriptor.make(config);
  if (!transport) return fail(std::move(transport.error()).within(descriptor.name));
  auto channel = make_control(config, descriptor, **transport, rank);
  if (!channel) return fail(std::move(channel.error()).within("ULFM_CONTROL"));
  TransportStack stack{std::move(*transport), descriptor.name, descriptor.reliable, descriptor.ordered};
  if (plan->has_rates()) {
    stack.transport = std::make_unique<FaultTransport>(std::move(stack.transport), *plan, rank, clock_of_job());
    stack.name += "+faults";
    stack.reliable = stack.ordered = false;
  }
  const bool always = config.number("PROTOCOL") == 1;  // of auto|always
  if (always || !stack.reliable || !stack.ordered || !plan->events.empty()) {
    auto protocol =
        std::make_unique<reliable::ReliableTransport>(std::move(stack.transport), protocol_settings(config));
    if (auto ok = protocol->start_keepalive(); !ok) return fail(std::move(ok.error()).within("ULFM_PROTOCOL"));
    stack.transport = std::move(protocol);
    stack.name += "+protocol";
    stack.reliable = stack.ordered = true;
  }
  // Around everything: what the decorators say to each other needs no set-up of its own.
  if (*channel) stack.transport = std::make_unique<ControlTransport>(std::move(*channel), std::move(stack.transport));
  if (!trace_file.empty())
    stack.transport = std::make_unique<TraceTransport>(std::move(stack.transport), descriptor.name);
  return stack;
}

std::string close_control(const std::string& who, Transport& transport) {
  control::Control* control = transport.control();
  if (control == nullptr) return "";
  control->close();
  return control->statistics(who);
}

std::string stack_statistics_text(const std::string& who, const Transport& transport) {
  const std::vector<NamedCount> counts = transport.counts();
  if (counts.empty()) return "";
  std::string text = fmt::format("ulfm: stats {} network:", who);
  for (const NamedCount& count : counts)
    text += fmt::format("{}{} {}", &count == counts.data() ? " " : ", ", count.name, count.value);
  return fmt::format("{}\n", text);
}

}  // namespace ulfm
