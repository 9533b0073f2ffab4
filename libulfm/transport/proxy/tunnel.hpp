// The connection of a process to its proxy on the arena's host: questions and answers, and what its ports and outlets
// share.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "job/stall.hpp"
#include "transport/proxy/address.hpp"
#include "transport/proxy/wire.hpp"

namespace ulfm::proxy {

/// What is known here of a virtual connection whose outlet the proxy has.
struct Sending {
  std::atomic<std::uint32_t> credits{kCredits};
  std::atomic<bool> closed{false}, cut_off{false};
};

/// Any thread.
class Tunnel {
 public:
  /// Has the door start a proxy for process `rank`, and connects to it.
  static Result<std::unique_ptr<Tunnel>> create(const Config& config, const DoorAddress& door, std::uint32_t rank);

  const ProxyPlace& place() const noexcept { return place_; }
  const std::string& card() const noexcept { return card_; }
  /// Of the proxy.
  ProcessId proxy() const { return up_->peer(); }
  Transport& carrier() noexcept { return *carrier_; }

  /// Asks, and waits for the answer, for as long as the proxy exists: one that is stopped goes on some time. A stall
  /// report says so. Errc::peer_failed when the proxy has gone; what the proxy says went wrong.
  Result<Bytes> call(ProxyHead question, std::span<const std::byte> body);
  /// Says something that has no answer, when there is room, which there is soon.
  void notify(const ProxyHead& head, std::span<const std::byte> body);
  /// The same for a frame, in order with all the rest; false when there is no room now.
  bool push(const ProxyHead& head, std::span<const std::byte> header, Gather& data, std::size_t length);

  std::uint32_t add(const std::shared_ptr<Sending>& sending);
  void remove(std::uint32_t number);

  /// Takes in answers and credits that have come.
  void look();
  bool is_alive() { return up_->peer_listening(); }
  std::string why_gone() const;

 private:
  Tunnel() = default;
  struct Answer {
    std::uint32_t id = 0, number = 0;
    Bytes body;
    bool whole = false;
  };
  Result<std::string> ask_door(const DoorAddress& door, std::uint32_t rank);
  Result<void> join();
  void take_in(const ProxyHead& head, std::span<const std::byte> body);
  void report_stall(StallWatch& watch, StallWatch::Clock::time_point since) const;
  void sleep(std::chrono::milliseconds limit);

  PortCounters counters_;  // of connections that no program knows of
  std::unique_ptr<Transport> carrier_;
  std::unique_ptr<Inlet> replies_;
  std::unique_ptr<Outlet> up_;
  std::int64_t stall_seconds_ = 0;
  std::uint32_t rank_ = 0;
  ProxyPlace place_{};
  std::string card_;

  std::mutex call_lock_;  // one question at a time; before the two others
  std::mutex up_lock_;    // of up_
  std::mutex down_lock_;  // of replies_ and what follows
  std::uint32_t questions_ = 0, next_ = 1;
  Answer answer_;
  std::string proxy_card_;
  std::map<std::uint32_t, std::shared_ptr<Sending>> sendings_;
};

}  // namespace ulfm::proxy
