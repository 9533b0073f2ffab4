#pragma once

#include "base/segment.hpp"
#include "transport/direct/exchange.hpp"
#include "transport/direct/layout.hpp"

namespace ulfm::direct {

/// Descriptors that a process passes over its control channel.
inline constexpr std::uint32_t kDirectory = 0;
constexpr std::uint32_t port_segment(std::uint16_t port) { return 1u + port; }

/// From here on what groups and exchanges pass.
inline constexpr std::uint32_t kFirstPassed = port_segment(kPortsPerProcess);

class Pool;
struct PoolNotice;

/// Opens segments of other processes: by a descriptor that the process passes when there is a control channel that can
/// do that, through /proc otherwise.
class Opener {
 public:
  Opener() = default;
  explicit Opener(control::Control* control) : control_(control) {}
  /// `fd` is the segment's descriptor over there, `what` its number on the control channel.
  /// At most its first `most` bytes are mapped.
  Result<Segment> open(const DirectCard& of, int fd, std::uint32_t what, std::size_t most = Segment::kWhole) const;
  /// The descriptor of that port's segment, from the process's directory.
  Result<int> look_up(const DirectCard& of, std::uint16_t port) const;
  /// The pool of a group.
  Result<Pool> open_pool(const DirectCard& of, const PoolNotice& notice) const;

 private:
  control::Control* control_ = nullptr;
};

/// Sending side of a virtual connection: first by the open ring, then, when it talks a lot, by a lane of its own.
class DirectOutlet final : public Outlet {
 public:
  static Result<std::unique_ptr<DirectOutlet>> connect(const DirectCard& to, std::uint16_t port, const DirectCard& from,
                                                       std::uint16_t from_port, std::span<const std::byte> hello,
                                                       PortCounters& counters, const Opener& opener = {});

  ~DirectOutlet() override;

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override;
  bool has_room() const override { return has_lane_ && !detour_ ? lane_.has_news() : open_.has_room(); }
  WaitWord await_room() override {
    return has_lane_ && !detour_ ? lane_control(segment_.base(), layout_, lane_number_).room.arm()
                                 : header().open_room.arm();
  }
  std::size_t max_frame(std::size_t header) const override;
  bool peer_listening() const override;
  bool port_closed() const override;
  bool cut_off() const override;
  ProcessId peer() const override { return {.number = peer_.pid}; }
  bool shares_memory() const override { return true; }
  bool bye() override;
  /// The memory that this connection shares with the one that comes back. Before the first push.
  void use_exchange(std::shared_ptr<Exchange> exchange) { exchange_ = std::move(exchange); }
  /// A frame that fits into a cell, by the lane, which is claimed for it. False when that cannot be now.
  bool push_in_lane(Kind kind, std::span<const std::byte> header, const void* bytes, std::size_t length);

 private:
  DirectOutlet(Segment segment, const PortGeometry& geometry, const DirectCard& peer, PortCounters& counters)
      : segment_(std::move(segment)),
        geometry_(geometry),
        layout_(geometry),
        peer_(peer),
        counters_(counters),
        open_(open_memory(segment_.base(), geometry_, layout_)) {}
  PortHeader& header() const { return *segment_.at<PortHeader>(0); }
  /// The segment, as far as that record is mapped in it.
  const Segment& view_of(std::uint32_t record) const;
  PeerRecord& record() const { return peer_record(view_of(origin_).base(), layout_, origin_); }
  Result<void> map_record(std::uint32_t index);
  Result<void> introduce(const DirectCard& from, std::uint16_t from_port, std::span<const std::byte> hello);
  Result<std::uint32_t> claim_record();
  void sent_in_lane();
  void claim_lane();
  bool extend_lane();
  bool push_any(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  bool push_exchanged(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  void announce_exchange(bool is_long);
  bool push_full(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  bool may_detour();
  bool return_to_lane();
  bool announce(std::uint32_t lane);
  Result<std::int64_t> claim_lane_number();
  bool push_open(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);

  Segment segment_;        // its beginning
  Segment record_view_;    // with all records, when the one of this sender lies behind that
  Segment lane_view_;      // with the lane
  PortGeometry geometry_;  // a copy: the shared one could be changed under us
  Layout layout_;
  DirectCard peer_;
  PortCounters& counters_;
  OpenProducer open_;
  LaneProducer lane_;
  std::shared_ptr<Exchange> exchange_;  // nullptr without one
  std::uint64_t received_ = 0;          // by this process, when the last frame went into the lane
  std::uint32_t origin_ = 0;
  std::uint32_t lane_number_ = 0;
  std::uint32_t open_frames_ = 0;
  std::uint32_t times_full_ = 0;  // the open ring, when this sender had a frame for it
  bool has_lane_ = false;
  bool detour_ = false;  // the lane is stopped by a frame the receiver holds
  bool may_claim_ = true;
  bool introduced_ = false;
};

}  // namespace ulfm::direct
