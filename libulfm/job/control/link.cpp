#include "job/control/link.hpp"

#include <sys/socket.h>

#include <cstring>

namespace ulfm::control {
namespace {
constexpr std::size_t kMostKept = 256;        // packets that wait for the socket
constexpr std::size_t kMostDescriptors = 16;  // that came unasked or not yet taken
}  // namespace

ssize_t Link::send_some(Outgoing& out) {
  iovec piece{out.bytes.data() + out.done, out.bytes.size() - out.done};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (out.passed) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = out.passed.get();
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
}

bool Link::flush() {
  while (!out_.empty()) {
    Outgoing& first = out_.front();
    const ssize_t put = send_some(first);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN;
    first.passed.reset();  // it went with the first byte
    first.done += static_cast<std::size_t>(put);
    traffic_.bytes_out += static_cast<std::size_t>(put);
    if (first.done < first.bytes.size()) continue;
    ++traffic_.messages_out;
    out_.pop_front();
  }
  return true;
}

bool Link::send(Bytes bytes, Fd passed) {
  if (out_.size() == kMostKept) return false;
  out_.push_back({std::move(bytes), 0, std::move(passed)});
  return flush();
}

ssize_t Link::receive_some(std::span<std::byte> room) {
  iovec piece{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  // The kernel pads the room for one descriptor to that for two: all that came are taken, or they would stay open.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const unsigned char*>(head) + at, sizeof fd);
      Fd owner(fd);
      if (descriptors_.size() < kMostDescriptors) descriptors_.push_back(std::move(owner));
    }
  }
  return got;
}

Link::Got Link::receive() {
  if (packet_taken_) {
    reader_.next();
    packet_taken_ = false;
  }
  for (;;) {
    const ssize_t got = receive_some(reader_.room());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Got::nothing;
    if (got <= 0) return Got::end;
    traffic_.bytes_in += static_cast<std::size_t>(got);
    const PacketReader::Step step = reader_.took(static_cast<std::size_t>(got));
    if (step == PacketReader::Step::broken) return Got::broken;
    if (step == PacketReader::Step::more) continue;
    ++traffic_.messages_in;
    packet_taken_ = true;
    return Got::packet;
  }
}

Fd Link::take_descriptor() noexcept {
  if (descriptors_.empty()) return {};
  Fd first = std::move(descriptors_.front());
  descriptors_.pop_front();
  return first;
}

}  // namespace ulfm::control
