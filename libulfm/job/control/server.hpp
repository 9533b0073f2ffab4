// What serves a control channel: the table of connections, the unauthenticated peers at the door, and the thread.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/trace.hpp"
#include "job/control/control.hpp"
#include "job/control/link.hpp"

namespace ulfm::control {

/// In epoll; other numbers are those of unauthenticated peers and connections.
inline constexpr std::uint64_t kListener = 0, kWake = 1, kTimer = 2;

/// For messages.
std::string process_of(std::string_view identity);

struct Server {
  Server(const ControlSettings& s, Source from) : settings(s), source(std::move(from)) {}

  // ---- any thread ---------------------------------------------------------------------------------------

  Result<void> begin(std::string identity);
  Result<void> set_up(std::string_view card, std::uint16_t to, std::uint16_t from);
  Result<void> await(std::string_view identity);
  Result<Fd> fetch(std::string_view identity, std::uint32_t what);
  void abort(std::int32_t code, std::string_view sentence);
  /// The same when the process ends without close(): does nothing when the lock does not become free.
  void abort_at_exit(std::int32_t code);
  void close();
  std::string statistics(const std::string& who) const;
  /// In a child after fork(): it has no part in the job, and no copies of the connections.
  void disown();
  void forget_all();
  void wake_up() const;
  void wake_up_at(Clock::time_point when);

  // ---- the serving thread, holding the mutex -----------------------------------------------------------

  /// A connection that has not shown anything yet.
  struct UnauthenticatedPeer {
    UnauthenticatedPeer(Fd s, const Secret& secret, Clock::time_point until)
        : socket(std::move(s)), acceptor(secret), deadline(until) {
      reader.expect(acceptor.expects());
    }
    Fd socket;
    PacketReader reader;
    Acceptor acceptor;
    Clock::time_point deadline;
    Traffic traffic;
  };
  struct Connection {
    Connection(Fd socket, SocketKind kind, Identity peer, Traffic& traffic)
        : link(std::move(socket), kind, std::move(peer), traffic) {}
    Link link;
    bool said_goodbye = false;
    bool tied = false;  ///< the process at the other end is the one it says it is
    bool awaits_room = false;
  };
  /// A call to a process, and what to send when it answers.
  struct Calling {
    Calling(EndpointKey key, const Identity& self, Clock::time_point begin, Clock::time_point until, std::string whom)
        : call(std::move(key), self, begin, until), identity(std::move(whom)) {}
    Call call;
    std::string identity;
    std::vector<SetUp> set_ups;
  };
  struct Fetch {
    std::uint64_t connection = 0;
    bool done = false;
    Result<Fd> result = Fd{};
  };

  void serve();
  int time_to_deadline() const;
  void hear_timer();
  void serve_event(std::uint64_t id, std::uint32_t events);
  void accept_some();
  void pause_accepting();
  void look_at_clock();

  void serve_call(std::uint64_t id, bool ready);
  void answered(std::uint64_t id);
  void give_up(std::uint64_t id);
  Result<void> await(std::string_view identity, std::unique_lock<std::mutex>& lock);

  void serve_unauthenticated(std::uint64_t id, UnauthenticatedPeer& peer);
  Result<void> take(UnauthenticatedPeer& peer);
  void dismiss(std::uint64_t id, std::uint64_t& counter, const std::string& why);
  void note_unauthenticated(const Fd& socket, std::uint64_t& counter, const std::string& why);
  void admit(std::uint64_t id);

  void serve_connection(std::uint64_t id, std::uint32_t events);
  bool take(std::uint64_t id, Connection& connection);
  bool answer(std::uint64_t id, Connection& connection, const DescriptorRequest& request);
  void take_answer(std::uint64_t id, Connection& connection, const DescriptorAnswer& answer);
  void report(const Connection& connection, const Abort& abort);

  bool watch(int fd, std::uint64_t id, std::uint32_t events, int operation) const;
  bool send(std::uint64_t id, Bytes bytes, Fd passed = {});
  void add(std::uint64_t id, Fd socket, SocketKind kind, const Identity& peer, const Traffic& handshake,
           trace::Direction way);
  void part_with(std::uint64_t id, bool broken_by_peer);
  void fail_fetches(std::uint64_t id);
  Traffic& traffic_of(SocketKind kind) { return traffic[static_cast<std::size_t>(kind)]; }

  const ControlSettings settings;
  const Source source;
  EndpointKey key;
  Identity self;

  mutable std::mutex mutex;  // for everything below; never held over a call that blocks
  Fd epoll, listener, wake, timer;
  std::map<std::uint64_t, UnauthenticatedPeer> unauthenticated;  // the oldest first
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections;
  std::unordered_map<std::string, std::uint64_t> by_identity;
  std::map<std::uint64_t, Calling> calls;
  std::unordered_map<std::string, std::uint64_t> called;  // by identity: calls
  std::unordered_map<std::string, Error> unreachable;     // by identity: what became of the last call
  std::uint64_t next_id = 16;
  std::unordered_map<std::uint32_t, Fetch> fetches;
  std::uint32_t next_fetch = 1;
  std::condition_variable news;  // of fetches and calls
  std::array<Traffic, 2> traffic{};
  UnauthenticatedCounts counts;
  std::uint64_t set_ups_out = 0, set_ups_in = 0, calls_failed = 0, descriptors = 0, aborts = 0, ended = 0;
  Clock::time_point accept_again{};  // set while accepting pauses for want of descriptors
  bool timer_set = false;
  bool running = false, stopping = false;
  pthread_t thread{};
};

}  // namespace ulfm::control
