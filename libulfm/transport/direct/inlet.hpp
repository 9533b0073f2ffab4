#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/detour.hpp"
#include "base/doorbell_source.hpp"
#include "base/segment.hpp"
#include "transport/direct/layout.hpp"
#include "transport/direct/pool.hpp"

namespace ulfm::direct {

/// Receiving side of a port: its segment, the open ring, and the lanes senders have claimed.
class DirectInlet final : public Inlet {
 public:
  static Result<std::unique_ptr<DirectInlet>> create(std::uint16_t number, const PortGeometry& geometry,
                                                     std::uint64_t token, std::function<void()> on_close);
  ~DirectInlet() override;

  bool next(Frame& frame) override;
  bool spin(std::uint32_t turns) override;
  bool look() override;
  void release(const Frame& frame) override;
  OriginInfo origin(std::uint32_t index) const override;
  void drop_origin(std::uint32_t index) override;
  bool has_frame() override;
  WakeSource& wake_source() override { return wake_source_; }
  std::int64_t find_dead() override;
  std::int64_t take_broken() override;
  std::size_t max_frame() const override { return geometry_.max_frame; }
  void use_counters(PortCounters& counters) override { counters_ = &counters; }

  /// Opens the pools of groups. Before the first frame.
  void use_opener(const Opener& opener) { opener_ = opener; }
  /// The memory that this port shares with others. Before the first frame.
  void use_exchanges(std::shared_ptr<ExchangeTable> table) { exchanges_ = std::move(table); }
  int segment_fd() const { return segment_.fd(); }

 private:
  struct Lane {
    LaneConsumer consumer;
    std::shared_ptr<Exchange> exchange;  ///< with its sender's port; nullptr without one
    std::uint32_t number = 0;
    std::uint32_t origin = 0;
    std::uint32_t held = 0;  ///< frames taken and not released
    LaneTurns turns;         ///< whether its sender has gone round it
    bool leaving = false;    ///< forgotten; goes with the last held frame
  };
  struct Origin {
    std::shared_ptr<Exchange> exchange;  ///< until it goes on to the lane
    bool connected = false;
    bool fresh = false;    ///< no frame of it has been handed out yet
    bool cut_off = false;  ///< wrote nonsense
    bool said_bye = false;
    bool dropped = false;     ///< those above have done with it; what comes of it is not handed out
    bool unreadable = false;  ///< nonsense in its lane, where nothing can be found any more
    std::int32_t lane = -1;   ///< index in lanes_
  };
  static constexpr std::uint32_t kOpenSource = 0xffffffff;
  static constexpr int kBurst = 32;

  DirectInlet(const PortGeometry& geometry) : geometry_(geometry), layout_(geometry) {}
  PortHeader& header() const { return *segment_.at<PortHeader>(0); }
  bool next_in_lane(std::uint32_t index, Frame& frame);
  bool next_any(Frame& frame);
  void hand_out(std::uint32_t slot, Frame& frame);
  void adopt_pool(const Frame& frame);
  bool locate_shared(Frame& frame);
  void adopt_exchange(const Lane& lane, const Frame& frame);
  Peek take_from(Lane& lane, Frame& frame);
  void release_shared(const Frame& frame);
  void drop_pools(std::uint32_t origin);
  bool no_message(std::uint32_t index, Peek peek, Frame& frame);
  void pin(const Lane& lane);
  bool next_in_open_ring(Frame& frame);
  bool adopt(Frame& frame);
  bool accept_lane(const Frame& frame);
  void cut_off(std::uint32_t origin);
  void drop_lane(std::uint32_t slot);
  void free_lane(std::uint32_t number);
  void free_record(std::uint32_t origin);
  void settle(std::uint32_t origin);
  void settle_dropped();
  void discard_lane(std::uint32_t origin);
  bool has_frame_of(std::uint32_t origin);
  bool has_ended(std::uint32_t origin) const;
  void clear_origin(std::uint32_t origin);
  PeerRecord& record(std::uint32_t origin) const { return peer_record(segment_.base(), layout_, origin); }
  LaneMemory lane_memory(std::uint32_t number) const {
    return direct::lane_memory(segment_.base() + layout_.lanes + number * layout_.lane_size,
                               lane_control(segment_.base(), layout_, number), geometry_);
  }
  void deactivate(std::int32_t slot);
  void leave_lane(const Frame& frame);
  bool pass_mark(std::uint32_t slot, const Frame& frame);
  bool return_to_lane(std::int32_t slot, std::uint32_t number);

  PortGeometry geometry_;
  Layout layout_;
  Segment segment_;
  DoorbellSource wake_source_;
  OpenConsumer open_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by slot; null where a lane was dropped
  std::vector<std::uint32_t> active_;         // slots of lanes_ that hold one
  std::vector<Origin> origins_;
  std::vector<std::unique_ptr<ReadPool>> pools_;
  std::shared_ptr<ExchangeTable> exchanges_;
  Opener opener_;
  std::uint32_t hot_ = 0;    // position in active_ of the lane that spoke last
  std::uint32_t sweep_ = 0;  // where the rotating look goes on
  int burst_ = 0;
  PortCounters* counters_ = nullptr;
  std::vector<std::uint32_t> broken_;   // to be reported
  std::vector<std::uint32_t> dropped_;  // origins that may still write
  std::uint32_t check_next_ = 0;
  std::function<void()> on_close_;
};

}  // namespace ulfm::direct
