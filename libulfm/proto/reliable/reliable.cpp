#include "proto/reliable/reliable.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/own_thread.hpp"
#include "base/virtual_time.hpp"

namespace ulfm::reliable {
namespace {

class ReliableInlet final : public Inlet {
 public:
  ReliableInlet(ReliableTransport& transport, std::uint16_t number, std::shared_ptr<ReliablePort> port)
      : transport_(transport), number_(number), port_(std::move(port)) {}
  ~ReliableInlet() override {
    transport_.closing(number_);
    port_->close();
  }

  bool next(Frame& frame) override { return port_->next(frame); }
  bool spin(std::uint32_t turns) override { return port_->spin(turns); }
  bool look() override { return port_->look(); }
  void release(const Frame& frame) override { port_->release(frame); }
  OriginInfo origin(std::uint32_t index) const override { return port_->origin(index); }
  void drop_origin(std::uint32_t index) override { port_->drop_origin(index); }
  bool has_frame() override { return port_->has_frame(); }
  WakeSource& wake_source() override { return port_->wake_source(); }
  std::int64_t find_dead() override { return port_->find_dead(); }
  std::int64_t take_broken() override { return port_->take_broken(); }
  std::string why_broken() override { return port_->why_broken(); }
  nanoseconds next_deadline() override { return port_->next_deadline(); }
  bool take_given_up(Error& error) override { return port_->take_given_up(error); }
  std::size_t max_frame() const override { return port_->max_frame(); }
  void use_counters(PortCounters& counters) override { port_->use_counters(counters); }

 private:
  ReliableTransport& transport_;
  std::uint16_t number_;
  std::shared_ptr<ReliablePort> port_;
};

class ReliableOutlet final : public Outlet {
 public:
  ReliableOutlet(std::shared_ptr<ReliablePort> port, Sender& sender) : port_(std::move(port)), sender_(sender) {}
  ~ReliableOutlet() override { port_->leave(sender_); }

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    return port_->push(sender_, kind == Kind::first ? Payload::first : Payload::more, header, data, length);
  }
  std::size_t max_frame(std::size_t header) const override {
    return port_->with(sender_, [&](const Sender& s) { return s.max_frame(header); });
  }
  bool peer_listening() const override {
    return port_->with(sender_,
                       [](const Sender& s) { return s.state() == Sender::State::open && s.under().peer_listening(); });
  }
  bool port_closed() const override {
    return port_->with(sender_,
                       [](const Sender& s) { return s.state() != Sender::State::open || s.under().port_closed(); });
  }
  bool has_broken() const override {
    return port_->with(sender_, [](const Sender& s) { return s.has_broken(); });
  }
  bool is_near() const override {
    return port_->with(sender_, [](const Sender& s) { return s.under().is_near(); });
  }
  bool cut_off() const override {
    return port_->with(sender_, [](const Sender& s) { return s.under().cut_off(); });
  }
  ProcessId peer() const override {
    return port_->with(sender_, [](const Sender& s) { return s.under().peer(); });
  }
  bool bye() override { return port_->bye(sender_); }

  const std::shared_ptr<ReliablePort>& port() const noexcept { return port_; }
  Sender& sender() const noexcept { return sender_; }

 private:
  std::shared_ptr<ReliablePort> port_;
  Sender& sender_;
};

/// Connections that keep a frame each, and a multicast below that sends it.
class ReliableMulticast final : public Multicast {
 public:
  /// A member without room for so long gets the frame later, by itself.
  static constexpr std::chrono::milliseconds kPatience{1};

  ReliableMulticast(std::shared_ptr<ReliablePort> port, std::vector<Sender*> senders, std::unique_ptr<Multicast> under,
                    std::size_t most_bytes)
      : port_(std::move(port)), senders_(std::move(senders)), under_(std::move(under)), most_bytes_(most_bytes) {}

  bool push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
            std::vector<std::uint32_t>& who) override {
    if (kWireMost + headers.length > kHeaderLimit) {
      data.skip(length);
      return true;
    }
    const std::chrono::nanoseconds now = clock_of_job().now();
    const bool patient = since_ == std::chrono::nanoseconds{} || now - since_ < kPatience;
    const Payload payload = kind == Kind::first ? Payload::first : Payload::more;
    const bool sent = port_->push_many(senders_, *under_, payload, headers, data, length, who, patient);
    if (sent) since_ = {};
    else if (since_ == std::chrono::nanoseconds{}) since_ = now;
    return sent;
  }
  std::size_t max_frame(std::size_t header) const override {
    return std::min(under_->max_frame(kWireMost + header), most_bytes_ / 2 - kHeaderLimit);
  }
  void look_for_dead() override { under_->look_for_dead(); }

 private:
  std::shared_ptr<ReliablePort> port_;
  std::vector<Sender*> senders_;
  std::unique_ptr<Multicast> under_;
  std::size_t most_bytes_;
  std::chrono::nanoseconds since_{};  // of a frame that has found no room
};

}  // namespace

ReliableTransport::ReliableTransport(std::unique_ptr<Transport> under, const ReliableSettings& settings)
    : ForwardingTransport(std::move(under)), common_(std::make_shared<Common>()) {
  common_->under = under_;
  common_->settings = settings;
  common_->next_stream = settings.first_stream;
}

Result<void> ReliableTransport::start_keepalive() {
  if (common_->settings.keepalive_every.count() == 0) return {};
  auto started = start_own_thread("that answers peers while the program computes", [this] { keepalive(); });
  if (!started) return fail(started.error());
  keepalive_thread_ = std::move(*started);
  return {};
}

ReliableTransport::~ReliableTransport() {
  {
    std::lock_guard lock(ports_lock_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (keepalive_thread_.joinable()) keepalive_thread_.join();
}

Result<std::unique_ptr<Inlet>> ReliableTransport::open(std::uint16_t number, const InletOptions& options) {
  auto inlet = under_->open(number, options);
  if (!inlet) return inlet;
  auto port = std::make_shared<ReliablePort>(common_, number, std::move(*inlet));
  {
    std::lock_guard lock(ports_lock_);
    ports_[number] = port;
  }
  return std::unique_ptr<Inlet>(new ReliableInlet(*this, number, std::move(port)));
}

Result<std::unique_ptr<Outlet>> ReliableTransport::connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                                           std::span<const std::byte> hello, PortCounters& counters) {
  std::shared_ptr<ReliablePort> port;
  if (from < kPortsPerProcess) {
    std::lock_guard lock(ports_lock_);
    port = ports_[from];
  }
  if (!port)
    return fail(
        Errc::invalid,
        fmt::format("port {} is not open here: a sender needs a port to which its acknowledgements can come", from));
  auto sender = port->connect(card, to, hello, counters);
  if (!sender) return fail(sender.error());
  return std::unique_ptr<Outlet>(new ReliableOutlet(std::move(port), **sender));
}

std::unique_ptr<Multicast> ReliableTransport::group(std::span<Outlet* const> outlets) {
  std::vector<Sender*> senders;
  std::vector<Outlet*> below;
  for (Outlet* outlet : outlets) {
    senders.push_back(&static_cast<ReliableOutlet*>(outlet)->sender());
    below.push_back(&senders.back()->under());
  }
  auto under = under_->group(below);
  if (!under) return nullptr;
  return std::make_unique<ReliableMulticast>(static_cast<ReliableOutlet*>(outlets.front())->port(), std::move(senders),
                                             std::move(under), common_->settings.most_bytes);
}

std::size_t ReliableTransport::multicast_frame(std::size_t receivers, std::size_t header) const {
  if (kWireMost + header > kHeaderLimit) return 0;
  return std::min(under_->multicast_frame(receivers, kWireMost + header),
                  common_->settings.most_bytes / 2 - kHeaderLimit);
}

void ReliableTransport::closing(std::uint16_t number) {
  std::lock_guard lock(ports_lock_);
  ports_[number].reset();
}

// Programs compute for long times between two looks at their ports, and peers must not take that for a dead network.
void ReliableTransport::keepalive() {
  std::unique_lock lock(ports_lock_);
  while (!stop_changed_.wait_for(lock, common_->settings.keepalive_every, [this] { return stop_; }))
    for (const auto& port : ports_)
      if (port) port->keepalive();
}

std::vector<NamedCount> ReliableTransport::counts() const {
  const Counters& c = common_->counters;
  std::vector<NamedCount> all = under_->counts();
  all.insert(all.end(), {{"frames sent", c.sent.load()},
                         {"delivered", c.delivered.load()},
                         {"retransmitted", c.resent.load()},
                         {"acknowledgements", c.acks.load()},
                         {"duplicates dropped", c.duplicates.load()},
                         {"corrupted dropped", c.corrupted.load()},
                         {"kept out of order", c.kept.load()},
                         {"given up", c.given_up.load()}});
  return all;
}

}  // namespace ulfm::reliable
