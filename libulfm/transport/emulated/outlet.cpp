#include "transport/emulated/outlet.hpp"

#include <ctime>

#include <fmt/core.h>

#include "base/copy.hpp"

namespace ulfm::emulated {

using fabric::Record;
using fabric::Slot;

namespace {

// Nanoseconds of the host between two looks whether a receiver runs.
constexpr std::int64_t kLookEvery = 20'000'000;
// What the dead have sent to a port that nobody reads stays on its way: no sender waits longer for that.
constexpr std::int64_t kAnswersFor = 1'000'000'000;

// Good to a few ms; a message pays some 15 ns for it.
std::int64_t coarse_time() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Of a port, by this process's time: another process may have gone on, and opened or closed its port in our future.
std::uint32_t generation_of(fabric::FabricEngine& engine, std::uint32_t endpoint, std::uint32_t port) {
  fabric::FabricArena& arena = engine.arena();
  fabric::VirtualClock* const clock = engine.clock();
  if (clock != nullptr) [[unlikely]]
    clock->look();
  // Pairs with EmulatedInlet's constructor and end.
  const std::uint32_t generation = arena.endpoint(endpoint).generation[port].load(std::memory_order_acquire);
  if (clock == nullptr || generation == 0) [[likely]]
    return generation;
  const fabric::PortBox& box = arena.box(endpoint, port);
  return (generation % 2 == 1 ? box.opened_at : box.closed_at) <= clock->now() ? generation : generation - 1;
}

bool has_ended(fabric::FabricEngine& engine, std::uint32_t endpoint) {
  const fabric::EndpointState state = engine.arena().endpoint(endpoint).state.load(std::memory_order_acquire);
  if (engine.clock() != nullptr && state == fabric::EndpointState::left) return engine.clock()->has_ended(endpoint);
  return state != fabric::EndpointState::ready;
}

}  // namespace

Result<std::unique_ptr<EmulatedOutlet>> EmulatedOutlet::connect(fabric::FabricEngine& engine, const EmulatedCard& to,
                                                                std::uint16_t port, std::uint16_t from_port,
                                                                std::span<const std::byte> hello,
                                                                PortCounters& counters) {
  fabric::FabricArena& arena = engine.arena();
  if (to.arena != arena.header().token || to.endpoint >= arena.sizes().endpoints)
    return fail(Errc::unavailable, "that process is not on this job's emulated interconnect");
  if (port >= kPortsPerProcess)
    return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", port, kPortsPerProcess - 1));
  fabric::Endpoint& endpoint = arena.endpoint(to.endpoint);
  if (endpoint.token != to.token) return fail(Errc::peer_failed, "that process has ended, and another has its place");
  const std::string process = fmt::format("process {}", endpoint.pid);
  const std::uint32_t generation = generation_of(engine, to.endpoint, port);
  if (has_ended(engine, to.endpoint) || !engine.is_alive(to.endpoint))
    return fail(Errc::peer_failed, fmt::format("{} has ended", process));
  std::unique_ptr<EmulatedOutlet> outlet(new EmulatedOutlet(engine, to, port, counters));
  outlet->generation_ = generation;
  outlet->pid_ = endpoint.pid;
  outlet->looked_ = coarse_time();
  if (outlet->generation_ % 2 == 0)
    return fail(Errc::not_found, fmt::format("port {} of {} is not open", port, process));
  if (auto ok = outlet->introduce(from_port, hello); !ok) return fail(ok.error());
  return outlet;
}

// What was sent to an open port meets it some time, or is lost: then the record is found when there is no other.
EmulatedOutlet::~EmulatedOutlet() {
  engine_.slots().remove_sender(sender_);
  if (use_.generation != 0 && !has_sent_) give_back_unmet(engine_.arena(), use_);
}

Result<void> EmulatedOutlet::introduce(std::uint16_t from_port, std::span<const std::byte> hello) {
  if (hello.size() > kHelloLimit)
    return fail(Errc::too_large, fmt::format("hello of {} bytes; at most {}", hello.size(), kHelloLimit));
  auto use = claim_record(engine_);
  if (!use) return fail(use.error());
  use_ = *use;
  const fabric::Endpoint& self = engine_.arena().endpoint(engine_.self());
  Record& record = engine_.arena().record(use_.record);
  record.from = engine_.self();
  record.from_token = self.token;
  record.from_pid = self.pid;
  record.from_port = from_port;
  record.to = to_.endpoint;
  record.to_token = to_.token;
  record.to_port = port_;
  record.to_generation = generation_;
  record.hello_length = static_cast<std::uint16_t>(hello.size());
  if (!hello.empty()) std::memcpy(record.hello, hello.data(), hello.size());
  show_record(engine_.arena(), use_);
  return {};
}

bool EmulatedOutlet::push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) {
  fabric::VirtualClock* const clock = engine_.clock();
  if (clock == nullptr && has_died()) [[unlikely]] {
    turned_.clear();
    return false;
  }
  std::int64_t index = engine_.slots().take(sender_);
  if (index < 0 && clock != nullptr) {
    clock->look();  // what has been given back by now is back then
    index = engine_.slots().take(sender_);
  }
  if (index < 0) {
    if (clock != nullptr) clock->want_room();
    turned_.clear();
    counters_.full.add();
    return false;
  }
  fabric::FabricArena& arena = engine_.arena();
  Slot& slot = arena.slot(static_cast<std::uint32_t>(index));
  std::byte* to = header.size() + length <= fabric::kSlotInline ? slot.bytes : arena.body(slot);
  copy_bytes(to, header.data(), header.size());
  if (length != 0) data.copy(to + header.size(), length);
  slot.record = use_.record;
  slot.record_generation = use_.generation;
  slot.port_generation = generation_;
  slot.length = static_cast<std::uint32_t>(length);
  slot.to = static_cast<std::uint16_t>(to_.endpoint);
  slot.port = static_cast<std::uint8_t>(port_);
  slot.kind = static_cast<std::uint8_t>(kind);
  slot.header = static_cast<std::uint8_t>(header.size());
  slot.goes_on = kind == Kind::more ? 1 : 0;
  slot.receivers = 0;
  if (checks_) [[unlikely]]
    pass_noise(static_cast<std::uint32_t>(index), to);
  counters_.open_frames.add();
  has_sent_ = true;
  submit(engine_, static_cast<std::uint32_t>(index), kind, header.size() + length);
  return true;
}

// The network takes frames for whom it cannot give them to any more, so it never lacks room for them. In virtual time
// the clock finds who has died.
bool EmulatedOutlet::has_died() {
  const std::int64_t now = coarse_time();
  if (died_ || now - looked_ < kLookEvery) [[likely]]
    return died_;
  looked_ = now;
  const fabric::Endpoint& endpoint = engine_.arena().endpoint(to_.endpoint);
  // Who has ended properly has closed its ports, which the port's generation tells. Acquire as in has_ended().
  died_ = endpoint.state.load(std::memory_order_acquire) == fabric::EndpointState::ready &&
          endpoint.token == to_.token && !engine_.is_alive(to_.endpoint);
  return died_;
}

// The sending card has the frame as it should be; what comes to the other card is what the noise leaves of it.
void EmulatedOutlet::pass_noise(std::uint32_t slot, std::byte* bytes) {
  engine_.seal(slot);
  for (const std::uint64_t bit : turned_) bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  turned_.clear();
}

void EmulatedOutlet::submit(fabric::FabricEngine& engine, std::uint32_t slot, Kind kind, std::size_t bytes) {
  fabric::VirtualClock* const clock = engine.clock();
  if (clock == nullptr) [[likely]]
    return engine.submit(slot);
  const fabric::Durations& d = clock->costs();
  const VirtualTime::Charge charge = VirtualTime::charge();
  std::uint8_t& noted = engine.arena().slot(slot).goes_on;
  if (kind == Kind::more || charge == VirtualTime::Charge::none) noted |= fabric::kNoSoftware;
  else if (charge == VirtualTime::Charge::system) noted |= fabric::kSystemMessage;
  const std::uint64_t software = (noted & fabric::kNoSoftware) != 0      ? 0
                                 : (noted & fabric::kSystemMessage) != 0 ? d.system_send
                                                                         : d.send;
  const std::uint64_t cost = software + bytes * d.send_byte + 1;
  clock->stamp(slot, cost);
  engine.submit(slot);
  clock->sent(cost);
}

// The receiver has forgotten this connection, which is not over: a record goes back to others when its owner said bye.
// A port that closes frees its records, too, and shows first that it is closed: whoever sees the record free sees that.
bool EmulatedOutlet::cut_off() const {
  if (said_bye_) return false;
  if (has_record(engine_.arena(), use_)) return false;
  const fabric::Endpoint& endpoint = engine_.arena().endpoint(to_.endpoint);
  // Of who has died the record is taken back when all are in use, by anybody.
  return endpoint.generation[port_].load(std::memory_order_acquire) == generation_ && endpoint.token == to_.token &&
         engine_.runs(to_.endpoint);
}

bool EmulatedOutlet::port_closed() const {
  return generation_of(engine_, to_.endpoint, port_) != generation_ || cut_off();
}

// What a peer sent before it ended is read first: it may be the answer that the caller waits for.
bool EmulatedOutlet::peer_listening() const {
  if (engine_.clock() != nullptr) engine_.clock()->look();
  if (died_ && coarse_time() - looked_ > kAnswersFor) return false;
  return (!port_closed() && engine_.is_alive(to_.endpoint)) || engine_.has_on_the_way(to_.endpoint);
}

bool EmulatedOutlet::bye() {
  Gather none;
  if (!push(Kind::bye, {}, none, 0)) return false;
  said_bye_ = true;
  return true;
}

}  // namespace ulfm::emulated
