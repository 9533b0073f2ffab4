#pragma once

#include <algorithm>
#include <vector>

#include "base/doorbell_source.hpp"
#include "fabric/engine/engine.hpp"
#include "transport/contract.hpp"
#include "transport/emulated/records.hpp"

namespace ulfm::emulated {

/// Receiving side of a port: what the interface of its node has put into its box, read where the sender wrote it.
class EmulatedInlet final : public Inlet {
 public:
  /// The port's box has memory, and nobody has it open.
  EmulatedInlet(fabric::FabricEngine& engine, std::uint16_t number);
  ~EmulatedInlet() override;

  bool next(Frame& frame) override;
  bool next_awaited(Frame& frame) override;
  bool spin(std::uint32_t turns) override;
  bool look() override { return spin(1); }
  void release(const Frame& frame) override;
  /// A pool is shared by all senders of the port.
  OriginInfo origin(std::uint32_t index) const override;
  void drop_origin(std::uint32_t index) override;
  bool has_frame() override;
  WakeSource& wake_source() override { return wake_source_; }
  std::int64_t find_dead() override;
  std::int64_t take_broken() override;
  std::chrono::nanoseconds next_deadline() override {
    return std::min<std::chrono::nanoseconds>(kForever, engine_.next_deadline());
  }
  std::string why_broken() override { return engine_.why_broken(); }
  std::size_t max_frame() const override { return arena_.sizes().slot_bytes; }

 private:
  /// Frames for several that a port may have in any of their sender's slots.
  static constexpr std::uint32_t kHeldOfMany = 2;
  struct Origin {
    RecordUse use;
    bool connected = false;
    bool fresh = false;
    bool cut_off = false;
  };
  bool ready() const;
  bool take(Frame& frame);
  bool next_timed(fabric::VirtualClock& clock, Frame& frame);
  bool take_timed(fabric::VirtualClock& clock, Frame& frame);
  bool describe(std::uint32_t index, Frame& frame);
  bool is_scarce(std::uint32_t index) const;
  bool adopt(RecordUse use, Frame& frame);
  bool locate(fabric::Slot& slot, Frame& frame);
  bool locate_share(fabric::Slot& slot, Frame& frame);
  std::int64_t place_in(fabric::Slot& slot) const;
  void cut_off(std::uint32_t origin);
  void give_back(std::uint32_t slot);
  void give_back_share(std::uint32_t slot);
  void drain();
  RecordUse record_of(fabric::Slot& slot) const;
  bool has_frame_of(std::uint32_t from) const;

  fabric::FabricEngine& engine_;
  fabric::FabricArena& arena_;
  std::uint16_t number_;
  fabric::PortBox& box_;
  DoorbellSource wake_source_;
  std::uint64_t position_ = 0;
  std::vector<Origin> origins_;
  std::vector<std::uint32_t> by_record_;  // origin + 1; 0: not met
  std::vector<std::uint32_t> unused_;     // of origins_
  std::vector<std::uint32_t> broken_;     // to be reported
  std::uint32_t check_next_ = 0;
  std::vector<std::uint32_t> held_;  // by endpoint: its slots that those above have and have not released
};

}  // namespace ulfm::emulated
