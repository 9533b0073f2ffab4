#include "kernel_link.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <fmt/core.h>

#include "job/abstract_name.hpp"
#include "messages.hpp"

namespace perf {
namespace {

constexpr const char* kKey = "ulfm-perf-link";

// Closes a descriptor unless it is taken.
struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  int take() noexcept { return std::exchange(fd, -1); }
  int fd;
};

ulfm::Result<std::string> listen_somewhere(int fd) {
  std::string name;
  if (!ulfm::bind_anywhere(fd, name)) return ulfm::fail_errno("binding a Unix socket");
  if (listen(fd, 1) != 0) return ulfm::fail_errno("listening on a Unix socket");
  return name;
}

ulfm::Result<int> accept_peer(Side& side, Descriptor& socket) {
  auto name = listen_somewhere(socket.fd);
  if (!name) return tl::unexpected(name.error());
  if (auto ok = side.job->put(kKey, *name); !ok) return tl::unexpected(ok.error());
  if (auto ok = side.job->barrier(); !ok) return tl::unexpected(ok.error());
  const int fd = accept4(socket.fd, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return ulfm::fail_errno("accepting the other side on a Unix socket");
  return fd;
}

ulfm::Result<int> connect_to_peer(Side& side, Descriptor& socket) {
  if (auto ok = side.job->barrier(); !ok) return tl::unexpected(ok.error());
  auto name = side.job->get(kKey);
  if (!name) return tl::unexpected(name.error());
  const ulfm::AbstractName address(*name);
  if (connect(socket.fd, address.get(), address.length()) != 0)
    return ulfm::fail_errno("connecting a Unix socket to the other side");
  return socket.take();
}

ulfm::Result<int> make_socket(Side& side) {
  if (side.channel >= 0) {
    const int fd = fcntl(side.channel, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return ulfm::fail_errno("a second descriptor of the socket to the other side");
    return fd;
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.fd < 0) return ulfm::fail_errno("a Unix socket");
  return side.number == 0 ? accept_peer(side, socket) : connect_to_peer(side, socket);
}

[[noreturn]] void peer_is_gone(int number) {
  throw Failure{{ulfm::Errc::peer_failed,
                 fmt::format("the other side's socket: {}", number == 0 ? "it was closed" : std::strerror(number))}};
}

// Did it move bytes? Not when that would have meant to sleep.
bool moved(ssize_t result) {
  if (result > 0) return true;
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  peer_is_gone(result == 0 ? 0 : errno);
}

}  // namespace

KernelLink::KernelLink(KernelLink&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), segment_(std::move(other.segment_)) {}

KernelLink::~KernelLink() {
  if (socket_ >= 0) close(socket_);
}

ulfm::Result<KernelLink> KernelLink::make(Side& side) {
  auto socket = make_socket(side);
  if (!socket) return tl::unexpected(socket.error());
  KernelLink link(*socket);
  if (auto ok = link.share_line(side.number); !ok) return tl::unexpected(ok.error());
  return link;
}

// Side 0 makes the segment and says where it is; side 1 answers when it has mapped it.
ulfm::Result<void> KernelLink::share_line(int side) {
  struct Place {
    pid_t pid;
    int fd;
  } place{};
  const auto swap_words = [&](bool first) {
    auto* bytes = reinterpret_cast<std::byte*>(&place);
    first ? send(bytes, sizeof place) : receive(bytes, sizeof place);
  };
  try {
    if (side == 0) {
      segment_ = need(ulfm::Segment::create("ulfm-perf-line", 4096));
      need(segment_.commit(0, segment_.size()));
      new (segment_.base()) Line;
      place = {getpid(), segment_.fd()};
    }
    swap_words(side == 0);
    if (side == 1) segment_ = need(ulfm::Segment::attach(place.pid, place.fd));
    swap_words(side == 1);
  } catch (Failure& failure) {
    return tl::unexpected(std::move(failure.error));
  }
  return {};
}

void KernelLink::send(const std::byte* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    ssize_t n = 0;
    const auto look = [&] {
      return moved(n = ::send(socket_, bytes + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL));
    };
    look_until(look, [] {});
    done += static_cast<std::size_t>(n);
  }
}

void KernelLink::receive(std::byte* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    ssize_t n = 0;
    look_until([&] { return moved(n = recv(socket_, bytes + done, size - done, MSG_DONTWAIT)); }, [] {});
    done += static_cast<std::size_t>(n);
  }
}

void KernelLink::expect_peer() {
  std::byte byte{};
  const ssize_t n = recv(socket_, &byte, sizeof byte, MSG_DONTWAIT | MSG_PEEK);
  (void)moved(n);
}

}  // namespace perf
