#include "transport/direct/direct.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include <fmt/core.h>

#include "base/segment.hpp"
#include "job/liveness.hpp"
#include "transport/direct/inlet.hpp"
#include "transport/direct/outlet.hpp"

namespace ulfm {

namespace direct {
namespace {

class DirectTransport final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> make(const Config& config) {
    std::unique_ptr<DirectTransport> t(new DirectTransport);
    t->geometry_ = PortGeometry::from(config);
    t->exchange_slots_ = static_cast<std::uint32_t>(config.number("EXCHANGE"));
    auto segment = Segment::create("ulfm-directory", up_to(sizeof(Directory), kPage));
    if (!segment) return fail(segment.error());
    t->segment_ = std::move(*segment);
    if (auto ok = t->segment_.commit(0, t->segment_.size()); !ok) return fail(ok.error());
    t->self_ = {host_identity(), random_token(), start_time(getpid()), getpid(), t->segment_.fd()};
    t->card_ = encode(t->self_);
    DirectoryHead& d = t->directory().head;
    d.version = kVersion;
    d.ports = kPortsPerProcess;
    d.token = t->self_.token;
    d.magic = kMagic;
    return t;
  }

  const std::string& card() const override { return card_; }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override {
    if (number >= kPortsPerProcess)
      return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", number, kPortsPerProcess - 1));
    DirectoryEntry& entry = directory().entry[number];
    std::lock_guard lock(mutex_);
    if (entry.generation.load(std::memory_order_relaxed) % 2 == 1)
      return fail(Errc::busy, fmt::format("port {} is open already", number));
    auto inlet = DirectInlet::create(number, geometry_.with(options), self_.token, [this, &entry] {
      std::lock_guard closing(mutex_);  // nobody duplicates the descriptor meanwhile
      entry.generation.fetch_add(1, std::memory_order_release);
    });
    if (!inlet) return fail(inlet.error());
    (*inlet)->use_opener(Opener(control_));
    exchanges_[number] = std::make_shared<ExchangeTable>(self_.token, number, exchange_slots_, passed_);
    (*inlet)->use_exchanges(exchanges_[number]);
    entry.fd = (*inlet)->segment_fd();
    entry.generation.fetch_add(1, std::memory_order_release);  // pairs with look_up()
    return std::unique_ptr<Inlet>(std::move(*inlet));
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    auto peer = decode(control::identity_of(card));
    if (!peer) return fail(peer.error());
    if (peer->host != self_.host)
      return fail(
          Errc::unavailable,
          "transport direct reaches processes of this host (and pid namespace) only; a job that connects to one "
          "on another host, or in a container, needs ULFM_TRANSPORT=mux, and so does that one");
    auto outlet = DirectOutlet::connect(*peer, to, self_, from, hello, counters, Opener(control_));
    if (!outlet) return fail(outlet.error());
    (*outlet)->use_exchange(exchange_between(from, *peer, to));
    return std::unique_ptr<Outlet>(std::move(*outlet));
  }

  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override {
    return DirectMulticast::make(outlets, passed_);
  }

  bool reachable(std::string_view card) const override {
    auto peer = decode(control::identity_of(card));
    return peer && peer->host == self_.host;
  }

  void use_control(control::Control& control) override { control_ = &control; }

  control::Fd descriptor(std::uint32_t what) override {
    if (what >= kFirstPassed) return passed_.duplicate(what);
    std::lock_guard lock(mutex_);
    if (what == kDirectory) return control::Fd(fcntl(segment_.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    const DirectoryEntry& entry = directory().entry[what - port_segment(0)];
    if (entry.generation.load(std::memory_order_relaxed) % 2 == 0) return {};
    return control::Fd(fcntl(entry.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  }

 private:
  DirectTransport() = default;
  // For a new connection; nullptr when there is none.
  std::shared_ptr<Exchange> exchange_between(std::uint16_t own, const DirectCard& peer, std::uint16_t port) {
    std::lock_guard lock(mutex_);
    if (own >= kPortsPerProcess || !exchanges_[own]) return nullptr;
    auto exchange = exchanges_[own]->with(peer.token, port);
    return exchange && exchange->add_outlet() ? exchange : nullptr;
  }
  Directory& directory() const { return *segment_.at<Directory>(0); }

  PortGeometry geometry_;
  Segment segment_;
  DirectCard self_;
  std::string card_;
  std::mutex mutex_;
  PassedDescriptors passed_{kFirstPassed};
  std::uint32_t exchange_slots_ = 0;
  std::array<std::shared_ptr<ExchangeTable>, kPortsPerProcess> exchanges_;  // of the ports opened last
  control::Control* control_ = nullptr;
};

// Tries what matters: a memory file, and opening it the way a peer would.
std::string why_unavailable() {
  auto segment = Segment::create("ulfm-probe", kPage);
  if (!segment) return segment.error().what;
  auto again = Segment::attach(getpid(), segment->fd());
  return again ? "" : again.error().what;
}

}  // namespace
}  // namespace direct

const TransportDescriptor direct_transport{
    .name = "direct",
    .summary = "shared memory between processes of one host",
    .reliable = true,
    .ordered = true,
    .multicast = false,
    .multi_host = false,
    .max_frame = 32 * 1024,
    .latency_us = 0.15,
    .bandwidth_MBps = 10000,
    .config_rows = "SLOT DEPTH LANES LANE_CELLS LANE_BYTES LANE_AFTER EXCHANGE FRAME PEERS",
    .takes_options = false,
    .links = false,
    .control = false,
    .nodes = [](int) { return std::vector<int>(); },
    .unavailable = direct::why_unavailable,
    .make = direct::DirectTransport::make,
};

}  // namespace ulfm
