// What a process has on libfabric: one domain, one completion queue, one listener, and the connections.
//
// Endpoints are FI_EP_MSG, one connection for each virtual connection and direction (decision 0018): its addresses,
// deadlines and end are ours, and what has not been proven is refused before it can send a frame. All calls of
// libfabric are made under one lock, so the provider needs none of its own.
//
// The process that polls, sends or waits moves it. While the program computes, a thread looks every 10 ms, so that
// peers can connect and what was sent leaves.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "job/control/socket.hpp"
#include "transport/contract.hpp"
#include "transport/hosts/attempts.hpp"
#include "transport/hosts/forks.hpp"
#include "transport/hosts/network.hpp"
#include "transport/hosts/unreached.hpp"
#include "transport/ofi/fabric_library.hpp"
#include "transport/ofi/lifeline.hpp"
#include "transport/ofi/ofi.hpp"

namespace ulfm::ofi {

using control::Fd;
using hosts::Clock;
using hosts::SocketAddress;

/// In front of every frame; little-endian, as all hosts of a job are.
struct FrameHead {
  std::uint32_t connection;  ///< the receiver's number, from its Welcome
  std::uint32_t check;
  std::uint32_t length;  ///< of the data
  std::uint8_t kind;
  std::uint8_t header;  ///< bytes of header between this and the data
  std::uint16_t reserved;
};
static_assert(sizeof(FrameHead) == 16);

/// A frame of our own, the first of a connection: data are the card and the hello of the connector.
inline constexpr Kind kHello{8};
/// The last one: nothing that was sent before is under way any more. Carries nothing.
inline constexpr Kind kEnd{9};

/// What libfabric gives back with a completion.
struct Operation {
  enum class Type : std::uint8_t { receive, send } type;
};

struct OfiPort;
struct ReceiveBuffer : Operation {
  OfiPort* port = nullptr;
  std::uint32_t index = 0;   ///< in its port
  std::uint32_t length = 0;  ///< of what has arrived
  std::unique_ptr<std::byte[]> bytes;
};

struct OfiOutgoing;
struct SendBuffer : Operation {
  OfiOutgoing* connection = nullptr;  ///< none when that has gone before its completion came
  std::unique_ptr<std::byte[]> bytes;
  std::size_t length = 0;  ///< of what is on its way
};

/// What events name: one or the other end of a connection.
struct OfiEndpoint {
  enum class Side : std::uint8_t { incoming, outgoing } side;
  ProcessId process;  ///< the other one
  std::uint64_t token = 0;
  std::string peer;  ///< address of the other end
  Lifeline lifeline;
  Fid<fid_ep> ep;
};

/// A connection to a port of another process.
struct OfiOutgoing : OfiEndpoint, hosts::Try {
  hosts::Key key{};
  hosts::Nonce nonce{};
  hosts::Welcome welcome{};
  std::uint16_t from = kNoPort;
  std::uint32_t in_flight = 0;  ///< sends whose completion has not come
  std::size_t bytes_in_flight = 0;
  bool ending = false;  ///< its last frame has not gone yet
  std::atomic<bool> closed{false};
  Clock::time_point closed_at{};

  bool is_host_answering() const override;
};

/// A connection from a process to one of our ports. Its place in Port::incoming is the origin.
struct OfiIncoming : OfiEndpoint {
  OfiPort* port = nullptr;
  std::uint32_t check = 0;
  bool open = false;     ///< the place is taken
  bool greeted = false;  ///< its hello has come
  bool fresh = false;
  bool ended = false;  ///< the connection is over, nothing more will come
  bool cut_off = false;
  bool is_told = false;  ///< those above know that it is cut off
  std::uint16_t from = kNoPort;
  std::string card;
  std::vector<std::byte> hello;
};

/// A port of this process.
struct OfiPort {
  std::uint16_t number = 0;
  Fid<fid_ep> receive_context;
  std::vector<std::unique_ptr<ReceiveBuffer>> buffers;
  std::deque<ReceiveBuffer*> ready;
  std::deque<std::unique_ptr<OfiIncoming>> incoming;
  std::vector<std::uint32_t> unused;  ///< places of `incoming`
  std::uint32_t held = 0;             ///< frames handed out and not released
  std::uint32_t broken = 0;           ///< connections that are cut off and of which those above are to be told
  std::set<std::uint64_t> silent;     ///< tokens of processes whose hosts do not answer any more
  std::deque<Error> given_up;         ///< and what is to be said of them
  std::atomic<std::uint64_t> arrivals{0};
  Fd set;   ///< epoll: what libfabric waits on, and `rung`
  Fd rung;  ///< eventfd: for what another thread has taken in, which libfabric's descriptors do not tell any more
  std::atomic<bool> is_rung{false};
  std::atomic<bool> is_awaited{false};  ///< its owner sleeps, or is about to look once more before that
  Fd watched;  ///< eventfd: the same for a thread that waits beside the owner, and its end; without one it naps
  std::atomic<bool> is_watched{false};
};

class OfiNetwork final : hosts::Forkable {
 public:
  static constexpr std::string_view kTransport = "ofi";

  static Result<std::unique_ptr<OfiNetwork>> create(const hosts::NetworkSettings& settings);
  ~OfiNetwork();
  OfiNetwork(const OfiNetwork&) = delete;
  OfiNetwork& operator=(const OfiNetwork&) = delete;

  const hosts::ProcessCard& self() const noexcept { return self_; }
  hosts::Unreached& unreached() noexcept { return unreached_; }
  const std::string& provider() const noexcept { return provider_; }
  std::size_t max_frame() const noexcept { return settings_.max_frame; }
  std::vector<NamedCount> counts() const;

  // ---- ports; a port is used by one thread at a time ----
  Result<std::unique_ptr<OfiPort>> open(std::uint16_t number);
  void close(std::unique_ptr<OfiPort> port);
  bool next(OfiPort& port, Frame& frame);
  /// One look, for a wait with a core to spare.
  bool has_arrived(OfiPort& port);
  void release(OfiPort& port, const Frame& frame);
  OriginInfo origin(const OfiPort& port, std::uint32_t index) const;
  void drop_origin(OfiPort& port, std::uint32_t index);
  std::int64_t find_dead(OfiPort& port);
  std::int64_t take_broken(OfiPort& port);
  bool take_given_up(OfiPort& port, Error& error);
  /// Looks at everything. When this is false and the port is awaited, its `set` becomes readable with whatever comes
  /// next.
  bool has_frame(OfiPort& port);

  // ---- connections ----
  Result<std::shared_ptr<OfiOutgoing>> connect(const hosts::ProcessCard& to, std::uint16_t port, std::uint16_t from,
                                               std::span<const std::byte> introduction);
  bool push(OfiOutgoing& to, Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  /// What was sent goes on until it has left.
  void retire(std::shared_ptr<OfiOutgoing> connection);
  bool peer_listening(const OfiOutgoing& to);

  // ---- sleeping ----
  static void ring(OfiPort& port) noexcept;
  static void ring_watcher(OfiPort& port) noexcept;
  /// What was rung until now ends no later sleep. By the owner.
  static void forget_rings(OfiPort& port) noexcept;
  /// Until something came or was rung, `other` (a descriptor; -1: none) became readable, or `limit` has passed.
  static bool sleep(const OfiPort& port, std::chrono::nanoseconds limit, int other = -1) noexcept;
  /// Takes in what has come, for a thread that waits for it beside the owner of the port. False when frames lie there
  /// that the owner has not taken.
  bool look_beside(const OfiPort& port);

 private:
  OfiNetwork(const hosts::NetworkSettings& settings, hosts::Self self, const FabricLibrary* library)
      : settings_(settings),
        library_(library),
        surroundings_(std::move(self.surroundings)),
        self_(std::move(self.card)),
        key_(hosts::key_for(settings.job_secret, self_.token)) {}
  Result<void> open_provider(const std::string& name);
  Result<void> open_domain();
  Result<void> listen();
  Result<std::uint16_t> listen_at(const SocketAddress& where);
  Result<void> make_poll_set();
  /// A descriptor that is readable with one of libfabric's, and with `other` if there is one.
  Result<Fd> poll_set(int other) const;

  void before_fork() override { lock_.lock(); }
  void after_fork_in_parent() noexcept override { lock_.unlock(); }
  void after_fork_in_child() noexcept override;

  bool progress();
  void read_events();
  static void left(const SendBuffer& sent) noexcept;
  void take_completion(const fi_cq_msg_entry& entry);
  void take_failed_completion();
  void take_failed_event();
  void arrived(ReceiveBuffer& buffer, std::size_t length);
  bool introduce(OfiIncoming& from, std::span<const std::byte> bytes);
  void repost(ReceiveBuffer& buffer);
  void post_idle();
  void on_request(const fi_eq_cm_entry& event, std::span<const std::byte> greeting);
  Result<void> accept(fi_info& info, OfiPort& port, const hosts::Greeting& greeting);
  void on_connected(OfiEndpoint& endpoint, std::span<const std::byte> answer);
  void find_lifeline(OfiEndpoint& endpoint) const;
  std::set<std::string> authenticated() const;
  void end_unauthenticated();
  void find_silent();
  void give_up(OfiEndpoint& endpoint, OfiPort* port);
  void on_shutdown(OfiEndpoint& endpoint);
  void end(OfiIncoming& incoming);
  void reap();
  void ring_all() noexcept;
  void nap() const noexcept;
  bool is_ready_to_wait();
  bool clear_signals();

  Result<std::shared_ptr<OfiOutgoing>> begin(const hosts::ProcessCard& to, const Ip& ip,
                                             const hosts::Greeting& greeting, const hosts::Key& key);
  Result<fid_ep*> make_endpoint(fi_info& info, fid_ep* receive_context, void* context);
  bool is_heard_from(std::uint64_t token) const;
  SendBuffer* take_buffer(OfiOutgoing& to);
  bool push_locked(OfiOutgoing& to, Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length);
  void serve();

  const hosts::NetworkSettings settings_;
  hosts::Unreached unreached_;
  const FabricLibrary* const library_;
  std::string provider_;
  const hosts::Surroundings surroundings_;
  hosts::ProcessCard self_;
  const hosts::Key key_;
  hosts::Greeted greeted_;
  std::set<std::uint64_t> reached_;  ///< hosts with which a connection has been up

  mutable std::mutex lock_;
  Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_eq> events_;
  Fid<fid_domain> domain_;
  Fid<fid_cq> completions_;
  Fid<fid_pep> listener_, v6_listener_;
  Fid<fid_ep> send_only_;          ///< receive context of connections on which nothing comes
  Fd poll_set_;                    // for naps; a sleep at a port is on its own
  std::array<int, 2> waits_on_{};  // of libfabric: of its completion queue and its event queue
  std::array<OfiPort*, kPortsPerProcess> ports_{};
  std::vector<std::weak_ptr<OfiOutgoing>> outgoing_;
  std::vector<std::shared_ptr<OfiOutgoing>> retired_;
  bool is_reaping_ = false;
  std::vector<ReceiveBuffer*> idle_;  ///< that libfabric could not take
  std::size_t receive_buffers_ = 0;   ///< of all ports
  std::vector<std::unique_ptr<SendBuffer>> all_buffers_;
  std::vector<SendBuffer*> free_buffers_;
  std::size_t buffer_bytes_ = 0, inject_limit_ = 0;
  std::uint32_t looks_ = 0;
  UnauthenticatedPeers unauthenticated_;
  Clock::time_point look_for_silence_{};
  struct {
    std::uint64_t made = 0, came = 0, accepted = 0, refused = 0, sent = 0, received = 0, dropped = 0;
  } counts_;

  std::atomic<std::uint64_t> polls_{0};  // by the program, so that the thread sees whether it computes
  std::mutex stop_lock_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ulfm::ofi
