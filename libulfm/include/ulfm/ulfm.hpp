// ULFM, user-level fast message: the C++ interface.
//
//   auto job  = ulfm::Job::join().value();                          // rank, size, key-value exchange
//   auto port = job.open_port({.slot_bytes = 4096, .depth = 64}).value();
//   auto out  = port.compose(n).value();                            // a span inside the send buffer
//   fill(out.bytes());
//   port.post(std::move(out), job.address(peer, 7).value());        // pushes the port number; never blocks
//   if (auto in = port.poll().value()) use(in->bytes());            // in place; released when `in` dies
//
// Errors are values (ulfm::Result<T>, a tl::expected). A job and its ports may be used from several threads, each port
// by one thread at a time. Handles are cheap to move; using a port after it was closed is Errc::stale.
//
// Source of the design: Zhou et al., "A fast message passing mechanism at user level for cluster computing" (1999).
#pragma once

#include <ulfm/ulfm.h>
#include <ulfm/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ulfm {

class Node;

/// Where a port is.
using Address = ulfm_address;

inline constexpr std::uint16_t any_port = ULFM_ANY_PORT;
inline constexpr std::chrono::nanoseconds forever{-1};

struct PortOptions {
  std::uint16_t number = any_port;  ///< 0..63, or a free one
  std::uint32_t slot_bytes = 0;     ///< size of one buffer; 0: the setting ULFM_SLOT
  std::uint32_t depth = 0;          ///< buffers each way; 1 is the original machine; 0: the setting ULFM_DEPTH
};

/// A send buffer being composed. Dies unsent unless posted.
class ULFM_API Outgoing {
 public:
  Outgoing(Outgoing&& other) noexcept : port_(std::exchange(other.port_, 0)), bytes_(other.bytes_) {}
  Outgoing& operator=(Outgoing&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Outgoing() {
    if (port_ != 0) ulfm_discard(port_);
  }
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  friend class Port;
  Outgoing(ulfm_port port, std::span<std::byte> bytes) : port_(port), bytes_(bytes) {}
  ulfm_port port_ = 0;
  std::span<std::byte> bytes_;
};

/// A message in a receive buffer, read in place. Released when it dies.
class ULFM_API Incoming {
 public:
  Incoming(Incoming&& other) noexcept : port_(std::exchange(other.port_, 0)), message_(other.message_) {}
  Incoming& operator=(Incoming&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(message_, other.message_);
    return *this;
  }
  ~Incoming() {
    if (port_ != 0) ulfm_release(port_, &message_);
  }
  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(message_.bytes), message_.size};
  }
  Address source() const noexcept { return message_.source; }

 private:
  friend class Port;
  Incoming(ulfm_port port, const ulfm_message& message) : port_(port), message_(message) {}
  ulfm_port port_ = 0;
  ulfm_message message_{};
};

/// Several ports as one destination of one port's messages. Closed when it dies; what was posted to it is still sent.
class ULFM_API Group {
 public:
  Group(Group&& other) noexcept { *this = std::move(other); }
  Group& operator=(Group&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Group() {
    if (port_ != 0) ulfm_group_close(port_, handle_);
  }
  /// The same group for the C interface; valid as long as this object holds it.
  ulfm_group handle() const noexcept { return handle_; }

 private:
  friend class Port;
  Group(ulfm_port port, ulfm_group handle) : port_(port), handle_(handle) {}
  ulfm_port port_ = 0;
  ulfm_group handle_ = 0;
};

/// A uport of this process. Closed when it dies.
class ULFM_API Port {
 public:
  Port(Port&& other) noexcept { *this = std::move(other); }
  Port& operator=(Port&& other) noexcept;
  ~Port();

  std::uint16_t number() const noexcept;
  /// A send buffer of that many bytes. Errc::full while all are on their way, Errc::busy while one is being composed.
  Result<Outgoing> compose(std::size_t bytes);
  /// Tags the buffer and hands the port number to the interface, through the send queue when that is busy.
  Result<void> post(Outgoing&& message, Address to);
  /// compose, copy and post in one; waits for a send buffer for up to `limit`.
  Result<void> send(std::span<const std::byte> bytes, Address to, std::chrono::nanoseconds limit = forever);

  /// Connects to these ports as one destination: see ulfm_group_open.
  Result<Group> group(std::span<const Address> members);
  /// The same; members send on what comes to them where the transport has no better way: see ulfm_group_open_tree.
  Result<Group> tree(std::span<const Address> members);
  /// Posts one message to all members. It is composed once; see ulfm_post_group for who gets it how.
  Result<void> post(Outgoing&& message, const Group& to);
  /// compose, copy and post in one; waits for a send buffer for up to `limit`.
  Result<void> send(std::span<const std::byte> bytes, const Group& to, std::chrono::nanoseconds limit = forever);

  /// The next message, if there is one.
  Result<std::optional<Incoming>> poll();
  /// Waits for it. Errc::timed_out; Errc::peer_failed once for each process that died with a connection to this port.
  Result<Incoming> wait(std::chrono::nanoseconds limit = forever);
  /// Waits for a message at any of these ports; returns which and the message.
  static Result<std::pair<std::size_t, Incoming>> wait_any(std::span<Port* const> ports,
                                                           std::chrono::nanoseconds limit = forever);
  /// Waits until everything posted has left.
  Result<void> flush(std::chrono::nanoseconds limit = forever);
  Result<void> close();
  /// The same port for the C interface; valid as long as this object holds it.
  ulfm_port handle() const noexcept { return handle_; }

 private:
  friend class Job;
  explicit Port(ulfm_port handle) : handle_(handle) {}
  Result<Outgoing> copy_of(std::span<const std::byte> bytes, std::chrono::nanoseconds limit);
  Result<Group> open_group(std::span<const Address> members,
                           int (*open)(ulfm_port, const ulfm_address*, int, ulfm_group*));
  ulfm_port handle_ = 0;
};

/// Membership in a job. Leaves when it dies; its ports are closed then.
class ULFM_API Job {
 public:
  /// The job this process was launched in; alone when it was not launched.
  static Result<Job> join();
  /// Alone in any case.
  static Result<Job> alone();
  Job(Job&& other) noexcept { *this = std::move(other); }
  Job& operator=(Job&& other) noexcept;
  ~Job();

  int rank() const noexcept;
  int size() const noexcept;
  Result<void> barrier();
  /// Name of the transport that carries the messages, e.g. "direct".
  std::string transport() const;
  Result<void> put(const std::string& key, const std::string& value);
  Result<std::string> get(const std::string& key);
  std::string card() const;
  Result<Port> open_port(const PortOptions& options = {});
  Result<Address> address(int rank, std::uint16_t port);
  Result<Address> address_of_card(const std::string& card, std::uint16_t port);

 private:
  explicit Job(ulfm_job handle) : handle_(handle) {}
  ulfm_job handle_ = 0;
};

}  // namespace ulfm
