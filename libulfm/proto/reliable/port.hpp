// One port of a process under the protocol: its inlet, its connections, and their pending acknowledgements.
//
// Acknowledgements go the other way than frames, and ports are open in both directions: a port that receives from
// another answers to that port, with the next frame that goes there or, when none does soon, with a frame of its own.
// So everything of a port, outlets included, is one thing with one lock. Its parts are in files of their own:
// receiving.cpp, answering.cpp, timers.cpp, closing.cpp; connections and sending are in port.cpp and sender.cpp.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/solo_mutex.hpp"
#include "proto/reliable/incoming.hpp"
#include "proto/reliable/sender.hpp"

namespace ulfm::reliable {

class ReliablePort;

/// What found no room, or no way, is tried again after it.
inline constexpr std::chrono::microseconds kTryAgain{100};

/// Another port that this one talks with, in either direction. Under the lock of the port.
class Peer final : public AckSource {
 public:
  Peer(ReliablePort& port, std::string_view card_, std::uint16_t number_) : card(card_), number(number_), port_(port) {}
  bool due(Ack& ack) override;
  void gone(const Ack& ack) override;

  std::string card;
  std::uint16_t number;
  std::vector<Sender*> senders;
  std::vector<Incoming*> incoming;
  std::unique_ptr<Outlet> back;  ///< for answers, when no connection of ours goes there
  /// There is no way back until then: for ever when its port is closed or its process gone.
  std::chrono::nanoseconds no_way_until{0};

 private:
  ReliablePort& port_;
};

/// What all ports of a process share.
struct Common {
  std::shared_ptr<Transport> under;
  ReliableSettings settings;
  Counters counters;
  std::atomic<std::uint32_t> next_stream{1};  ///< only has to be another one each time
};

/// Any thread, unless said otherwise.
class ReliablePort {
 public:
  ReliablePort(std::shared_ptr<Common> common, std::uint16_t number, std::unique_ptr<Inlet> inlet);

  // ---- the inlet's side, one thread at a time; see Inlet ----
  bool next(Frame& frame);
  bool spin(std::uint32_t turns);
  bool look();
  void release(const Frame& frame);
  OriginInfo origin(std::uint32_t index);
  void drop_origin(std::uint32_t index);
  bool has_frame();
  WakeSource& wake_source() { return inlet_->wake_source(); }
  std::int64_t find_dead();
  std::int64_t take_broken();
  std::string why_broken();
  nanoseconds next_deadline();
  bool take_given_up(Error& error);
  std::size_t max_frame() const { return inlet_->max_frame(); }
  void use_counters(PortCounters& counters);

  // ---- the outlets' side; an outlet is used by one thread at a time ----
  Result<Sender*> connect(std::string_view card, std::uint16_t to, std::span<const std::byte> hello,
                          PortCounters& counters);
  bool push(Sender& sender, Payload payload, std::span<const std::byte> header, Gather& data, std::size_t length);
  /// The same frame by several, which the transport sends at once. As Multicast::push; `patient`: nothing goes as long
  /// as one has no room.
  bool push_many(std::span<Sender* const> senders, Multicast& under, Payload payload, const Headers& headers,
                 Gather& data, std::size_t length, std::vector<std::uint32_t>& who, bool patient);
  bool bye(Sender& sender);
  /// The outlet above is gone. What it sent goes on until it is acknowledged.
  void leave(Sender& sender);
  /// Runs `look(sender)` under the lock.
  template <typename Look>
  auto with(const Sender& sender, Look look) {
    std::lock_guard lock(lock_);
    return look(sender);
  }

  /// Keeps a port alive that nobody has polled since the last call: takes in, acknowledges, sends again.
  void keepalive();
  /// Waits, a bounded time, until everything sent has been acknowledged and nobody needs our answers any more; then
  /// the port of the transport is closed.
  void close();

  // For Peer.
  Ack ack_of(const Incoming& incoming) const noexcept { return incoming.ack(share_); }

 private:
  ReliableSettings const& settings() const noexcept { return common_->settings; }
  Counters& counters() noexcept { return common_->counters; }

  bool stage_all(std::span<Sender* const> senders, Payload payload, const Headers& headers, Gather& data,
                 std::size_t length, std::span<const std::uint32_t> who);
  void absorb();
  bool take_frame();
  void take_in(const Frame& frame);
  Incoming* on_connect(std::uint32_t origin);
  void take_payload(const Frame& frame, const WireHeader& wire, Incoming& incoming);
  void keep(Frame frame, const WireHeader& wire, Incoming& incoming);
  void deliver(const Frame& frame, Incoming& incoming);
  /// Out of the transport's memory, which gets its room back. False, with the frame where it was, without memory.
  bool take_out(Frame& frame);
  void give_back(const Frame& frame);
  void hand_out(Frame& frame);

  void idle();
  /// A turn of a wait in which nothing came, until that moment at most.
  void rest(nanoseconds until);
  void service(nanoseconds now);
  nanoseconds service_senders(nanoseconds now);
  nanoseconds service_incoming(nanoseconds now);
  bool finish(Sender& sender);
  void acknowledge(Incoming& incoming);
  Outlet* way_back(Peer& peer);
  bool send_ack(Outlet& outlet, const Ack& ack);
  void flush_acks();

  Peer& peer(std::string_view card, std::uint16_t number);
  void drop_incoming(std::uint32_t origin);
  void abandon(std::uint32_t origin);
  bool is_shown(std::uint32_t origin) const noexcept;
  void drop_sender(std::uint32_t stream);
  void drop_peer_if_idle(Peer& peer);
  void share_out();
  bool all_settled() const noexcept;
  bool answers_awaited() const noexcept;

  std::shared_ptr<Common> common_;
  std::uint16_t number_;
  SoloMutex lock_;
  std::unique_ptr<Inlet> inlet_;
  PortCounters back_counters_;  // of ways back; ports above count their own connections

  std::map<std::pair<std::string, std::uint16_t>, std::unique_ptr<Peer>, std::less<>> peers_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Sender>> senders_;  // by stream
  std::vector<std::unique_ptr<Incoming>> incoming_;                     // by origin
  std::uint32_t share_ = kMostWindow;                                   // frames granted to each sender
  FrameQueue ready_;
  CopyPool pool_;
  std::deque<std::string> given_up_;
  std::vector<std::uint32_t> broken_;

  bool unsettled_ = false;           // something happened since the timers were looked at
  nanoseconds deadline_ = kForever;  // of the earliest timer
  nanoseconds looked_at_{0};         // when there was nothing to take in; kept while a timer runs
  std::uint32_t since_idle_ = 0;     // frames taken in since
  bool closing_ = false;
  nanoseconds heard_at_{0};              // while closing: the last frame
  std::atomic<std::uint32_t> polls_{0};  // written under the lock; the keepalive thread only sees that it changes
  std::uint32_t polls_seen_ = 0;         // the keepalive thread's
};

}  // namespace ulfm::reliable
