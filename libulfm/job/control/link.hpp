// An authenticated control connection: packets out, packets in, descriptors along with them.
#pragma once

#include <deque>

#include "job/control/call.hpp"

namespace ulfm::control {

class Link {
 public:
  enum class Got { nothing, packet, end, broken };

  Link(Fd socket, SocketKind kind, Identity peer, Traffic& traffic)
      : socket_(std::move(socket)), kind_(kind), peer_(std::move(peer)), traffic_(traffic) {
    reader_.expect_session();
  }

  /// Sends now what the socket takes and keeps the rest for flush(). `passed` goes along (unix only). False
  /// when the connection is over, or when the other side has not read for so long that too much is kept.
  bool send(Bytes bytes, Fd passed = {});
  /// False when the connection is over.
  bool flush();
  bool wants_to_write() const noexcept { return !out_.empty(); }

  /// Looks for the next packet; after `packet` it is in reader() until the next call.
  Got receive();
  const PacketReader& reader() const noexcept { return reader_; }
  /// The oldest descriptor that came along and was not taken.
  Fd take_descriptor() noexcept;

  int fd() const noexcept { return socket_.get(); }
  SocketKind kind() const noexcept { return kind_; }
  const Identity& peer() const noexcept { return peer_; }

 private:
  struct Outgoing {
    Bytes bytes;
    std::size_t done = 0;
    Fd passed;
  };
  ssize_t send_some(Outgoing& out);
  ssize_t receive_some(std::span<std::byte> room);

  Fd socket_;
  SocketKind kind_;
  Identity peer_;
  Traffic& traffic_;
  PacketReader reader_;
  bool packet_taken_ = false;
  std::deque<Outgoing> out_;
  std::deque<Fd> descriptors_;
};

}  // namespace ulfm::control
