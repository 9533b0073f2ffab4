// A transport of this process alone, with a clock: everything that happens in it is decided by the test.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/doorbell_source.hpp"
#include "transport/contract.hpp"

namespace test {

/// Time passes by advance(), and by a step with each look, so that whoever waits for a moment comes to it.
class FakeClock final : public ulfm::Clock {
 public:
  explicit FakeClock(std::chrono::nanoseconds step = std::chrono::nanoseconds(1000)) : step_(step) {}
  std::chrono::nanoseconds now() noexcept override { return now_ += step_; }
  void advance(std::chrono::nanoseconds by) { now_ += by; }
  void set_step(std::chrono::nanoseconds step) { step_ = step; }

 private:
  std::chrono::nanoseconds now_{1'000'000'000}, step_;
};

class FakeInlet;

/// What the fake transports of a test have in common.
struct FakeNetwork {
  std::map<std::pair<std::string, std::uint16_t>, FakeInlet*> ports;
  std::size_t room = 1000;       ///< frames of an outlet that are not released
  std::size_t max_frame = 1000;  ///< header and data
  std::size_t when_full = 0;     ///< max_frame once an outlet has found no room, as beside a full lane; 0: the same
  bool shared_room = false;      ///< whether frames lie in room that all senders share
  bool end_is_visible = true;    ///< whether a sender can tell that a port was closed
  bool cut = false;              ///< nothing arrives any more, without a trace
  std::uint64_t pushed = 0;      ///< frames that outlets took
  int connects = 0;
  int failing_connects = 0;  ///< so many fail yet, as without a descriptor
};

struct FakeFrame {
  std::uint32_t origin = 0;
  ulfm::Kind kind = ulfm::Kind::first;
  std::vector<std::byte> header, data;
  std::shared_ptr<std::size_t> in_flight;
};

class FakeInlet final : public ulfm::Inlet {
 public:
  FakeInlet(std::shared_ptr<FakeNetwork> network, std::string card, std::uint16_t number)
      : network_(std::move(network)), key_(std::move(card), number) {
    network_->ports[key_] = this;
  }
  ~FakeInlet() override { network_->ports.erase(key_); }

  bool next(ulfm::Frame& frame) override {
    if (arrived.empty()) return false;
    const std::uint64_t position = next_position_++;
    FakeFrame& held = out_[position] = std::move(arrived.front());
    arrived.pop_front();
    frame = {};
    frame.header = held.header.data();
    frame.data = held.data.data();
    frame.header_length = static_cast<std::uint32_t>(held.header.size());
    frame.length = static_cast<std::uint32_t>(held.data.size());
    frame.kind = held.kind;
    frame.origin = held.origin;
    frame.position = position;
    frame.fresh = std::exchange(origins.at(held.origin).fresh, false);
    frame.shared_room = network_->shared_room;
    return true;
  }
  bool spin(std::uint32_t) override { return has_frame(); }
  bool look() override { return has_frame(); }
  void release(const ulfm::Frame& frame) override {
    const auto it = out_.find(frame.position);
    if (it == out_.end()) throw std::runtime_error("a frame was released twice");
    --*it->second.in_flight;
    out_.erase(it);
  }
  ulfm::OriginInfo origin(std::uint32_t index) const override {
    if (index >= origins.size() || origins[index].forgotten) return {};
    return {origins[index].card, origins[index].port, {.number = 4711}, origins[index].hello};
  }
  void drop_origin(std::uint32_t index) override { origins.at(index).forgotten = true; }
  bool has_frame() override { return !arrived.empty(); }
  ulfm::WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override { return std::exchange(dead, -1); }
  std::int64_t take_broken() override { return broken.exchange(-1); }
  std::size_t max_frame() const override { return network_->max_frame; }

  struct Origin {
    std::string card;
    std::uint16_t port = 0;
    std::vector<std::byte> hello;
    bool fresh = true, forgotten = false;
  };
  std::vector<Origin> origins;
  std::deque<FakeFrame> arrived;
  std::int64_t dead = -1;
  std::atomic<std::int64_t> broken{-1};
  std::size_t held() const { return out_.size(); }

 private:
  std::shared_ptr<FakeNetwork> network_;
  std::pair<std::string, std::uint16_t> key_;
  std::map<std::uint64_t, FakeFrame> out_;
  std::uint64_t next_position_ = 0;
  ulfm::Doorbell doorbell_;
  ulfm::DoorbellSource source_{doorbell_};
};

class FakeOutlet final : public ulfm::Outlet {
 public:
  FakeOutlet(std::shared_ptr<FakeNetwork> network, std::string card, std::uint16_t number, std::uint32_t origin)
      : network_(std::move(network)),
        key_(std::move(card), number),
        origin_(origin),
        inlet_(network_->ports.at(key_)) {}

  bool push(ulfm::Kind kind, std::span<const std::byte> header, ulfm::Gather& data, std::size_t length) override {
    if (header.size() > 255 || (length > ulfm::kLeastFrame && header.size() + length > network_->max_frame))
      throw std::runtime_error("a frame larger than the transport takes");
    if (*in_flight_ >= network_->room) {
      if (network_->when_full != 0) network_->max_frame = network_->when_full;
      return false;
    }
    FakeFrame frame{origin_, kind, {header.begin(), header.end()}, std::vector<std::byte>(length), in_flight_};
    if (length != 0) data.copy(frame.data.data(), length);
    ++network_->pushed;
    if (network_->cut || closed()) return true;
    ++*in_flight_;
    inlet_->arrived.push_back(std::move(frame));
    return true;
  }
  std::size_t max_frame(std::size_t header) const override { return network_->max_frame - header; }
  bool peer_listening() const override { return !network_->end_is_visible || !closed(); }
  bool port_closed() const override { return network_->end_is_visible && closed(); }
  ulfm::ProcessId peer() const override { return {.number = 4711}; }
  bool bye() override {
    ulfm::Gather none;
    return push(ulfm::Kind::bye, {}, none, 0);
  }

 private:
  bool closed() const {
    const auto it = network_->ports.find(key_);
    return it == network_->ports.end() || it->second != inlet_;
  }
  std::shared_ptr<FakeNetwork> network_;
  std::pair<std::string, std::uint16_t> key_;
  std::uint32_t origin_;
  FakeInlet* inlet_;
  std::shared_ptr<std::size_t> in_flight_ = std::make_shared<std::size_t>(0);
};

class FakeTransport final : public ulfm::Transport {
 public:
  FakeTransport(std::shared_ptr<FakeNetwork> network, int number)
      : network_(std::move(network)), card_("fake:" + std::to_string(number)) {}
  const std::string& card() const override { return card_; }
  ulfm::Result<std::unique_ptr<ulfm::Inlet>> open(std::uint16_t number, const ulfm::InletOptions&) override {
    return std::unique_ptr<ulfm::Inlet>(new FakeInlet(network_, card_, number));
  }
  ulfm::Result<std::unique_ptr<ulfm::Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                                      std::span<const std::byte> hello, ulfm::PortCounters&) override {
    const auto it = network_->ports.find({std::string(card), to});
    if (it == network_->ports.end()) return ulfm::fail(ulfm::Errc::not_found, "no such port");
    if (network_->failing_connects != 0) {
      --network_->failing_connects;
      return ulfm::fail(ulfm::Errc::unavailable, "Too many open files");
    }
    ++network_->connects;
    it->second->origins.push_back({card_, from, {hello.begin(), hello.end()}});
    return std::unique_ptr<ulfm::Outlet>(
        new FakeOutlet(network_, std::string(card), to, static_cast<std::uint32_t>(it->second->origins.size() - 1)));
  }

 private:
  std::shared_ptr<FakeNetwork> network_;
  std::string card_;
};

}  // namespace test
