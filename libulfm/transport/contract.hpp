// The transport contract: what carries frames from a sender to a port of another process.
//
// A transport moves *frames*: a header of up to 255 bytes and data up to the outlet's max_frame, reliably and in
// order per outlet. It knows nothing of messages, matching or MPI. Three roles:
//
//   Transport   one per process: makes the other two
//   Inlet       the receiving side of one port: every sender's frames come out here
//   Outlet      the sending side towards one port of another process: a virtual connection, one direction
//
// Rules for every call, unless the call says otherwise:
//
//   threads    a call of an Inlet, Outlet or Multicast: one thread at a time for each object, also for the destructor;
//              different objects by different threads at once. A call of a Transport: one thread at a time.
//   blocking   it returns at once, without a system call
//   ownership  what a call takes it copies before it returns: spans, strings and gather lists are the caller's again.
//              What it returns by unique_ptr is the caller's, and is destroyed before the Transport that made it.
//              References and descriptors that it returns belong to the object.
//   errors     a bool or an empty value says that there is none now; a Result has a sentence. Nothing throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/counters.hpp"
#include "base/error.hpp"
#include "base/frame.hpp"
#include "base/gather.hpp"
#include "base/process_id.hpp"
#include "base/wait_word.hpp"
#include "base/wake_source.hpp"
#include "job/control/control.hpp"

namespace ulfm {

inline constexpr std::size_t kHelloLimit = 160;  ///< bytes a connecting side may say about itself
inline constexpr std::uint32_t kSpinTurns = 64;  ///< looks of one Inlet::spin in a wait
inline constexpr std::size_t kLeastFrame = 64;   ///< data that any frame can carry, whatever its header
inline constexpr std::size_t kMostCard = 240;    ///< characters of a card
inline constexpr std::uint16_t kNoPort = 0xffff;
/// Frame::source of frames that lie in memory of a decorator and not in a transport's; no transport uses it.
inline constexpr std::uint32_t kDecoratorSource = 0xfffffffe;
/// Inlet::next_deadline() when nothing but a wake-up need end a sleep.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

/// What the opener of a port asks for; 0 is the setting of that name. A transport may round up.
struct InletOptions {
  std::uint32_t depth = 0;  ///< frames that can wait; 1 is the port of the paper: one buffer, for all senders
  std::uint32_t slot = 0;   ///< bytes of data that a buffer holds
  /// The process has no core of its own: it looks for frames once in each of its turns, among all its senders. Not for
  /// ports whose programs want long messages in place.
  bool shares_core = false;
};

/// Who is at the other end of what an inlet receives. Valid while the origin is connected.
struct OriginInfo {
  std::string card;              ///< to connect back; without the endpoint key
  std::uint16_t port = kNoPort;  ///< the port it sends from, kNoPort when it has none
  ProcessId process;             ///< none when the origin is not connected
  std::span<const std::byte> hello;
};

/// Tells an inlet where data belong that it has not read from the network yet.
class PlaceFinder {
 public:
  virtual ~PlaceFinder() = default;
  /// Where the next data of that origin's message belong, as far as they lie in one piece; empty when that is not
  /// known. Called in Inlet::next(), with every frame of the origin handled that came before; good until next()
  /// returns.
  virtual std::span<std::byte> place_for(std::uint32_t origin) = 0;
};

class Inlet {
 public:
  /// Closes the port. Frames that were not released are gone. May wait, a bounded time, until what peers still need has
  /// been sent to them, and take system calls.
  virtual ~Inlet() = default;

  /// Takes the next frame, from any sender; frames of one sender come in order. Fills all of `frame`, whatever it was.
  /// The bytes belong to the inlet and stay until release(). A sender that wrote nonsense is cut off: take_broken() has
  /// it. May move what carries the frames on behalf of other processes, and take system calls for that.
  virtual bool next(Frame& frame) = 0;
  /// As next(), for a caller that waits for a frame when there is none. In virtual time that wait sees what has come by
  /// then, so a frame that lies there is taken, and nothing is looked for.
  virtual bool next_awaited(Frame& frame) { return next(frame); }
  /// As next(), right behind a frame, for a caller that has other things to do when no more came with that one: where a
  /// look costs a system call, one that can find nothing is left out.
  virtual bool next_at_hand(Frame& frame) { return next(frame); }
  /// Checks the likeliest places `turns` times; true as soon as a frame is there. For waits with a core to spare.
  virtual bool spin(std::uint32_t turns) = 0;
  /// Checks once every place where a frame may be without other work: for a wait without a core, between two yields.
  virtual bool look() = 0;
  /// Returns a frame's room to its sender: the caller must not touch its bytes any more. In any order. All but header,
  /// kind and fresh is as next() gave it. May notify the sender, by a system call if that sleeps.
  virtual void release(const Frame& frame) = 0;

  /// About the sender of a frame. `process` is none when the origin is not connected. The hello is a view of the
  /// inlet's memory, valid until drop_origin().
  virtual OriginInfo origin(std::uint32_t index) const = 0;
  /// Drops what belongs to an origin that said bye or died. Frames of it that are still held stay valid until they
  /// are released.
  virtual void drop_origin(std::uint32_t index) = 0;

  /// True when a frame is there; checks every source. Call between WakeSource::arm and sleep. May take system calls.
  virtual bool has_frame() = 0;
  /// Ends a sleep when a frame has come. Lives as long as the inlet. Its ring() is for any thread.
  virtual WakeSource& wake_source() = 0;

  /// Housekeeping for a long wait: finds dead senders that block others. Returns the index of one connected origin
  /// whose process is gone and from which nothing more will come, or -1. Costs system calls.
  virtual std::int64_t find_dead() = 0;

  /// The inlet has cut an origin off for writing nonsense: its index once, then -1.
  virtual std::int64_t take_broken() = 0;

  /// Why nothing will ever arrive here again; empty while all is well. For long waits: may cost system calls.
  virtual std::string why_broken() { return {}; }

  /// Longest sleep after which next() must be called again although nothing woke it: for frames that are held back or
  /// have to be sent again. Call between WakeSource::arm and sleep; it sends pending acknowledgements.
  virtual std::chrono::nanoseconds next_deadline() { return kForever; }

  /// A destination of this port was given up, because it stopped answering: the sentence, once each. Its outlets say
  /// that nobody listens.
  virtual bool take_given_up(Error&) { return false; }

  /// Most bytes of data in a frame that comes here.
  virtual std::size_t max_frame() const = 0;
  /// From now on data of `more` frames without a header may lie where `finder` says: Frame::data is that place, and
  /// nothing is left to copy. `finder` outlives the inlet. An inlet may ask never.
  virtual void use_places(PlaceFinder& finder) { (void)finder; }
  /// Called once, before the first next(): the inlet counts there, too. `counters` outlives it.
  virtual void use_counters(PortCounters& counters) { (void)counters; }
};

class Outlet {
 public:
  /// Ends the connection. What was pushed still arrives; without bye() the receiver finds out by itself that nothing
  /// more will come. Any thread that may use the port's inlet.
  virtual ~Outlet() = default;

  /// Sends one frame, or returns false with nothing taken when there is no room now. The header has at most 255
  /// bytes and `length` is at most max_frame() for that header, or max_begin(); both are copied before return. May take
  /// system calls: to wake a receiver that sleeps, or to a network.
  virtual bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) = 0;

  /// Room has come since the last push that found none, as far as one check shows; false where only a push shows it.
  /// For waits with a core to spare.
  virtual bool has_room() const { return false; }
  /// Announces a sleep until room comes, after a push that found none: ask has_room() once more, then sleep on the
  /// result too. None when nothing wakes whoever waits for room, and sleeps have to be short. Good until the next push.
  virtual WaitWord await_room() { return {}; }

  /// Most data bytes the next frame with a header of that length may have.
  virtual std::size_t max_frame(std::size_t header) const = 0;

  /// The same for a frame that begins a message and whose receiver takes it in parts: it may come as a shorter one and
  /// `more` frames with the rest. Not less than max_frame().
  virtual std::size_t max_begin(std::size_t header) const { return max_frame(header); }

  /// The receiving process still runs and has not closed the port, or what it sent to this process before is still on
  /// its way here. When false, all of that can be found in the inlets. Costs a system call or two.
  virtual bool peer_listening() const = 0;
  /// peer_listening() asks nothing of another process.
  virtual bool is_near() const { return true; }
  /// The receiving port has been closed, as far as that is known without a cost. It may be open anew: connect again.
  virtual bool port_closed() const = 0;
  /// Where port_closed() also says so of a receiver that has not closed its port: it has died, or the connection has
  /// ended otherwise and take_given_up() does not tell why. Costs nothing.
  virtual bool has_broken() const { return false; }
  /// The receiver takes nothing from this connection any more, and may not have taken what was sent last: it lacked
  /// something, or found nonsense. port_closed() says so too. Costs nothing.
  virtual bool cut_off() const { return false; }
  virtual ProcessId peer() const = 0;
  /// Frames go through memory that both processes map, and nothing on the way has to see their bytes (faults, a
  /// protocol, an emulated network): a long message may as well be copied from process to process.
  virtual bool shares_memory() const { return false; }
  /// The longest message that takes less time when it is sent without asking whether its receiver is ready; 0: the
  /// transport has no preference.
  virtual std::size_t eager_limit() const { return 0; }

  /// Something above may change the bytes of frames of this outlet as noise on the network's links would. True: cards
  /// of this network check frames, and the noise is to come between them: by turn_bits(). Called once, before any push.
  virtual bool expect_noise() { return false; }
  /// Turns bits of the frame that the next push takes, behind the sending card's check. Counted from the first of its
  /// header on; they are forgotten when that push finds no room.
  virtual void turn_bits(std::span<const std::uint64_t>) {}

  /// Says that nothing more will come. False when there was no room for it; try again or let the peer find out.
  virtual bool bye() = 0;
};

/// The headers of one frame for each of several connections, equally long. With `stride` 0 they have one in common.
struct Headers {
  const std::byte* bytes = nullptr;
  std::size_t length = 0;
  std::size_t stride = 0;
  std::span<const std::byte> of(std::size_t member) const noexcept { return {bytes + member * stride, length}; }
};

/// Several outlets of one port, which a transport sends the same data at once. Each connection has the frame as its
/// next one, so the order among multicasts and what its outlet sends is kept. Used by the thread that uses the outlets,
/// which live longer.
class Multicast {
 public:
  virtual ~Multicast() = default;

  /// Sends one frame to the members `who`, numbered as the outlets were. False, with nothing taken, when there is no
  /// room now. True: those whom it went to have been taken out of `who`; the others get it by their own outlets,
  /// because that is as good, or because one of them has no room. `data` is gone past.
  virtual bool push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
                    std::vector<std::uint32_t>& who) = 0;
  /// Most data bytes of a frame with headers of that length; at least kLeastFrame.
  virtual std::size_t max_frame(std::size_t header) const = 0;
  /// Does what a sender that finds no room for long must do: room that dead receivers hold comes back. Costs system
  /// calls.
  virtual void look_for_dead() {}
};

/// What it takes in virtual time, in picoseconds; all 0 without.
struct MulticastCost {
  std::uint64_t message = 0;  ///< software of a message, at both ends together
  std::uint64_t byte = 0;     ///< a byte of a multicast, of its sender, for each other place that it goes to
  std::uint32_t places = 0;   ///< there are so many: a place is a node, or a card that takes the bytes for several
};

/// Something a transport counts, for statistics.
struct NamedCount {
  const char* name;  ///< of static duration
  std::uint64_t value;
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// What others need to connect to this process: printable, no blanks, below 240 bytes. With a control channel its
  /// endpoint key follows behind a '+', which connect() ignores (control::identity_of).
  virtual const std::string& card() const = 0;

  /// Opens port `number` (0..kPortsPerProcess-1), with system calls. Errc::busy when it is open already;
  /// Errc::no_memory, Errc::system when there is no memory or descriptor for it. Any thread.
  virtual Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) = 0;

  /// A virtual connection from `from` to port `to` of the process with that card, with system calls. It may wait for an
  /// answer of that process's host. `counters` outlives it. Errc::not_found when that port is not open (yet),
  /// peer_failed when the process is gone. Any thread, the one that uses the port `from`.
  virtual Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                                  std::span<const std::byte> hello, PortCounters& counters) = 0;

  /// Outlets of this transport, all of one port, as one. nullptr when it has no better way than each outlet by itself.
  virtual std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) {
    (void)outlets;
    return nullptr;
  }

  /// Most data bytes of a frame that the network itself copies for so many receivers, with headers of that length; 0
  /// when it cannot. The same in all processes of a job.
  virtual std::size_t multicast_frame(std::size_t receivers, std::size_t header) const {
    (void)receivers, (void)header;
    return 0;
  }

  /// The same in all processes of a job.
  virtual MulticastCost multicast_cost() const { return {}; }

  /// The process with that card can be reached by this transport, as far as the card shows. Any thread.
  virtual bool reachable(std::string_view card) const {
    (void)card;
    return true;
  }
  /// Called once, before the first open() and connect(), when this transport is one of several: the card by which other
  /// processes know this one, which is what an OriginInfo has to say there.
  virtual void use_card(std::string_view) {}

  /// Shows this process's card, as process `rank` of `job_id` (the name of a job's key-value space), to the others
  /// where all can look. Called once, when the ports that they may connect to are open.
  virtual void introduce(std::string_view job_id, std::uint32_t rank, std::string_view card) {
    (void)job_id, (void)rank, (void)card;
  }
  /// The card that a process has shown; empty when it has not or there is no such place: then it is in the key-value
  /// space, which costs requests to the launcher. Any thread.
  virtual std::string card_of(std::string_view job_id, std::uint32_t rank) const {
    (void)job_id, (void)rank;
    return {};
  }

  /// The control channel that goes with the transport; nullptr when there is none.
  virtual control::Control* control() { return nullptr; }
  /// Called once, before the first open() and connect(), with a control channel that lives as long as the transport.
  virtual void use_control(control::Control&) {}
  /// A duplicate of a descriptor that peers ask for over the control channel; `what` means something to the
  /// transport alone. Empty when there is none. Any thread; the descriptor is the caller's.
  virtual control::Fd descriptor(std::uint32_t) { return {}; }

  /// What it counts beyond the ports' counters, over all ports, also those closed since. Any thread.
  virtual std::vector<NamedCount> counts() const { return {}; }

  /// Counters of what all processes of the job share, as lines that begin with "ulfm: stats"; one rank prints them. May
  /// wait until no other process moves what is counted.
  virtual std::string shared_statistics() { return {}; }
};

/// What a transport is, as data: tools, documentation, selection and the conformance tests are driven by it.
struct TransportDescriptor {
  const char* name;
  const char* summary;
  bool reliable, ordered;
  bool multicast;  ///< the network itself copies a frame for several receivers
  bool multi_host;
  std::size_t max_frame;    ///< largest frame with default settings
  double latency_us;        ///< rough one-way cost of a small frame: auto takes the transport with the least
  double bandwidth_MBps;    ///< rough asymptotic bandwidth, which decides between equal ones
  const char* config_rows;  ///< names of the rows it reads, blank-separated
  bool takes_options;       ///< "NAME,option=value" selects it too
  bool links;               ///< emulates an interconnect, which has a topology
  bool control;             ///< uses a control channel also when the user asks for none
  /// The node of each of `size` ranks, numbered from 0, when the transport has nodes of its own; empty when the hosts
  /// are the nodes. Asked before there is a Transport.
  std::vector<int> (*nodes)(int size);
  /// "" when it can be used here, else the reason why not.
  std::string (*unavailable)();
  Result<std::unique_ptr<Transport>> (*make)(const Config& config);
  std::size_t piece = 0, copies = 0;  ///< bytes, for programs that ask ulfm_job_suits(); 0: nothing in particular
  bool link_faults = false;           ///< a fault plan can take away its links, switches and nodes at a moment
};

}  // namespace ulfm
