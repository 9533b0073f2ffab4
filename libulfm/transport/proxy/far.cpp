#include "transport/proxy/far.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include "transport/emulated/multicast.hpp"
#include "transport/proxy/tunnel.hpp"

namespace ulfm::proxy {
namespace {

constexpr std::uint32_t kLooksPerReply = 16;  // turns without a frame between two looks for credits

/// Frames that have come to each port of this process since it was opened, for outlets that ask whether all have.
class Arrivals {
 public:
  using Count = std::atomic<std::uint64_t>;
  std::shared_ptr<Count> begin(std::uint16_t port) {
    std::lock_guard lock(lock_);
    return counts_[port] = std::make_shared<Count>(0);
  }
  void end(std::uint16_t port) {
    std::lock_guard lock(lock_);
    counts_[port] = nullptr;
  }
  /// More has been sent to an open port than has come.
  bool is_more_coming(std::span<const std::byte> sent) {
    std::lock_guard lock(lock_);
    for (FrameCount one{}; take(sent, one);)
      if (one.port < counts_.size() && counts_[one.port] &&
          counts_[one.port]->load(std::memory_order_acquire) < one.frames)
        return true;
    return false;
  }

 private:
  std::mutex lock_;
  std::array<std::shared_ptr<Count>, kPortsPerProcess> counts_;
};

/// A port of this process: the proxy has it open on the interconnect, and sends on what comes there.
class FarInlet final : public Inlet {
 public:
  FarInlet(std::shared_ptr<Tunnel> tunnel, std::shared_ptr<Arrivals> arrivals, std::unique_ptr<Inlet> carried,
           std::uint16_t number)
      : tunnel_(std::move(tunnel)),
        arrivals_(std::move(arrivals)),
        carried_(std::move(carried)),
        number_(number),
        arrived_(arrivals_->begin(number)) {}
  ~FarInlet() override {
    arrivals_->end(number_);
    ProxyHead head{ProxyCall::close};
    head.port = number_;
    (void)tunnel_->call(head, {});
  }

  bool next(Frame& frame) override {
    while (carried_->next(frame)) {
      if (take_in(frame)) return true;
      const bool bye = frame.kind == Kind::bye;
      carried_->release(frame);
      if (bye) carried_->drop_origin(frame.origin);
    }
    if (++idle_ % kLooksPerReply == 0) tunnel_->look();
    return false;
  }
  bool spin(std::uint32_t turns) override { return carried_->spin(turns); }
  bool look() override { return carried_->look(); }
  void release(const Frame& frame) override { carried_->release(frame); }

  OriginInfo origin(std::uint32_t index) const override {
    if (index >= origins_.size() || !origins_[index].connected) return {};
    const From& from = origins_[index];
    return {from.card, from.port, {from.pid, tunnel_->proxy().host}, from.hello};
  }
  void drop_origin(std::uint32_t index) override {
    if (index >= origins_.size() || !std::exchange(origins_[index].connected, false)) return;
    ProxyHead head{ProxyCall::drop};
    head.port = number_;
    head.id = index;
    tunnel_->notify(head, {});
  }

  bool has_frame() override {
    tunnel_->look();
    return carried_->has_frame();
  }
  WakeSource& wake_source() override { return carried_->wake_source(); }
  std::int64_t find_dead() override {
    tunnel_->look();
    return taken_from(dead_);
  }
  std::int64_t take_broken() override { return taken_from(broken_); }
  std::string why_broken() override {
    if (over_.empty() && !tunnel_->is_alive()) over_ = tunnel_->why_gone();
    return over_;
  }
  std::size_t max_frame() const override { return tunnel_->place().slot_bytes; }

 private:
  struct From {
    bool connected = false, fresh = false;
    std::uint16_t port = kNoPort;
    std::int32_t pid = 0;
    std::string card;
    Bytes hello;
  };

  // True when it is a frame for the program.
  bool take_in(Frame& frame) {
    ProxyHead head;
    std::span<const std::byte> body;
    if (!read(frame, head, body)) return false;
    if (head.what == ProxyCall::arrived) return describe(head, body, frame);
    if (head.what == ProxyCall::origin) on_origin(head.id, body);
    else if (head.what == ProxyCall::dead) dead_.push_back(head.id);
    else if (head.what == ProxyCall::broken) broken_.push_back(head.id);
    else if (head.what == ProxyCall::over) over_ = text_of(body);
    return false;
  }

  bool describe(const ProxyHead& head, std::span<const std::byte> body, Frame& frame) {
    arrived_->fetch_add(1, std::memory_order_release);
    if (head.id >= origins_.size() || !origins_[head.id].connected || head.header > body.size()) return false;
    frame.kind = Kind{head.kind};
    frame.header = body.data();
    frame.header_length = head.header;
    frame.data = body.data() + head.header;
    frame.length = static_cast<std::uint32_t>(body.size() - head.header);
    frame.origin = head.id;
    frame.fresh = std::exchange(origins_[head.id].fresh, false);
    return true;
  }

  void on_origin(std::uint32_t index, std::span<const std::byte> body) {
    ProxyOrigin origin{};
    From from;
    if (index >= kMostOrigins || !take(body, origin) || !take(body, origin.card, from.card)) return;
    if (index >= origins_.size()) origins_.resize(index + 1);
    from.connected = from.fresh = true;
    from.port = origin.port;
    from.pid = origin.pid;
    from.hello.assign(body.begin(), body.end());
    origins_[index] = std::move(from);
    std::erase(dead_, index);  // what was said of the one before
    std::erase(broken_, index);
  }

  std::int64_t taken_from(std::deque<std::uint32_t>& queue) {
    while (!queue.empty()) {
      const std::uint32_t index = queue.front();
      queue.pop_front();
      if (index < origins_.size() && origins_[index].connected) return index;
    }
    return -1;
  }

  static constexpr std::uint32_t kMostOrigins = 1u << 20;

  std::shared_ptr<Tunnel> tunnel_;
  std::shared_ptr<Arrivals> arrivals_;
  std::unique_ptr<Inlet> carried_;
  std::uint16_t number_;
  std::shared_ptr<Arrivals::Count> arrived_;
  std::vector<From> origins_;
  std::deque<std::uint32_t> dead_, broken_;
  std::string over_;
  std::uint32_t idle_ = 0;
};

class FarOutlet final : public Outlet {
 public:
  FarOutlet(std::shared_ptr<Tunnel> tunnel, std::shared_ptr<Arrivals> arrivals, PortCounters& counters)
      : tunnel_(std::move(tunnel)),
        arrivals_(std::move(arrivals)),
        counters_(counters),
        sending_(std::make_shared<Sending>()),
        number_(tunnel_->add(sending_)) {}
  ~FarOutlet() override {
    if (connected_) tunnel_->notify(head(ProxyCall::end), {});
    tunnel_->remove(number_);
  }

  Result<void> connect(std::string_view card, std::uint16_t to, std::uint16_t from, std::span<const std::byte> hello) {
    const ProxyDestination destination{to, static_cast<std::uint16_t>(card.size())};
    Bytes body;
    append(body, bytes_of(destination));
    append(body, bytes_of(card));
    append(body, hello);
    ProxyHead question{ProxyCall::connect};
    question.port = from;
    question.number = number_;
    auto answer = tunnel_->call(question, body);
    if (!answer) return fail(answer.error());
    std::span<const std::byte> rest = *answer;
    if (!take(rest, pid_)) return fail(Errc::protocol, "the proxy's answer makes no sense");
    connected_ = true;
    return {};
  }

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    ProxyHead head = this->head(ProxyCall::frame);
    head.kind = static_cast<std::uint8_t>(kind);
    head.header = static_cast<std::uint32_t>(header.size());
    if (!has_room() || !tunnel_->push(head, header, data, length)) {
      counters_.full.add();
      return false;
    }
    sending_->credits.fetch_sub(1, std::memory_order_relaxed);
    counters_.open_frames.add();
    return true;
  }
  bool has_room() const override {
    if (sending_->credits.load(std::memory_order_relaxed) == 0) tunnel_->look();
    return sending_->credits.load(std::memory_order_relaxed) != 0;
  }
  std::size_t max_frame(std::size_t header) const override { return tunnel_->place().slot_bytes - header; }

  // What the proxy has sent to us before it says so may still be on its way here.
  bool peer_listening() const override {
    ProxyHead question{ProxyCall::listening};
    question.number = number_;
    const auto answer = tunnel_->call(question, {});
    if (!answer || answer->empty()) return false;
    return answer->front() != std::byte{0} || arrivals_->is_more_coming(std::span(*answer).subspan(1));
  }
  bool is_near() const override { return false; }
  bool port_closed() const override { return sending_->closed.load(std::memory_order_relaxed); }
  bool cut_off() const override { return sending_->cut_off.load(std::memory_order_relaxed); }
  ProcessId peer() const override { return {pid_, tunnel_->proxy().host}; }
  bool bye() override {
    Gather none;
    return push(Kind::bye, {}, none, 0);
  }

 private:
  ProxyHead head(ProxyCall what) const noexcept {
    ProxyHead head{what};
    head.id = number_;
    return head;
  }

  std::shared_ptr<Tunnel> tunnel_;
  std::shared_ptr<Arrivals> arrivals_;
  PortCounters& counters_;
  std::shared_ptr<Sending> sending_;
  std::uint32_t number_;
  std::int32_t pid_ = 0;
  bool connected_ = false;
};

class FarTransport final : public Transport {
 public:
  explicit FarTransport(std::unique_ptr<Tunnel> tunnel) : tunnel_(std::move(tunnel)) {}
  // The proxy ends when all it was given has gone.
  ~FarTransport() override { (void)tunnel_->call({ProxyCall::leave}, {}); }

  const std::string& card() const override { return tunnel_->card(); }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override {
    if (number >= kPortsPerProcess)
      return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", number, kPortsPerProcess - 1));
    auto carried = tunnel_->carrier().open(number, options);
    if (!carried) return carried;
    ProxyHead head{ProxyCall::open};
    head.port = number;
    if (auto ok = tunnel_->call(head, {}); !ok) return fail(ok.error());
    return std::make_unique<FarInlet>(tunnel_, arrivals_, std::move(*carried), number);
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    card = control::identity_of(card);
    if (card.size() > kMostCard || hello.size() > kHelloLimit)
      return fail(Errc::too_large, fmt::format("hello of {} bytes; at most {}", hello.size(), kHelloLimit));
    auto outlet = std::make_unique<FarOutlet>(tunnel_, arrivals_, counters);
    if (auto ok = outlet->connect(card, to, from, hello); !ok) return fail(ok.error());
    return std::unique_ptr<Outlet>(std::move(outlet));
  }

  // The same as for the processes that are there. They send at once; here each outlet does.
  std::size_t multicast_frame(std::size_t receivers, std::size_t header) const override {
    const ProxyPlace& place = tunnel_->place();
    return place.multicast != 0 ? emulated::EmulatedMulticast::frame(place.slot_bytes, receivers, header) : 0;
  }

  void introduce(std::string_view job_id, std::uint32_t rank, std::string_view card) override {
    ProxyHead head{ProxyCall::introduce};
    head.number = rank;
    head.port = static_cast<std::uint16_t>(card.size());
    tunnel_->notify(head, bytes_of(std::string(card) + std::string(job_id)));
  }
  std::string card_of(std::string_view job_id, std::uint32_t rank) const override {
    ProxyHead question{ProxyCall::card_of};
    question.number = rank;
    const auto answer = tunnel_->call(question, bytes_of(job_id));
    return answer ? text_of(*answer) : "";
  }
  std::string shared_statistics() override {
    const auto answer = tunnel_->call({ProxyCall::statistics}, {});
    return answer ? text_of(*answer) : "";
  }
  std::vector<NamedCount> counts() const override { return tunnel_->carrier().counts(); }

 private:
  std::shared_ptr<Tunnel> tunnel_;
  std::shared_ptr<Arrivals> arrivals_ = std::make_shared<Arrivals>();
};

}  // namespace

Result<std::unique_ptr<Transport>> make_far(const Config& config, const DoorAddress& door, std::string_view model) {
  const char* rank = std::getenv("PMI_RANK");
  auto tunnel =
      Tunnel::create(config, door, rank != nullptr ? static_cast<std::uint32_t>(std::strtoul(rank, nullptr, 10)) : 0);
  if (!tunnel) return fail(tunnel.error());
  if (model != (*tunnel)->place().model)
    return fail(Errc::invalid,
                fmt::format("this job was set up for the interconnect {}, not for {}; ulfmrun --transport sets both",
                            (*tunnel)->place().model, model));
  return std::make_unique<FarTransport>(std::move(*tunnel));
}

}  // namespace ulfm::proxy
