// What a process has on TCP: a listener, its ports, and the links between them and other processes' ports.
//
// The thread that uses a port reads the links of that port, one system call to a look; nothing is read ahead of what it
// takes, so a port that nobody reads stops its senders by TCP's own window. Short frames that a program sends one soon
// after the other leave together, when it looks at its port next. A thread of the network accepts connections and sends
// what is left of frames when the program computes. All of it is under one lock.
//
// Nothing is lost for want of memory. What has come stays in its link's block, or in the kernel, until a later look;
// who connects is let in later, or tries again; and connect() says so.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transport/contract.hpp"
#include "transport/hosts/attempts.hpp"
#include "transport/hosts/forks.hpp"
#include "transport/hosts/network.hpp"
#include "transport/hosts/unreached.hpp"
#include "transport/tcp/found_frames.hpp"
#include "transport/tcp/link.hpp"
#include "transport/tcp/tuning.hpp"

namespace ulfm::tcp {

/// A sender to one of our ports. Its place in TcpPort::origins is the origin's number.
struct TcpOrigin {
  bool open = false;
  bool fresh = false;
  bool ended = false;    ///< nothing more will come
  bool cut_off = false;  ///< it has sent nonsense, and those above do not know it yet
  TcpLink* link = nullptr;
  std::uint16_t from = kNoPort;
  std::uint64_t token = 0;
  ProcessId process;
  std::string card;
  std::vector<std::byte> hello;
};

/// A port of this process.
struct TcpPort {
  std::uint16_t number = 0;
  Fd set;                            ///< epoll: its links and `rung`
  Fd rung;                           ///< eventfd
  std::atomic<bool> is_rung{false};  ///< set behind a ring
  std::vector<std::shared_ptr<TcpLink>> links;
  FoundFrames ready;
  std::deque<TcpOrigin> origins;
  std::vector<std::uint32_t> unused;  ///< places of `origins`; with room for all of them
  std::uint32_t held = 0;             ///< frames handed out and not released
  std::uint32_t looks = 0;
  std::vector<std::uint64_t> gatherers;  ///< links that have gathered frames, by number
  std::vector<std::uint64_t> leaving;    ///< of them, those whose frames leave now
  bool has_starved = false;              ///< a link of it is starved
  bool drained = false;                  ///< the last look took all that had come
  std::uint32_t broken = 0;              ///< origins that are cut off and of which those above are to be told
  std::deque<Error> given_up;            ///< peers whose hosts do not answer any more
  PlaceFinder* places = nullptr;
  std::atomic<std::uint64_t> arrivals{0};
  std::atomic<bool> is_awaited{false};  ///< its owner sleeps, or is about to look once more before that
};

/// A port of the library, besides those of the program. A wait at another port ends for a frame of this one, too.
inline constexpr std::uint16_t kOwnPort = kPortsPerProcess;
inline constexpr std::uint16_t kNetworkPorts = kOwnPort + 1;

class TcpNetwork final : hosts::Forkable {
 public:
  static constexpr std::string_view kTransport = "tcp";

  static Result<std::unique_ptr<TcpNetwork>> create(const hosts::NetworkSettings& settings);
  ~TcpNetwork();
  TcpNetwork(const TcpNetwork&) = delete;
  TcpNetwork& operator=(const TcpNetwork&) = delete;

  const hosts::ProcessCard& self() const noexcept { return self_; }
  hosts::Unreached& unreached() noexcept { return unreached_; }
  std::size_t max_frame() const noexcept { return sizes_.longest; }
  std::size_t max_whole() const noexcept { return sizes_.whole; }
  std::vector<NamedCount> counts() const;

  // ---- ports; a port is used by one thread at a time ----
  Result<std::unique_ptr<TcpPort>> open(std::uint16_t number);
  void close(std::unique_ptr<TcpPort> port);
  bool next(TcpPort& port, Frame& frame);
  /// Without a look where the last one took all that had come.
  bool next_at_hand(TcpPort& port, Frame& frame);
  bool has_frame(TcpPort& port);
  /// One look, for a wait with a core to spare.
  bool has_arrived(TcpPort& port) { return has_frame(port); }
  void release(TcpPort& port, const Frame& frame);
  OriginInfo origin(const TcpPort& port, std::uint32_t index) const;
  void drop_origin(TcpPort& port, std::uint32_t index);
  std::int64_t find_dead(TcpPort& port);
  std::int64_t take_broken(TcpPort& port);
  bool take_given_up(TcpPort& port, Error& error);

  // ---- virtual connections ----
  Result<std::shared_ptr<TcpLink>> connect(const hosts::ProcessCard& to, std::uint16_t port, std::uint16_t from,
                                           std::span<const std::byte> introduction);
  bool push(TcpLink& to, Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  /// The sender needs that direction no more. What was sent goes on until it has left.
  void retire(const std::shared_ptr<TcpLink>& link);
  bool peer_listening(TcpLink& to);

  // ---- sleeping ----
  static void ring(TcpPort& port) noexcept;
  /// What was rung until now ends no later sleep.
  static void ring_for_found(TcpPort& port) noexcept;
  static void forget_rings(TcpPort& port) noexcept;
  /// Takes in what has come, for a thread that waits for it beside the owner. False while the owner has not taken what
  /// was taken in before.
  bool look_beside(TcpPort& port);
  /// Until something came or was rung, here or at `other` (an eventfd), or `limit` has passed.
  static bool sleep(const TcpPort& port, std::chrono::nanoseconds limit, int other = -1) noexcept;

 private:
  /// An accepted connection whose peer has not proved yet that it knows the key.
  struct UnauthenticatedPeer {
    Fd socket;
    SocketAddress from;
    Clock::time_point since;
    std::size_t got = 0;
    std::array<std::byte, sizeof(hosts::Greeting)> bytes{};
  };
  /// A connect() that is under way.
  struct Connecting {
    std::uint64_t token;
    std::uint16_t to, from;
  };

  TcpNetwork(const hosts::NetworkSettings& settings, CongestionControl congestion, hosts::Self self)
      : settings_(settings),
        congestion_(std::move(congestion)),
        sizes_(settings),
        surroundings_(std::move(self.surroundings)),
        self_(std::move(self.card)),
        key_(hosts::key_for(settings.job_secret, self_.token)) {}
  Result<void> listen();
  Result<void> watch_common();
  bool watch_listeners();

  void before_fork() override { lock_.lock(); }
  void after_fork_in_parent() noexcept override { lock_.unlock(); }
  void after_fork_in_child() noexcept override;

  // ---- network.cpp: what comes in ----
  bool take(TcpPort& port, Frame& frame);
  void look(TcpPort& port, bool places);
  bool read(TcpLink& link, bool places);
  bool make_room(TcpLink& link);
  std::size_t most_to_read(const TcpLink& link) const;
  ssize_t receive(TcpLink& link, std::span<std::byte> place, std::size_t room);
  void parse(TcpLink& link);
  void starve(TcpLink& link);
  void feed(TcpPort& port);
  enum class Taken : std::uint8_t { yes, nonsense, no_memory };
  Taken take_frame(TcpLink& link, const TcpFrameHead& head, const std::byte* at, std::size_t begun);
  Taken begin_origin(TcpLink& link, std::span<const std::byte> introduction);
  static bool has_room_for_frame(const TcpLink& link) noexcept;
  void found(TcpLink& link, const TcpFrameHead& head, const std::byte* header, std::span<const std::byte> data,
             Block* block);
  void found_more(TcpLink& link, std::span<const std::byte> data, Block* block);
  void cut_off(TcpLink& link);
  void let_block_go(TcpLink& link);
  Block* take_block();
  void put_back(Block& block);
  void drop_frames(TcpPort& port, std::uint32_t origin);

  // ---- links.cpp ----
  static bool watch_for_reading(const Fd& set, const Fd& what, std::uint64_t number);
  bool watch(TcpLink& link, int set, std::uint32_t events);
  void end_in(TcpLink& link);
  void break_link(TcpLink& link);
  void settle(TcpLink& link);
  void stop(TcpLink& link);
  void drop_unread(TcpLink& link);
  void leave_port(TcpLink& link);
  void forget(TcpLink& link);
  bool push_locked(TcpLink& to, Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  void note_sent(TcpLink& link, Kind kind) noexcept;
  bool send_copied(TcpLink& link, const TcpFrameHead& head, std::span<const std::byte> header, Gather& data);
  bool send_pieces(TcpLink& link, TcpFrameHead head, std::span<const std::byte> header, Gather& data);
  bool is_in_a_row(TcpLink& link) const;
  bool gather(TcpLink& link, const TcpFrameHead& head, std::span<const std::byte> header, Gather& data);
  void send_gathered(TcpPort& port);
  bool send_now(TcpLink& link, std::span<iovec> pieces, std::size_t total);
  bool flush(TcpLink& link);
  bool say(TcpLink& link, Kind kind);
  void await_room(TcpLink& link);
  void flush_all();
  void find_silent(Clock::time_point now);
  void give_up(TcpLink& link) noexcept;
  bool is_heard_from(std::uint64_t token) const;
  bool is_all_acknowledged(const TcpLink& link) const;

  // ---- connections.cpp ----
  void serve_common();
  void send_soon();
  void accept_some(int listener);
  void serve_unauthenticated(std::uint64_t number);
  UnauthenticatedPeer* make_unauthenticated() noexcept;
  void pause_accepting();
  std::shared_ptr<TcpLink> link_to(UnauthenticatedPeer& peer, const hosts::Greeting& greeting, TcpPort& port);
  hosts::Refusal admit(UnauthenticatedPeer& peer, const hosts::Greeting& greeting);
  void serve_connecting(const std::shared_ptr<TcpLink>& link);
  std::shared_ptr<TcpLink> begin(const SocketAddress& where, const hosts::Greeting& greeting, const hosts::Key& key);
  struct Offer {
    std::shared_ptr<TcpLink> link;  ///< none: nothing is offered, or not yet
    bool is_undecided = false;      ///< the peer may say hello on another one
  };
  Offer offered(std::uint64_t token, std::uint16_t to, std::uint16_t from);
  std::shared_ptr<TcpLink> await_offer(std::unique_lock<std::mutex>& lock, std::uint64_t token, std::uint16_t to,
                                       std::uint16_t from);
  std::shared_ptr<TcpLink> connected(std::unique_lock<std::mutex>& lock, const hosts::ProcessCard& to,
                                     std::uint16_t port, std::uint16_t from, Error& why);
  Result<std::shared_ptr<TcpLink>> connect_locked(std::unique_lock<std::mutex>& lock, const hosts::ProcessCard& to,
                                                  std::uint16_t port, std::uint16_t from,
                                                  std::span<const std::byte> introduction);
  Result<void> adopt(const std::shared_ptr<TcpLink>& link, const hosts::ProcessCard& to, std::uint16_t port,
                     std::uint16_t from);
  void end_unauthenticated(Clock::time_point now);
  void note_reached(std::uint64_t host) noexcept;
  void serve();

  const hosts::NetworkSettings settings_;
  hosts::Unreached unreached_;
  const CongestionControl congestion_;
  const FrameSizes sizes_;
  const hosts::Surroundings surroundings_;
  hosts::ProcessCard self_;
  const hosts::Key key_;
  hosts::Greeted greeted_;
  std::set<std::uint64_t> reached_;  ///< hosts with which a connection has been up

  mutable std::mutex lock_;
  Fd listener_, v6_listener_;
  Fd common_;  ///< epoll: listeners, unauthenticated peers, connectors, and links without a port
  Fd wake_;    ///< eventfd in it: the thread has to look at the clock anew, or to stop
  Fd soon_;    ///< timer in it: what was gathered has to leave
  bool soon_is_set_ = false;
  std::array<TcpPort*, kNetworkPorts> ports_{};
  std::unordered_map<std::uint64_t, std::shared_ptr<TcpLink>> links_;  ///< by number
  std::map<std::uint64_t, UnauthenticatedPeer> unauthenticated_;       ///< by number, the oldest first
  std::vector<Connecting> connecting_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Block*> free_blocks_;
  std::uint64_t next_number_ = 16;
  std::uint64_t pushes_ = 0;
  Clock::time_point accept_again_{};  ///< set while accepting pauses for want of descriptors
  struct {
    std::uint64_t made = 0, accepted = 0, refused = 0, sent = 0, received = 0, dropped = 0, placed = 0, gathered = 0;
  } counts_;

  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ulfm::tcp
