#pragma once

#include <vector>

#include "fabric/engine/engine.hpp"
#include "transport/contract.hpp"

namespace ulfm::emulated {

/// Several virtual connections over a network that copies frames: one slot for all of them.
class EmulatedMulticast final : public Multicast {
 public:
  /// nullptr when the network does not copy, or when a slot has no room for so many receivers beside data.
  static std::unique_ptr<Multicast> make(fabric::FabricEngine& engine, std::span<Outlet* const> outlets);
  ~EmulatedMulticast() override;
  /// Most data bytes of a frame for so many; 0 when the network does not copy, or when their lists leave less than a
  /// quarter of a slot.
  static std::size_t frame(fabric::FabricEngine& engine, std::size_t receivers, std::size_t header);
  /// The same for a network that copies, with slots of so many bytes.
  static std::size_t frame(std::size_t slot_bytes, std::size_t receivers, std::size_t header) noexcept;

  bool push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
            std::vector<std::uint32_t>& who) override;
  std::size_t max_frame(std::size_t header) const override;
  void look_for_dead() override { engine_.reclaim(); }

 private:
  EmulatedMulticast(fabric::FabricEngine& engine, std::span<Outlet* const> outlets);
  std::int64_t take_slot();

  fabric::FabricEngine& engine_;
  std::vector<Outlet*> outlets_;
  std::uint32_t sender_;
};

}  // namespace ulfm::emulated
