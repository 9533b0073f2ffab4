#pragma once

#include "fabric/engine/engine.hpp"
#include "transport/contract.hpp"
#include "transport/emulated/card.hpp"
#include "transport/emulated/records.hpp"

namespace ulfm::emulated {

/// Sending side of a virtual connection: fills slots and leaves them to the interface of its node.
class EmulatedOutlet final : public Outlet {
 public:
  static Result<std::unique_ptr<EmulatedOutlet>> connect(fabric::FabricEngine& engine, const EmulatedCard& to,
                                                         std::uint16_t port, std::uint16_t from_port,
                                                         std::span<const std::byte> hello, PortCounters& counters);
  ~EmulatedOutlet() override;

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override;
  std::size_t max_frame(std::size_t header) const override { return engine_.arena().sizes().slot_bytes - header; }
  bool peer_listening() const override;
  bool port_closed() const override;
  bool cut_off() const override;
  ProcessId peer() const override { return {.number = pid_}; }
  bool expect_noise() override { return checks_ = engine_.model().check_units() != 0; }
  void turn_bits(std::span<const std::uint64_t> bits) override { turned_.assign(bits.begin(), bits.end()); }
  bool bye() override;

  // For frames to several.
  /// This connection as one of a frame's receivers, which is about to be sent.
  void describe(fabric::Receiver& receiver) noexcept {
    has_sent_ = true;
    receiver.record = use_.record, receiver.record_generation = use_.generation;
    receiver.port_generation = generation_;
    receiver.to = static_cast<std::uint16_t>(to_.endpoint), receiver.port = static_cast<std::uint8_t>(port_);
  }
  PortCounters& counters() const noexcept { return counters_; }
  /// Puts a slot that has been filled on its way; in virtual time that costs its sender some.
  static void submit(fabric::FabricEngine& engine, std::uint32_t slot, Kind kind, std::size_t bytes);

 private:
  EmulatedOutlet(fabric::FabricEngine& engine, const EmulatedCard& to, std::uint16_t port, PortCounters& counters)
      : engine_(engine), to_(to), port_(port), counters_(counters), sender_(engine.slots().add_sender()) {}
  bool has_died();
  void pass_noise(std::uint32_t slot, std::byte* bytes);
  Result<void> introduce(std::uint16_t from_port, std::span<const std::byte> hello);

  fabric::FabricEngine& engine_;
  EmulatedCard to_;
  std::uint16_t port_;
  PortCounters& counters_;
  std::uint32_t sender_;
  std::uint32_t generation_ = 0;  // of the port there
  RecordUse use_;
  bool has_sent_ = false;  // a frame; then the receiver forgets the connection
  pid_t pid_ = 0;
  bool said_bye_ = false;
  bool died_ = false;
  std::int64_t looked_ = 0;            // the host's time at the last look whether the peer runs
  bool checks_ = false;                // frames have check units that count
  std::vector<std::uint64_t> turned_;  // bits of the next frame
};

}  // namespace ulfm::emulated
