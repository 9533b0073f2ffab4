// What the shared segments of the direct transport look like. Both sides compute the offsets from the geometry, and
// the sender checks that they lie within the segment it mapped.
//
//   directory segment, one per process (its descriptor is in the card):   Directory
//   port segment, one per open port:
//
//     PortHeader | slots of the open ring | lane controls | peer records | lanes (cells, bytes) ...
//
// Only what is used owns memory: peer records and lanes are committed by whoever claims them. What each sender uses is
// at the beginning, so a sender maps that and no more until it claims a lane: a mapping that spans many megabytes costs
// page tables of its own.
#pragma once

#include <bit>

#include "base/align.hpp"
#include "base/ring.hpp"
#include "transport/contract.hpp"

namespace ulfm::direct {

inline constexpr std::uint64_t kMagic = 0x3130'7472'6f70'756cull;  // "lupport01", read backwards
inline constexpr std::uint32_t kVersion = 6;

/// Sizes of a port's receiving side.
struct PortGeometry {
  std::uint32_t depth = 32;         ///< slots of the open ring; rounded up to a power of two
  std::uint32_t slot_bytes = 2048;  ///< per slot, cell included; rounded up to lines
  std::uint32_t lanes = 64;         ///< lanes granted at most; 0 keeps everyone in the open ring
  std::uint32_t lane_cells = 256;
  std::uint32_t lane_bytes = 4 * 1024 * 1024;
  std::uint32_t lane_after = 8;  ///< frames a sender puts into the open ring before it claims a lane
  /// 1: and only after it has found the open ring full. For a receiver that shares its core (decision 0033).
  std::uint32_t lane_when_full = 0;
  std::uint32_t max_frame = 32 * 1024;
  std::uint32_t peers = 4096;  ///< senders known at one time

  /// The settings' sizes.
  static PortGeometry from(const Config& config);
  /// These sizes, but for what `options` asks for.
  PortGeometry with(const InletOptions& options) const;
};

/// Identity of a process and its directory.
struct DirectCard {
  std::uint64_t host = 0;
  std::uint64_t token = 0;
  std::uint64_t started = 0;
  std::int32_t pid = 0;
  std::int32_t fd = -1;
};
std::string encode(const DirectCard& card);
Result<DirectCard> decode(std::string_view text);

struct DirectoryEntry {
  /// Odd while the port is open. Changed under the owner's lock; the release that opens it pairs with look_up(): the
  /// descriptor is there and its segment is filled in. Closing publishes nothing.
  std::atomic<std::uint32_t> generation;
  std::int32_t fd;
};

/// As a sender reads it, by pread(2): to map it would cost more than all the rest of connecting.
struct EntryCopy {
  std::uint32_t generation;
  std::int32_t fd;
};
static_assert(sizeof(EntryCopy) == sizeof(DirectoryEntry));

struct DirectoryHead {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t ports;
  std::uint64_t token;
};

struct Directory {
  DirectoryHead head;
  DirectoryEntry entry[kPortsPerProcess];
};

/// refused: the receiver takes nothing from this sender any more. left: the sender knows, and writes nothing any more.
/// Until then, or its end, nobody else gets the record, for what it still writes would be taken for theirs.
enum class PeerState : std::uint32_t { free, claimed, ready, refused, left };

/// A claimed record names the process, so that a claim whose process has died can be found.
constexpr std::uint32_t peer_word(PeerState state, pid_t claimer = 0) {
  return static_cast<std::uint32_t>(state) | static_cast<std::uint32_t>(claimer) << 8;
}
constexpr PeerState peer_state(std::uint32_t word) { return static_cast<PeerState>(word & 0xff); }
constexpr pid_t peer_claimer(std::uint32_t word) { return static_cast<pid_t>(word >> 8); }

/// A sender known to a port.
struct alignas(64) PeerRecord {
  /// A peer_word(). ready pairs with DirectInlet::adopt: the record is filled in. free, by DirectInlet::forget, pairs
  /// with DirectOutlet::claim_record: it has been read. left, by ~DirectOutlet, pairs with DirectInlet::settle: nothing
  /// is written any more.
  std::atomic<std::uint32_t> state;
  std::uint32_t generation;  ///< of the record; counts its users
  DirectCard card;
  std::uint16_t port;
  std::uint16_t hello_length;
  std::byte hello[kHelloLimit];
};

struct alignas(64) LaneControl {
  std::atomic<std::uint64_t> consumed;  ///< see LaneMemory
  /// Origin + 1; 0 is free. DirectInlet::drop_lane's release pairs with claim_lane_number(): the lane is zeroed, the
  /// counts are 0. A sender that gives it back unused hands that on, so it releases too.
  alignas(64) std::atomic<std::uint32_t> owner;
  std::atomic<std::uint64_t> pinned;  ///< the receiver has taken everything up to here but holds an earlier frame
  RoomBell room;
};

struct PortHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t number;
  std::uint64_t token;  ///< of the owning process
  PortGeometry geometry;
  Doorbell doorbell;
  alignas(64) std::atomic<std::uint64_t> open_tail;   ///< see OpenMemory
  alignas(64) std::atomic<std::uint32_t> peers_used;  // these four: see claim_place()
  std::atomic<std::uint32_t> peers_freed;
  std::atomic<std::uint32_t> lanes_used;
  std::atomic<std::uint32_t> lanes_freed;
  std::atomic<std::uint32_t> closed;  ///< ~DirectInlet to port_closed(): what the owner has sent before is there
  RoomBell open_room;                 ///< of the open ring
};

/// Offsets within a port segment.
struct Layout {
  explicit Layout(const PortGeometry& g) {
    slots = up_to(sizeof(PortHeader), kPage);
    controls = up_to(slots + std::size_t{g.depth} * g.slot_bytes, kPage);
    peers = up_to(controls + std::size_t{g.lanes} * sizeof(LaneControl), kPage);
    lanes = up_to(peers + std::size_t{g.peers} * sizeof(PeerRecord), kPage);
    lane_size = up_to(std::size_t{g.lane_cells} * sizeof(Cell) + g.lane_bytes, kPage);
    end = lanes + std::size_t{g.lanes} * lane_size;
  }
  std::size_t slots, controls, peers, lanes, lane_size, end;
};

/// What lies in front of the peer records is mapped at once, but for the far end of a ring that was made very long: it
/// may never be used.
inline constexpr std::size_t kMostPrefault = 256 * 1024;

/// Brings the numbers into the form the rings need (powers of two, whole lines).
PortGeometry normalised(PortGeometry g);
/// The numbers are in that form and within bounds; what a sender checks before it believes a header.
bool is_sane(const PortGeometry& g);

inline OpenMemory open_memory(std::byte* base, const PortGeometry& g, const Layout& at) {
  auto* header = reinterpret_cast<PortHeader*>(base);
  return {base + at.slots, &header->open_tail, g.depth, g.slot_bytes};
}
inline LaneControl& lane_control(std::byte* base, const Layout& at, std::uint32_t lane) {
  return reinterpret_cast<LaneControl*>(base + at.controls)[lane];
}
/// The lane at `start`.
inline LaneMemory lane_memory(std::byte* start, LaneControl& control, const PortGeometry& g) {
  return {reinterpret_cast<Cell*>(start),
          start + std::size_t{g.lane_cells} * sizeof(Cell),
          &control.consumed,
          g.lane_cells,
          g.lane_bytes,
          &control.room};
}
inline PeerRecord& peer_record(std::byte* base, const Layout& at, std::uint32_t index) {
  return reinterpret_cast<PeerRecord*>(base + at.peers)[index];
}

}  // namespace ulfm::direct
