// The message protocols of NX/2 over ports (Pierce, The NX/2 Operating System, section 3).
//
// Short messages take one trip, into buffers that each node sets aside for each other node. A sender that has
// used them up holds its messages until buffers come back, which they do on messages that go the other way,
// or alone when half of them are out. Long messages take three: a proxy, which is a short message; a request,
// once a receive is posted or there is memory to keep the message; and the message itself, into the posted
// buffer.
//
// What the machine's kernel did by interrupt, this does when the program makes a call, or when a handler is
// set (see interrupt.hpp). So a send must not wait for its receiver: a message that is not asked for at once
// is copied.
//
// Threads: one at a time. A call made by a handler comes in while another call waits, never while one works.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "channel.hpp"
#include "message.hpp"
#include "outcome.hpp"
#include "tuning.hpp"

namespace nx2 {

/// The four numbers of an info array; a program that passes msginfo itself sets what info...() tell.
void write_info(const InfoArray& info, const MessageInfo& of) noexcept;
/// Calls a procedure of the program as its language passes arguments.
void call_handler(const Handler& handler, const MessageInfo& info);

class NxEngine {
 public:
  NxEngine(Channel& channel, const Tuning& tuning);
  NxEngine(const NxEngine&) = delete;
  NxEngine& operator=(const NxEngine&) = delete;
  ~NxEngine();

  // ---- the program's process
  std::int32_t ptype = 0;

  // ---- sending. `node` is a valid place, or -1 for all nodes but this one.
  struct Envelope {
    std::int32_t type;
    std::int32_t node;
    std::int32_t ptype;
  };
  /// What most sends are: short, and nothing is in the way. False with nothing done when it is not such a
  /// case.
  bool send_at_once(const Envelope& to, const void* data, std::size_t size) {
    if (size > tuning_.short_limit || busy() || to.node < 0) return false;
    Peer& peer = peers_[static_cast<std::size_t>(to.node)];
    if (!peer.open || peer.buffers <= tuning_.data_buffers) return false;
    const Header header{own_number_, Kind::message, static_cast<std::uint8_t>(peer.owed), to.type, ptype, to.ptype};
    if (channel_.send(peer.address, header, data, size) != Channel::Sent::gone) return false;
    --peer.buffers;
    peer.owed = 0;
    ++moved_;
    return true;
  }
  /// Returns when the buffer is the program's again.
  Outcome send(const Envelope& to, const void* data, std::size_t size);
  /// request.done() when the buffer is the program's again.
  void start_send(Request& request, const Envelope& to, const void* data, std::size_t size);
  /// To each of these nodes in turn, of which the message is copied once at most.
  Outcome send_list(const Envelope& to, const std::vector<std::int32_t>& nodes, const void* data, std::size_t size);

  // ---- receiving
  void post_receive(Request& request);
  /// Receives what is short and the next message to come, if nothing is in the way: what most receives are. In other
  /// cases false, and the request that `make` makes has been posted, before the message that was waited for was taken.
  template <typename Make>
  bool receive_next(const Selector& selector, std::byte* buffer, std::size_t capacity, MessageInfo& result, Make make) {
    Opened opened{};
    if (is_in_the_way(selector) || !open_next(opened)) return post_receive(make()), false;
    if (is_asked_for(opened, selector, capacity)) return receive_opened(opened, buffer, result), true;
    post_receive(make());
    take(opened);
    settle();
    return false;
  }
  /// The first message that it selects, whole or as a proxy; it stays.
  bool find(const Selector& selector, MessageInfo& info);
  /// Drops what it selects.
  void flush(const Selector& selector);
  /// Takes a receive back. A message that came for it, whole or in part, is as if it had never been received.
  void cancel_receive(Request& request);
  /// Waits until a send is complete, but not for a receiver that does not ask: then the message is copied.
  void settle_send(Request& request);
  /// Gives a send's buffer back to the program now: what has not left is copied. False without memory.
  bool detach_send(Request& request);

  // ---- moving
  /// Deals with everything that has arrived and sends what can be sent. Never waits.
  void progress();
  /// The same, looking at every place where a message can be, which one look of a port does not do.
  void look_everywhere();
  /// The same for a program that asks again and again: now and then it makes room for others.
  void idle_test();
  /// Until the request is complete.
  void wait(const Request& request);
  /// One turn of a wait: something arrived, or `limit_ns` has passed (-1: when something arrives).
  void step(std::int64_t limit_ns);
  /// After `milliseconds` at most, or when `done` says so.
  bool wait_for(const std::function<bool()>& done, int milliseconds);

  // ---- handlers
  /// Calls the handlers of what has completed, unless they are blocked or one is running. True when there were any.
  bool run_handlers();
  bool handlers_blocked = false;
  Request& pooled_request();
  /// Requests with handlers that are not complete yet.
  int handlers_pending() const noexcept { return handlers_pending_; }
  void count_handler() noexcept { ++handlers_pending_; }

  // ---- the end
  /// Delivers what was sent, tells everybody, and takes nothing more.
  void finish();
  void send_kill();
  bool everybody_left() const;
  /// A process of that place has ended: what it was sent is lost.
  void abandon(std::int32_t node);
  /// A node on another host that has not answered for long and has not ended either, as its launcher says; -1: none.
  int silent_node() const;

  /// Tells the host where this process is, which does not share its table.
  void announce();
  /// Tells nodes on other hosts what has changed in the cube.
  void share_table();

  /// Called in waits now and then; for the host to look after its nodes.
  std::function<void()> housekeeping;
  /// The host has further cubes, whose messages move on in its housekeeping.
  bool is_one_of_several = false;
  /// Called when killcube reached this node; does not return.
  std::function<void()> on_kill;
  /// Called for a request that completes and is ignored.
  std::function<void(Request&)> release_ignored;

  const Tuning& tuning() const noexcept { return tuning_; }
  int self() const noexcept { return channel_.self(); }
  /// Changes whenever a message goes either way; 0 before the first.
  std::uint64_t moved() const noexcept { return moved_; }

 private:
  struct Held {
    Header header;
    std::size_t size;
    Bytes bytes;
  };
  struct Peer {
    std::uint32_t buffers = 0;  ///< of that node's short buffers, free for this one
    std::uint32_t owed = 0;     ///< of its own, to be returned
    std::uint32_t kept = 0;     ///< of its own, in which messages stay because memory is short
    std::uint32_t use = 0;
    bool open = false;  ///< its address is known and stays
    bool contacted = false;
    bool left = false;
    std::optional<std::chrono::steady_clock::time_point> lost_since;  ///< nothing can be sent to it from then on
    ulfm_address address{};
    std::deque<Held> held;
  };
  struct Control {
    std::int32_t node;
    Held message;
  };
  struct HandlerCall {
    Handler handler;
    MessageInfo info;
  };

  // sending (engine_send.cpp)
  /// `goes_on`: with the message of the one before.
  Channel::Sent transmit(std::int32_t node, Header header, const void* data, std::size_t size, bool goes_on = false);
  Channel::Reach reach(std::int32_t node);
  void send_short(std::int32_t node, Header header, const void* data, std::size_t size);
  bool send_to_all(const Envelope& to, const void* data, std::size_t size);
  void send_free(std::int32_t node, const Header& header, const void* data, std::size_t size);
  static Held copy_of(const Header& header, const void* data, std::size_t size);
  void control(std::int32_t node, Kind kind, std::uint32_t first = 0, std::uint32_t second = 0);
  void start_one(Request* request, const Envelope& to, std::int32_t node, const std::byte* data, std::size_t size,
                 const std::shared_ptr<std::byte[]>& kept);
  void start_long(Request* request, const Header& header, std::int32_t node, const std::byte* data, std::size_t size,
                  const std::shared_ptr<std::byte[]>& kept);
  bool pump(Outgoing& outgoing);
  void end_outgoing(Outgoing& outgoing);
  void push() {
    if (busy()) push_all();
  }
  /// Something waits to be sent.
  bool busy() const noexcept { return held_ != 0 || !outbox_.empty() || !streams_.empty(); }
  void push_all();
  /// What follows each message: sends what has room now, and ends when it was killcube's.
  void settle() {
    if (__builtin_expect(shares_, 0)) share_table();
    push();
    if (killed_ && !closing_) on_kill();
  }
  void lose(std::int32_t node);
  void note_failure();
  void flush_outbox();
  void flush_held();
  template <typename Visit>
  void for_destinations(const Envelope& to, Visit visit);

  // receiving (engine_receive.cpp)
  /// A port message, taken apart.
  struct Opened {
    Header header;
    const std::byte* data;
    std::size_t size;
  };
  bool open(const ulfm_message& message, Opened& opened);
  /// Waits for the next message.
  bool open_next(Opened& opened);
  bool is_in_the_way(const Selector& selector);
  bool is_asked_for(const Opened& opened, const Selector& selector, std::size_t capacity);
  void receive_opened(const Opened& opened, std::byte* buffer, MessageInfo& result);
  void take(const Opened& opened);
  void dispatch(const ulfm_message& message);
  bool is_mine(const Header& header) const noexcept { return header.ptype == ptype || header.ptype == kAny; }
  void take_message(const Header& header, const std::byte* data, std::size_t size);
  void take_proxy(const Header& header, const ProxyBody& body);
  void take_data(const Header& header, const std::byte* data, std::size_t size);
  void take_request(const Header& header);
  void take_refusal(const Header& header);
  void take_entry(const Header& header, const EntryBody& image);
  void send_entry(std::int32_t node, const EntryBody& image);
  void return_buffer(std::int32_t node, std::int32_t type);
  Request* find_posted(const Header& header);
  Arrived* find_arrived(const Selector& selector);
  Arrived& add_arrived(const Header& header, std::size_t count);
  void drop_arrived(Arrived& arrived);
  void deliver(Request& request, const Header& header, const std::byte* data, std::size_t size);
  void receive_arrived(Request& request, Arrived& arrived);
  bool ask_for(Arrived& arrived);
  Incoming& new_incoming(std::int32_t source, std::uint32_t sender_id, std::size_t count);
  void end_incoming(Incoming& incoming);
  void put_back(Request& request, Bytes bytes);
  void complete(Request& request);
  Outgoing* outgoing_of(const Header& header);
  /// What the other side calls the long message that is the `index`th here, and back; ~0: it is none of this process's.
  std::uint32_t number_of(std::uint32_t index) const noexcept { return own_use_ << kNumberBits | index; }
  std::size_t index_of(std::int32_t number) const noexcept {
    const std::uint32_t index = static_cast<std::uint32_t>(number) & kNumberMask;
    return number_of(index) == static_cast<std::uint32_t>(number) ? index : ~std::size_t{0};
  }

  Channel& channel_;
  Tuning tuning_;
  std::uint16_t own_number_;
  std::uint32_t own_use_;  ///< which of its node's processes this one is
  std::vector<Peer> peers_;
  std::deque<Control> outbox_;  ///< messages that found no room in the port
  std::size_t held_ = 0;        ///< messages that wait for short buffers, all peers
  List<Outgoing> streams_;      ///< asked for and not gone yet
  std::deque<Outgoing> outgoing_;
  std::vector<std::uint32_t> outgoing_free_;
  std::deque<Incoming> incoming_;
  std::vector<std::uint32_t> incoming_free_;
  std::size_t outgoing_count_ = 0;

  List<Request> posted_;
  List<Arrived> arrived_;
  List<Arrived> taken_;  ///< coming, and a receive waits for them
  std::uint64_t sequence_ = 0;
  std::size_t memory_ = 0;  ///< bytes in arrived messages

  std::deque<Request> pool_;
  std::vector<Request*> pool_free_;
  std::deque<HandlerCall> calls_;
  int handlers_pending_ = 0;
  bool handler_runs_ = false;

  std::uint64_t moved_ = 0;  ///< counts everything that went either way
  std::uint32_t fruitless_ = 0;
  bool shares_ = false;            ///< nodes of this host's cube are on other hosts,
  std::vector<EntryBody> shared_;  ///< and have last been told this
  bool some_come_ = true;          ///< nodes that are being loaded have not come yet
  bool closing_ = false;
  bool killed_ = false;
};

}  // namespace nx2
