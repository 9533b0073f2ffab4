#pragma once

#include <deque>
#include <optional>

#include "base/clock.hpp"
#include "base/solo_mutex.hpp"
#include "transport/decorator.hpp"
#include "transport/fault/fate.hpp"
#include "transport/fault/fault.hpp"

namespace ulfm::fault {

class FaultOutlet;

/// The outlets of one port, which its inlet moves along. An outlet and the inlet may be used by different threads, so
/// one lock covers them all.
class PortOutlets {
 public:
  explicit PortOutlets(Clock& clock) : clock_(clock) {}
  void add(FaultOutlet& outlet);
  void remove(FaultOutlet& outlet);
  /// Sends the held frames whose time has come.
  void pump();
  /// Until the next held frame is due; kForever when none is held.
  std::chrono::nanoseconds next_deadline();

  SoloMutex& lock() noexcept { return lock_; }
  Clock& clock() noexcept { return clock_; }
  /// Frames held by all of them, changed under the lock: with none an idle turn costs one look, without it. One missed
  /// is found by the next turn.
  std::atomic<std::uint32_t> held{0};

 private:
  Clock& clock_;
  SoloMutex lock_;
  std::vector<FaultOutlet*> outlets_;
};

class FaultOutlet final : public ForwardingOutlet {
 public:
  FaultOutlet(std::unique_ptr<Outlet> under, const FateSource& fates, const FaultPlan& plan,
              std::shared_ptr<FaultCounters> counters, std::shared_ptr<PortOutlets> port);
  ~FaultOutlet() override;

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override;
  bool bye() override;
  bool shares_memory() const override { return false; }

  // For a frame to several, under the port's lock.
  /// Nothing is to happen to the next frame: it may go with those of others. Else it goes by push(), to its fate.
  bool is_spared();
  /// It has gone.
  void went();
  SoloMutex& lock() noexcept { return port_->lock(); }

  // For PortOutlets, under its lock.
  void send_due(std::chrono::nanoseconds now);
  std::chrono::nanoseconds earliest() const noexcept;

 private:
  struct Held {
    Kind kind;
    std::vector<std::byte> bytes;  ///< header, then data
    std::size_t header = 0;
    std::vector<std::uint64_t> turned{};  ///< bits that the network's links turn, not done yet
    std::uint32_t behind = 0;             ///< frames still to go first; 0 when only time counts
    std::chrono::nanoseconds due{0};
    std::size_t length() const noexcept { return bytes.size() - header; }
  };
  bool treat(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  bool forward(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  bool forward(const Held& frame);
  bool fits(std::size_t header, std::size_t length) const;
  std::deque<Held>::iterator lose(const std::deque<Held>::iterator& frame);
  void release_held();
  Held copy(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  void damage(Held& frame) const;
  void hold_back(Held frame);
  void let_one_pass();

  FateSource fates_;
  const bool cards_check_;    // the transport's own: damage is to come between them
  std::optional<Fate> fate_;  // of the frame that found no room
  std::chrono::nanoseconds delay_by_;
  std::shared_ptr<FaultCounters> counters_;
  std::shared_ptr<PortOutlets> port_;
  std::deque<Held> held_;
};

/// A frame to several meets a fate at each of them. Those that are spared get it at once.
class FaultMulticast final : public ForwardingMulticast {
 public:
  FaultMulticast(std::unique_ptr<Multicast> under, std::span<Outlet* const> outlets);
  bool push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
            std::vector<std::uint32_t>& who) override;

 private:
  std::vector<FaultOutlet*> outlets_;
};

}  // namespace ulfm::fault
