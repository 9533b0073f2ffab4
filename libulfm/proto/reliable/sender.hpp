// The sending half of a reliable connection: what is on its way, and when to send it again.
//
// Numbers [oldest_, next_) are unacknowledged; each has a record and its bytes in a ring. Nothing here reads the clock
// when a frame is sent or acknowledged in good order: time is checked in service(), by the thread that polls, and a
// frame counts as sent when service() first sees it. So a process that computes for a while after it sent does not take
// its own absence for a slow network.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>

#include "proto/reliable/byte_ring.hpp"
#include "proto/reliable/counters.hpp"
#include "proto/reliable/round_trip.hpp"
#include "proto/reliable/wire.hpp"
#include "transport/contract.hpp"

namespace ulfm::reliable {

/// Where a sender gets acknowledgements to take along.
class AckSource {
 public:
  virtual ~AckSource() = default;
  /// One is due for the same peer: fills it in.
  virtual bool due(Ack& ack) = 0;
  /// It has gone.
  virtual void gone(const Ack& ack) = 0;
};

/// One connection, one direction. Under the lock of its port.
class Sender {
 public:
  enum class State : std::uint8_t {
    open,
    closed,    ///< the other side has closed its port or ended: what was on its way is dropped
    given_up,  ///< the other side stopped answering
  };

  Sender(std::unique_ptr<Outlet> under, std::uint32_t stream, std::uint16_t to, const ReliableSettings& settings,
         Counters& counters, AckSource& acks);

  /// Sends a frame; false, with nothing taken, when window, credit, memory or the transport has no room.
  bool push(Payload payload, std::span<const std::byte> header, Gather& data, std::size_t length);
  std::size_t max_frame(std::size_t header) const;

  // A frame that several connections send at once: kept, sent by somebody else, and then counted as sent or not.
  bool has_room() const noexcept;
  /// push() without the sending. False, with nothing kept, when there is no room.
  bool stage(Payload payload, std::span<const std::byte> header, Gather& data, std::size_t length);
  /// What goes in front of the frame's data: kWireLeast bytes and its own header. That one fits beside.
  void write_header(std::byte* to) const noexcept;
  bool transmit_staged() { return transmit(records_[next_ % kMostWindow], next_); }
  void commit() noexcept;
  void unstage() noexcept;

  /// An acknowledgement for this stream, which was not there yet when the port was last `looked_at`. True when it
  /// brought news.
  bool take(const Ack& ack, nanoseconds looked_at);
  /// Looks at the time; sends again what has to be. When to call again at the latest; kForever: not needed.
  nanoseconds service(nanoseconds now);
  /// Sends a frame that carries nothing but what is due (see AckSource) and, as a probe, the wish for an answer. False
  /// when there is no room.
  bool send_bare(bool probe);

  State state() const noexcept { return state_; }
  /// Why it is closed: the other side has ended, and not closed its port before.
  bool has_broken() const noexcept { return has_died_ || under_->has_broken(); }
  /// Nothing is on its way.
  bool settled() const noexcept { return oldest_ == next_ || state_ != State::open; }
  bool wants_service() const noexcept { return state_ == State::open && (oldest_ != next_ || blocked_); }
  std::uint32_t stream() const noexcept { return stream_; }
  std::uint32_t unacknowledged() const noexcept { return next_ - oldest_; }
  Outlet& under() noexcept { return *under_; }
  const Outlet& under() const noexcept { return *under_; }
  /// Once, after it was given up: whose silence it was and what is lost by it.
  std::string take_sentence();

  // What the port notes about it.
  bool orphan = false;       ///< the outlet above is gone
  bool said_bye = false;     ///< the goodbye has a number and is on its way, or was acknowledged
  bool bye_pending = false;  ///< asked for when there was no room

 private:
  struct Record {
    const std::byte* bytes = nullptr;  ///< header, then data
    std::uint32_t length = 0;          ///< of the data
    std::uint32_t body = 0;            ///< checksum of header and data
    std::uint8_t header = 0;
    Payload payload = Payload::none;
    bool there = false;  ///< the receiver has it, ahead of an earlier one
    bool again = false;  ///< sent more than once since the last time-out
  };
  Record& record(std::uint32_t number) noexcept { return records_[number % kMostWindow]; }
  WireHeader header_of(const Record& record, std::uint32_t number) const noexcept;
  bool transmit(const Record& record, std::uint32_t number);
  bool transmit_parts(const Record& record, std::uint32_t number);
  bool emit(WireHeader& wire, std::uint32_t body, std::span<const std::byte> bytes);
  void resend(std::uint32_t number);
  void measure(std::uint32_t acknowledged, nanoseconds looked_at);
  void mark(const Ack& ack);
  nanoseconds next_service() const noexcept { return std::min(timer_, waiting_since_ + patience_); }
  void note_waiting(nanoseconds now);
  bool is_silent(nanoseconds now);
  void expire(nanoseconds now);
  void give_up(nanoseconds silent);
  void close();
  void drop_records();

  std::unique_ptr<Outlet> under_;
  std::uint32_t stream_;
  std::uint16_t to_;
  const ReliableSettings& settings_;
  Counters& counters_;
  AckSource& acks_;
  RoundTrip round_trip_;
  ByteRing ring_;
  std::array<Record, kMostWindow> records_{};

  State state_ = State::open;
  std::uint32_t oldest_ = 0, next_ = 0;
  std::uint32_t allowed_;         // numbers below it have credit
  bool has_died_ = false;         // the other side has ended, and has not closed its port
  bool blocked_ = false;          // credit ran out while somebody wanted to send
  unsigned expired_ = 0;          // time-outs in a row
  bool impatient_ = false;        // a time-out has sent something again, and we have not heard that it was there
  nanoseconds timer_{0};          // 0: to be set by the next service()
  nanoseconds waiting_since_{0};  // for give-up; 0 like timer_
  nanoseconds patience_{0};       // how long this wait may last, unless there is a crowd
  nanoseconds served_at_{0};      // the last service() of this wait
  std::uint32_t timed_ = 0;       // number whose round trip is measured
  nanoseconds timed_at_{0};       // 0: none is
  std::uint32_t seen_ = 0;        // next_ at the last service(): what is behind it has just gone
  std::string sentence_;
};

}  // namespace ulfm::reliable
