// The arena of an emulated interconnect: one shared segment for a job, holding the network interfaces of its nodes and
// the model between them.
//
//   header | endpoints | sending queues | slot progress | virtual time | model | records | port boxes | slots
//
// The names are those of the paper's card (Zhou et al. 1999, section 3; Li, section 3.3): a *slot* is an entry of the
// send control table together with its buffer; a *sending queue* holds numbers of slots, pushed by the process, taken
// by the interface; a *port box* is an entry of the receive control table: the queue of what has arrived for a port. A
// *record* says who is at the sending end of a virtual connection.
//
// Everything is found by index. A process writes its own slots and its own sending queue; what is between is written
// by the process that holds the engine. Every value that is read and used as an index is checked first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/doorbell.hpp"
#include "base/segment.hpp"
#include "fabric/engine/time.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric {

inline constexpr std::uint64_t kArenaMagic = 0x3130'616e'6572'6175ull;
inline constexpr std::uint32_t kArenaVersion = 12;
inline constexpr std::uint32_t kMaxEndpoints = 1024;
inline constexpr std::uint32_t kPorts = 64;
inline constexpr std::size_t kSlotInline = 32;  ///< header and data that travel in the slot's own line
inline constexpr std::size_t kHelloBytes = 160;
inline constexpr std::size_t kCardBytes = 256;
inline constexpr char kArenaLabel[] = "ulfm-fabric";            ///< of its memory file
inline constexpr std::uint32_t kEngineProcess = kMaxEndpoints;  ///< in place of an endpoint: a process of its own
inline constexpr std::uint32_t kObservers = kMaxEndpoints + 1;  ///< and from here on: process number of who only reads

struct ArenaSizes {
  std::uint32_t processes = 0;
  std::uint32_t nodes = 0;        ///< the host's end, if it has one, is the last
  std::uint32_t hosts = 0;        ///< 1: the last process is a host, which starts the others
  std::uint32_t gateways = 0;     ///< 1: and it is at the gateway of node 0
  std::uint32_t endpoints = 0;    ///< processes there can be, spawned ones included
  std::uint32_t slots = 0;        ///< per endpoint, a power of two
  std::uint32_t slot_bytes = 0;   ///< header and data of a frame
  std::uint32_t frame_bytes = 0;  ///< most that travels as one frame of the network
  std::uint32_t records = 0;
  std::uint32_t timed = 0;        ///< 1: in virtual time
  std::uint32_t unread = 0;       ///< bytes that a process may leave unread before its node is stalled; 0: any
  std::uint32_t box_entries = 0;  ///< a power of two, not below all slots together: no box is ever full
  std::uint64_t model_bytes = 0;

  std::uint32_t pieces() const noexcept { return (slot_bytes + frame_bytes - 1) / frame_bytes; }
  std::uint32_t all_slots() const noexcept { return endpoints * slots; }
  /// Of the process that starts the others.
  bool is_host(std::uint32_t endpoint) const noexcept { return hosts != 0 && endpoint + 1 == processes; }
  /// For a sentence: "the host" or "rank 3".
  std::string name_of(std::uint32_t endpoint) const;
};

enum class EndpointState : std::uint32_t { free, claimed, ready, left };

/// What lies unread in the memory of a process's card; see FabricEngine::came().
/// A line each for what the engine writes with every frame, what its process does, and what both only look at.
struct alignas(64) Unread {
  enum Asks : std::uint32_t { nothing, more, all };
  /// Bytes that have come through the network, ever. The engine's; its process compares it with `read`.
  std::atomic<std::uint64_t> came;
  std::uint64_t admitted;   ///< the engine's: up to there bytes come in, whatever is unread
  std::uint64_t seen_read;  ///< the engine's: `read` when it looked last, which spares a look while that is enough
  /// 1: its node takes nothing. The engine's. Either the process, which has counted in `read`, sees it, or the engine
  /// sees what was read: seq_cst on both sides.
  alignas(64) std::atomic<std::uint32_t> stalled;
  std::atomic<std::uint32_t> asks;              ///< Asks; set before the endpoint is noted in `pending`
  alignas(64) std::atomic<std::uint64_t> read;  ///< bytes of `came` that were read, by any thread of the process
};

struct alignas(64) Endpoint {
  /// claimed: pid and started are those of the claimer. ready: node, pid, token and the rest are filled in; the store
  /// in claim_endpoint() pairs with every reader that looks for it. left: its process does not touch it any more; the
  /// store in ~FabricEngine() pairs with may_reuse().
  std::atomic<EndpointState> state;
  std::uint32_t node;
  std::int32_t pid;
  std::uint64_t started;
  std::uint64_t token;
  /// Odd while the port is open. The release of EmulatedInlet's constructor pairs with EmulatedOutlet::connect,
  /// is_open(), announce() and wake_all(): the box has memory. That of its end pairs with port_closed(): what the
  /// process has sent before is in its queue.
  std::atomic<std::uint32_t> generation[kPorts];
  /// Generations below it are of ports of processes that had this endpoint before. Its release, in claim_endpoint(),
  /// pairs with is_of_earlier(): those have ended, and have given back what they read.
  std::atomic<std::uint32_t> first_generation;
  /// Hash of its job's name; 0: it has not shown its card. introduce() to card_of(): rank and card are filled in.
  std::atomic<std::uint64_t> job_id;
  std::uint32_t rank;  ///< in that job
  char card[kCardBytes];
  alignas(64) std::uint32_t taken;  ///< the engine's: position in the sending queue
  /// Paced models: frames on their way to this process. The engine's; the process itself only reads how soon it need
  /// look again, which orders nothing.
  std::atomic<std::uint32_t> coming;
  Unread unread;
};

/// `ready`: filled in, and its receiver has not met it. `known`: its receiver has.
enum class RecordState : std::uint32_t { free, claimed, ready, known };

/// The sending end of a virtual connection, one direction.
struct alignas(64) Record {
  /// Its RecordState, and above it the number of its users so far, which no two have in common: whoever gives it back
  /// means one of them. ready pairs with meet_record(): the record is filled in. free pairs with claim_record(): it has
  /// been read.
  std::atomic<std::uint64_t> use;
  std::uint32_t from;        ///< endpoint
  std::uint32_t to;          ///< endpoint
  std::uint64_t from_token;  ///< of the process there: the endpoint may be another's by now
  std::uint64_t to_token;    ///< the same
  std::int32_t from_pid;
  std::uint32_t to_generation;  ///< of the port
  std::uint16_t from_port;
  std::uint16_t to_port;
  std::uint16_t hello_length;
  std::byte hello[kHelloBytes];
};

struct PortBox {
  Doorbell bell;
  alignas(64) std::uint64_t delivered;  ///< the engine's: entries put in so far
  /// In virtual time: when the port was opened and closed last. Its process's, before it changes the generation.
  std::uint64_t opened_at, closed_at;
  /// put_into_box() to EmulatedInlet::ready(): the slot is filled in.
  alignas(64) std::atomic<std::uint32_t> entries[1];
};

enum class SlotState : std::uint32_t { free, used };

/// What travels: one frame of the transport, with the line that describes it.
struct alignas(64) Slot {
  /// free, by give_back() of the engine or of an inlet, pairs with SendSlots::take() and may_reuse(): it has been read.
  /// used is set by its owner alone, under a lock, and only looked at by others.
  std::atomic<SlotState> state;
  std::uint32_t record;
  std::uint32_t record_generation;
  std::uint32_t port_generation;
  std::uint32_t length;  ///< data, header not counted
  std::uint16_t to;      ///< endpoint
  std::uint8_t port;
  std::uint8_t kind;
  std::uint8_t header;   ///< length
  std::uint8_t goes_on;  ///< 1: with the message of the frame before; 2, 4: see VirtualTime::Charge; 8: has a check
  /// Of a frame for several ports, 0 of others. Then `bytes` are a SlotShare, and the body has the data, at an even
  /// place behind them the receivers, and behind those their headers.
  std::uint16_t receivers;
  std::uint32_t check;  ///< of header and data; see FabricEngine::seal()
  alignas(8) std::byte bytes[kSlotInline];
};
static_assert(sizeof(Slot) == 64);
/// In Slot::goes_on.
inline constexpr std::uint8_t kGoesOn = 1, kSystemMessage = 2, kNoSoftware = 4, kHasCheck = 8;

/// Reads a field of a slot once. What was checked must be what is used, and the slot is its process's, which can write
/// into it at any time.
template <typename Value>
Value read_once(const Value& value) noexcept {
  return *const_cast<const volatile Value*>(&value);
}

enum class ReceiverState : std::uint32_t { waits, released };

/// One of several that a frame is for.
struct Receiver {
  /// Released by the process that has read it, or by the sender when that process is gone; see release_receiver().
  std::atomic<ReceiverState> state;
  std::uint32_t record;
  std::uint32_t record_generation;
  std::uint32_t port_generation;
  std::uint16_t to;  ///< endpoint
  std::uint8_t port;
};

/// What the receivers of a slot have in common.
struct SlotShare {
  std::atomic<std::uint32_t> left;  ///< receivers that have not released it
  std::uint32_t stride;             ///< from one header to the next; 0: they have one
  std::uint32_t entered;            ///< the engine's: it has taken the slot from the sending queue
  std::uint64_t released_at;        ///< virtual time: the latest moment at which one was released; under its lock
};
static_assert(sizeof(SlotShare) <= kSlotInline);

/// What the engine remembers of a slot on its way.
struct SlotProgress {
  std::uint16_t pieces;  ///< frames of the network that have not ended
  std::uint16_t lost;
  std::uint16_t to;       ///< endpoint, or kMany; the slot's own may have been written over since
  std::uint16_t here;     ///< virtual time: node that has it, or sends it
  std::uint16_t in_pool;  ///< 1: it takes room among what has arrived, from then on until it has been read
  std::uint16_t held;     ///< virtual time: 1: it has arrived before an earlier one of its sender, and waits for that
};
inline constexpr std::uint16_t kMany = 0xffff;  ///< the frame is for several

/// The operation that the holder of the engine is in the middle of. If the holder dies, its successor reads this. Only
/// a death makes anybody read it, and a dead process has made all its stores, so program order is enough; signal fences
/// keep it.
struct InHand {
  enum What : std::uint32_t { nothing, taking, delivering };
  std::atomic<std::uint32_t> what;  ///< pairs with FabricEngine::recover
  std::uint32_t slot;
  std::uint32_t endpoint, taken;  ///< taking: from whose sending queue, and its position before
  std::uint32_t to, port;         ///< delivering: into whose box; the slot may be another frame's by then
  std::uint64_t delivered;        ///< and its position before
};

/// Virtual time: when the card of a node is free again, picoseconds.
struct CardTimes {
  std::uint64_t sends, receives;
};

struct ArenaHeader {
  std::uint64_t magic;
  std::uint32_t version;
  char model[16];
  char object[256];  ///< path of the shared object that the model is from; empty: it is in the library
  std::uint64_t token;
  ArenaSizes sizes;
  char title[128];      ///< for messages: "xswitch mesh:4x4"
  std::uint64_t began;  ///< nanoseconds of the monotonic clock: scheduled faults count from here
  /// Of the engine process; 0: the processes that wait do the work. Set before the job's processes start. An engine
  /// process that a keeper has restarted writes both again, relaxed: while there is a keeper nobody takes it for dead.
  std::atomic<std::int32_t> engine_pid;
  std::atomic<std::uint64_t> engine_started;
  std::int32_t keeper_pid;  ///< of the process that starts the engine process anew; 0: nobody does
  std::uint64_t keeper_started;
  std::atomic<std::uint32_t> recoveries;  ///< times a process has continued where a dead one stopped
  std::uint32_t node_of[kMaxEndpoints];   ///< by rank
  std::atomic<std::uint32_t> refused;     ///< frames for ports that were closed or that break a rule
  std::atomic<std::uint32_t> lost;        ///< frames the network lost
  std::atomic<std::uint32_t> damaged;     ///< of those, frames whose check units a card found wrong
  std::atomic<std::uint32_t> stalls;      ///< times a node was stalled; the five counts are only shown
  /// Endpoint + 1 of the process that moves the model; 0: nobody. Taking it acquires, and pairs with the exchange that
  /// releases it, for everything that only the holder changes. The exchange is seq_cst because of `pending`.
  alignas(64) std::atomic<std::uint32_t> holder;
  /// Endpoint + 1 of the poller; 0: nobody. Taken relaxed, because the poller checks again anyway. retire() and
  /// notify() are seq_cst: either notify() sees that there is no poller, or the check behind retire() sees `pending`.
  alignas(64) std::atomic<std::uint32_t> poller;
  std::atomic<std::uint32_t> broken;  ///< endpoint + 1 of the process that died while it moved the model; for messages
  alignas(64) InHand in_hand;
  alignas(64) std::atomic<std::uint32_t> moving;  ///< the model is not idle: a hint, checked again by the holder
  /// When a paced model continues, on the monotonic clock; 0: not without a new frame. note_due() and announce() pair
  /// with next_deadline(), which then sees a `coming` that is at least as new.
  std::atomic<std::uint64_t> due;
  // Of a paced model, written by the holder of the engine: how often it ran late, and by how many nanoseconds at most.
  std::uint64_t late, most_late;
  alignas(64) std::atomic<std::uint32_t> endpoints_used;  ///< a count; each endpoint's own state publishes it
  std::atomic<std::int32_t> reuser;         ///< process that looks for an endpoint to use again: one at a time
  std::atomic<std::uint32_t> records_used;  // both: see claim_place()
  std::atomic<std::uint32_t> records_freed;
  alignas(64) Doorbell engine_bell;  ///< of the engine process
  /// Endpoints with something in their queue. notify() sets a bit and then looks for a holder; who lets go of the
  /// holder then looks here, at any_pending(): seq_cst operations on either side, so one sees the other. The exchange
  /// in take_sending_queues() pairs with notify(): the entry is in the queue. Bits the holder sets are for its own
  /// look.
  alignas(64) std::atomic<std::uint64_t> pending[kMaxEndpoints / 64];
  TimeHeader time;
  std::uint64_t bounding[kMaxEndpoints / 64];  ///< under the clock's lock: a bit for each process that may be a bound
};

/// How to find an arena: a descriptor of a process that holds it open.
struct ArenaAddress {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::uint64_t token = 0;
};
std::string encode(const ArenaAddress& address);
Result<ArenaAddress> decode_arena_address(std::string_view text);

/// An entry of a queue: a slot and the lap for which it is valid, so that neither side waits for the other to clear it.
constexpr std::uint32_t queue_entry(std::uint64_t position, std::uint32_t count, std::uint32_t slot) noexcept {
  return static_cast<std::uint32_t>(position / count + 1) << 20 | slot;
}
inline constexpr std::uint32_t kSlotMask = (1u << 20) - 1;

class FabricArena {
 public:
  static Result<FabricArena> create(const ModelKind& kind, const ArenaSizes& sizes, const std::string& title);
  /// Its model, which may be in a shared object. Errc::unavailable when this version of the library has none of its
  /// name.
  Result<const ModelKind*> kind() const;
  static Result<FabricArena> attach(const ArenaAddress& address);
  /// The one behind a descriptor of that process, whatever its token is; for observers outside the job.
  static Result<FabricArena> look_at(std::int32_t pid, std::int32_t fd);

  /// The one that the environment names (ULFM_FABRIC), which ulfmrun has set up.
  static Result<FabricArena> of_this_job();

  /// Node of a process; spawned ones count their ranks anew.
  std::uint32_t node_of_rank(std::uint32_t rank) const noexcept {
    return header().node_of[rank % sizes_.processes % kMaxEndpoints] % sizes_.nodes;
  }

  ArenaHeader& header() const noexcept { return *segment_.at<ArenaHeader>(0); }
  /// For messages: "xswitch mesh:4x4".
  std::string title() const { return {header().title, strnlen(header().title, sizeof header().title)}; }
  /// A copy: the shared one could be changed under us.
  const ArenaSizes& sizes() const noexcept { return sizes_; }
  ArenaAddress address() const noexcept;

  Endpoint& endpoint(std::uint32_t i) const noexcept { return segment_.at<Endpoint>(at_.endpoints)[i]; }
  /// Entries; submit() to take_sending_queue(): the slot is filled in. has_on_the_way() only looks.
  std::atomic<std::uint32_t>* sending_queue(std::uint32_t endpoint) const noexcept {
    return segment_.at<std::atomic<std::uint32_t>>(at_.queues) + std::size_t{endpoint} * sizes_.slots;
  }
  SlotProgress& slot_progress(std::uint32_t slot) const noexcept {
    return segment_.at<SlotProgress>(at_.slot_progress)[slot];
  }
  // In virtual time only.
  ProcessClock& clock(std::uint32_t endpoint) const noexcept { return segment_.at<ProcessClock>(at_.clocks)[endpoint]; }
  SlotTime& slot_time(std::uint32_t slot) const noexcept { return segment_.at<SlotTime>(at_.slot_times)[slot]; }
  TimedEvent& event(std::uint32_t place) const noexcept { return segment_.at<TimedEvent>(at_.events)[place]; }
  CardTimes& card_times(std::uint32_t node) const noexcept { return segment_.at<CardTimes>(at_.card_times)[node]; }

  std::byte* model() const noexcept { return segment_.base() + at_.model; }
  Record& record(std::uint32_t i) const noexcept { return segment_.at<Record>(at_.records)[i]; }
  PortBox& box(std::uint32_t endpoint, std::uint32_t port) const noexcept {
    return *segment_.at<PortBox>(at_.boxes + (std::size_t{endpoint} * kPorts + port) * at_.box_bytes);
  }
  Slot& slot(std::uint32_t i) const noexcept { return *segment_.at<Slot>(at_.slots + std::size_t{i} * at_.slot_bytes); }
  std::byte* body(Slot& slot) const noexcept { return reinterpret_cast<std::byte*>(&slot) + sizeof(Slot); }

  SlotShare& share(Slot& slot) const noexcept { return *reinterpret_cast<SlotShare*>(slot.bytes); }
  static constexpr std::size_t receivers_at(std::size_t length) noexcept { return (length + 7) / 8 * 8; }
  /// Those of a frame for several; none when the slot makes no sense.
  std::span<Receiver> receivers(Slot& slot) const noexcept {
    const std::size_t count = slot.receivers, at = receivers_at(slot.length);
    if (at + count * sizeof(Receiver) > sizes_.slot_bytes) return {};
    return {reinterpret_cast<Receiver*>(body(slot) + at), count};
  }
  /// The header for receiver `i`; nullptr when the slot makes no sense.
  const std::byte* header_for(Slot& slot, std::size_t i) const noexcept {
    const std::size_t at = receivers_at(slot.length) + slot.receivers * sizeof(Receiver) +
                           i * std::size_t{std::min<std::uint32_t>(share(slot).stride, 256)};
    return at + slot.header <= sizes_.slot_bytes ? body(slot) + at : nullptr;
  }

  Result<void> commit_slots(std::uint32_t endpoint);
  Result<void> commit_box(std::uint32_t endpoint, std::uint32_t port);
  Result<void> commit_record(std::uint32_t i);

 private:
  struct Layout {
    explicit Layout(const ArenaSizes& sizes);
    Layout() = default;
    std::size_t endpoints = 0, queues = 0, slot_progress = 0, model = 0, records = 0, boxes = 0, slots = 0, end = 0;
    std::size_t clocks = 0, slot_times = 0, events = 0, card_times = 0;
    std::size_t box_bytes = 0, slot_bytes = 0;
  };

  static Result<FabricArena> map(std::int32_t pid, std::int32_t fd);

  Segment segment_;
  ArenaSizes sizes_;
  Layout at_;
};

/// The receiver needs the slot no more. True when no receiver does: then the caller has to give it back.
inline bool release_receiver(SlotShare& share, Receiver& receiver) noexcept {
  // Of the receiver and a sender that takes it for dead one comes first. Each hands on that it has read the slot.
  if (receiver.state.exchange(ReceiverState::released, std::memory_order_acq_rel) == ReceiverState::released)
    return false;
  return share.left.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

/// Nanoseconds of the clock that all processes of a host share.
std::uint64_t monotonic_now() noexcept;

/// The sizes keep every index within its bounds; what a process checks before it believes a header.
bool is_sane(const ArenaSizes& sizes);

}  // namespace ulfm::fabric
