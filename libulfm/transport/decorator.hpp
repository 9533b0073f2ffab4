// What every decorator has in common: it owns what it is put around, and hands each call of the contract on to it. A
// decorator derives from these and overrides what it changes, so a call that it knows nothing of gets through.
//
// Who adds a virtual function to the contract adds it here too: a default there must not hide what lies below.
// A call costs one virtual call in the decorator and one below it, whether the decorator overrides it or not.
#pragma once

#include "base/wait_word.hpp"
#include "transport/contract.hpp"

namespace ulfm {

class ForwardingInlet : public Inlet {
 public:
  explicit ForwardingInlet(std::unique_ptr<Inlet> under) : under_(std::move(under)) {}

  bool next(Frame& frame) override { return under_->next(frame); }
  bool spin(std::uint32_t turns) override { return under_->spin(turns); }
  bool look() override { return under_->look(); }
  void release(const Frame& frame) override { under_->release(frame); }
  OriginInfo origin(std::uint32_t index) const override { return under_->origin(index); }
  void drop_origin(std::uint32_t index) override { under_->drop_origin(index); }
  bool has_frame() override { return under_->has_frame(); }
  WakeSource& wake_source() override { return under_->wake_source(); }
  std::int64_t find_dead() override { return under_->find_dead(); }
  std::int64_t take_broken() override { return under_->take_broken(); }
  std::string why_broken() override { return under_->why_broken(); }
  std::chrono::nanoseconds next_deadline() override { return under_->next_deadline(); }
  bool take_given_up(Error& error) override { return under_->take_given_up(error); }
  std::size_t max_frame() const override { return under_->max_frame(); }
  void use_counters(PortCounters& counters) override { under_->use_counters(counters); }

 protected:
  const std::unique_ptr<Inlet> under_;
};

class ForwardingOutlet : public Outlet {
 public:
  explicit ForwardingOutlet(std::unique_ptr<Outlet> under) : under_(std::move(under)) {}

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    return under_->push(kind, header, data, length);
  }
  bool has_room() const override { return under_->has_room(); }
  WaitWord await_room() override { return under_->await_room(); }
  std::size_t max_frame(std::size_t header) const override { return under_->max_frame(header); }
  bool peer_listening() const override { return under_->peer_listening(); }
  bool is_near() const override { return under_->is_near(); }
  bool has_broken() const override { return under_->has_broken(); }
  bool port_closed() const override { return under_->port_closed(); }
  bool cut_off() const override { return under_->cut_off(); }
  ProcessId peer() const override { return under_->peer(); }
  bool shares_memory() const override { return under_->shares_memory(); }
  std::size_t eager_limit() const override { return under_->eager_limit(); }
  bool expect_noise() override { return under_->expect_noise(); }
  void turn_bits(std::span<const std::uint64_t> bits) override { under_->turn_bits(bits); }
  bool bye() override { return under_->bye(); }
  Outlet& under() const noexcept { return *under_; }

 protected:
  const std::unique_ptr<Outlet> under_;
};

class ForwardingMulticast : public Multicast {
 public:
  explicit ForwardingMulticast(std::unique_ptr<Multicast> under) : under_(std::move(under)) {}

  bool push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
            std::vector<std::uint32_t>& who) override {
    return under_->push(kind, headers, data, length, who);
  }
  std::size_t max_frame(std::size_t header) const override { return under_->max_frame(header); }
  void look_for_dead() override { under_->look_for_dead(); }

 protected:
  const std::unique_ptr<Multicast> under_;
};

/// What is below the outlets that a decorator has made.
template <typename Decorated>
std::vector<Outlet*> outlets_below(std::span<Outlet* const> outlets) {
  std::vector<Outlet*> below;
  for (Outlet* outlet : outlets) below.push_back(&static_cast<Decorated*>(outlet)->under());
  return below;
}

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> under) : under_(std::move(under)) {}

  const std::string& card() const override { return under_->card(); }
  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override {
    return under_->open(number, options);
  }
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    return under_->connect(card, to, from, hello, counters);
  }
  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override { return under_->group(outlets); }
  std::size_t multicast_frame(std::size_t receivers, std::size_t header) const override {
    return under_->multicast_frame(receivers, header);
  }
  MulticastCost multicast_cost() const override { return under_->multicast_cost(); }
  bool reachable(std::string_view card) const override { return under_->reachable(card); }
  void use_card(std::string_view card) override { under_->use_card(card); }
  void introduce(std::string_view job_id, std::uint32_t rank, std::string_view card) override {
    under_->introduce(job_id, rank, card);
  }
  std::string card_of(std::string_view job_id, std::uint32_t rank) const override {
    return under_->card_of(job_id, rank);
  }
  control::Control* control() override { return under_->control(); }
  void use_control(control::Control& control) override { under_->use_control(control); }
  control::Fd descriptor(std::uint32_t what) override { return under_->descriptor(what); }
  std::vector<NamedCount> counts() const override { return under_->counts(); }
  std::string shared_statistics() override { return under_->shared_statistics(); }

 protected:
  /// Shared: what a decorator has made may need the transport when the decorator is gone.
  std::shared_ptr<Transport> under_;
};

}  // namespace ulfm
