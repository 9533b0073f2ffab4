// The door: connections that have not shown yet that they know the secret.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstdio>

#include "job/control/server.hpp"

namespace ulfm::control {
namespace {
constexpr int kMostAccepts = 64;  // in one turn, so that those who are in get theirs
constexpr std::chrono::milliseconds kPause{100};
}  // namespace

void Server::accept_some() {
  for (int i = 0; i < kMostAccepts; ++i) {
    Fd socket(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) pause_accepting();
      return;
    }
    if (!is_same_user(socket, settings.kind)) {
      note_unauthenticated(socket, counts.refused, "it is another user's");
      continue;
    }
    tune(socket, settings.kind);
    if (unauthenticated.size() >= settings.unauthenticated_limit)
      dismiss(unauthenticated.begin()->first, counts.crowded_out, "it made room for a later one");
    const std::uint64_t id = next_id++;
    const int fd = socket.get();
    unauthenticated.try_emplace(id, std::move(socket), key.secret, Clock::now() + settings.handshake_time);
    if (!watch(fd, id, EPOLLIN, EPOLL_CTL_ADD)) unauthenticated.erase(id);
  }
}

// No descriptors are left. Closes the oldest unauthenticated connection; without one, accepting pauses until the
// program closes a descriptor.
void Server::pause_accepting() {
  if (!unauthenticated.empty()) {
    dismiss(unauthenticated.begin()->first, counts.crowded_out, "it made room for a later one");
    return;
  }
  accept_again = Clock::now() + kPause;
  (void)watch(listener.get(), kListener, 0, EPOLL_CTL_MOD);
}

void Server::serve_unauthenticated(std::uint64_t id, UnauthenticatedPeer& peer) {
  for (;;) {
    const auto room = peer.reader.room();
    const ssize_t got = recv(peer.socket.get(), room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return dismiss(id, counts.left, "it closed the connection before it showed the secret");
    peer.traffic.bytes_in += static_cast<std::size_t>(got);
    const PacketReader::Step step = peer.reader.took(static_cast<std::size_t>(got));
    if (step == PacketReader::Step::broken)
      return dismiss(id, counts.refused, "its bytes are not those of a control connection");
    if (step == PacketReader::Step::more) continue;
    if (auto ok = take(peer); !ok) return dismiss(id, counts.refused, ok.error().what);
    if (peer.acceptor.done()) return admit(id);
  }
}

Result<void> Server::take(UnauthenticatedPeer& peer) {
  Bytes out;
  ++peer.traffic.messages_in;
  if (auto ok = peer.acceptor.take(peer.reader.body(), out); !ok) return ok;
  peer.reader.next();
  peer.reader.expect(peer.acceptor.expects());
  if (out.empty()) return {};
  // A new socket has room for the one answer that an unauthenticated peer gets.
  if (::send(peer.socket.get(), out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()))
    return fail(Errc::closed, "it takes no answer");
  ++peer.traffic.messages_out;
  peer.traffic.bytes_out += out.size();
  return {};
}

void Server::dismiss(std::uint64_t id, std::uint64_t& counter, const std::string& why) {
  note_unauthenticated(unauthenticated.at(id).socket, counter, why);
  unauthenticated.erase(id);
}

// One line for a process and its life: a flood must not fill anybody's log.
void Server::note_unauthenticated(const Fd& socket, std::uint64_t& counter, const std::string& why) {
  ++counter;
  if (counts.all() != 1) return;
  std::fprintf(
      stderr,
      "ulfm: rank %d: an unauthenticated connection to the control channel, from %s, was refused: %s; others will "
      "only be counted (ULFM_STATS=1)\n",
      settings.rank, place_of_peer(socket, settings.kind).c_str(), why.c_str());
}

void Server::admit(std::uint64_t id) {
  auto node = unauthenticated.extract(id);
  UnauthenticatedPeer& known = node.mapped();
  add(id, std::move(known.socket), settings.kind, known.acceptor.peer(), known.traffic, trace::Direction::arrived);
  if (send(id, packet(self))) serve_connection(id, EPOLLIN);
}

}  // namespace ulfm::control
