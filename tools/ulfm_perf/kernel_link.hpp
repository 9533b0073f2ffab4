// What the two sides have between them besides their ports: a Unix-domain stream socket, and a cache line.
#pragma once

#include <cstddef>

#include "base/segment.hpp"
#include "floor.hpp"
#include "pair.hpp"

namespace perf {

class KernelLink {
 public:
  /// Run by both sides, also of a job: one barrier. Errc::system with the call that failed.
  static ulfm::Result<KernelLink> make(Side& side);

  KernelLink(KernelLink&& other) noexcept;
  KernelLink& operator=(KernelLink&&) = delete;
  ~KernelLink();

  /// Has the kernel copy `size` bytes in, or out. Both look, and do not sleep. Throw Failure when the peer is gone.
  void send(const std::byte* bytes, std::size_t size);
  void receive(std::byte* bytes, std::size_t size);
  /// Throws Failure when the peer is gone.
  void expect_peer();

  Line& line() noexcept { return *segment_.at<Line>(0); }

 private:
  explicit KernelLink(int socket) : socket_(socket) {}
  ulfm::Result<void> share_line(int side);

  int socket_;
  ulfm::Segment segment_;
};

}  // namespace perf
