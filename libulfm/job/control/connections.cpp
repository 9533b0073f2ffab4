// Connections whose other side is known.
#include <sys/epoll.h>

#include <cstdio>

#include <fmt/core.h>

#include "job/control/server.hpp"
#include "job/liveness.hpp"

namespace ulfm::control {
namespace {
void note(const char* what, trace::Direction way, const Link& link, std::size_t bytes) {
  if (trace::on())
    trace::note({what, trace::Channel::control, way, kKindNames[static_cast<std::size_t>(link.kind())], link.peer().pid,
                 bytes});
}
}  // namespace

// Its handshake is through. In epoll it keeps its number.
void Server::add(std::uint64_t id, Fd socket, SocketKind kind, const Identity& peer, const Traffic& handshake,
                 trace::Direction way) {
  Traffic& t = traffic_of(kind);
  ++(way == trace::Direction::sent ? t.made : t.accepted);
  t.messages_out += handshake.messages_out;
  t.messages_in += handshake.messages_in;
  t.bytes_out += handshake.bytes_out;
  t.bytes_in += handshake.bytes_in;
  if (trace::on())
    trace::note({"connection", trace::Channel::control, way, kKindNames[static_cast<std::size_t>(kind)], peer.pid,
                 way == trace::Direction::sent ? handshake.bytes_out : handshake.bytes_in});
  by_identity.try_emplace(peer.card, id);
  // A peer that knows our secret may claim to be any process. Its identity is proved by the kernel, or by the secret
  // of its own that it has shown when we called it.
  const bool tied = kind == SocketKind::unix_socket ? pid_of_peer(socket) == static_cast<pid_t>(peer.pid)
                                                    : way == trace::Direction::sent;
  connections.emplace(id, std::make_unique<Connection>(std::move(socket), kind, peer, t)).first->second->tied = tied;
}

// False, and the connection is gone, when it is over.
bool Server::send(std::uint64_t id, Bytes bytes, Fd passed) {
  Connection& connection = *connections.at(id);
  note(name(static_cast<Type>(bytes[0])), trace::Direction::sent, connection.link, bytes.size());
  if (!connection.link.send(std::move(bytes), std::move(passed))) {
    part_with(id, true);
    return false;
  }
  if (connection.link.wants_to_write() != connection.awaits_room) {
    connection.awaits_room = connection.link.wants_to_write();
    (void)watch(connection.link.fd(), id, EPOLLIN | (connection.awaits_room ? EPOLLOUT : 0u), EPOLL_CTL_MOD);
  }
  return true;
}

void Server::serve_connection(std::uint64_t id, std::uint32_t events) {
  Connection& connection = *connections.at(id);
  if ((events & EPOLLOUT) != 0) {
    if (!connection.link.flush()) return part_with(id, true);
    if (!connection.link.wants_to_write()) {
      connection.awaits_room = false;
      (void)watch(connection.link.fd(), id, EPOLLIN, EPOLL_CTL_MOD);
    }
  }
  for (;;) {
    switch (connection.link.receive()) {
      case Link::Got::nothing: return;
      case Link::Got::end: return part_with(id, true);
      case Link::Got::broken: return part_with(id, false);
      case Link::Got::packet:
        if (!take(id, connection)) return;
    }
  }
}

// False when the connection is gone.
bool Server::take(std::uint64_t id, Connection& connection) {
  const auto body = connection.link.reader().body();
  note(name(connection.link.reader().type()), trace::Direction::arrived, connection.link, kHead + body.size());
  const auto nonsense = [&] {
    part_with(id, false);
    return false;
  };
  switch (connection.link.reader().type()) {
    case Type::set_up:
      if (!read_set_up(body)) return nonsense();
      ++set_ups_in;
      return true;
    case Type::descriptor_request:
      if (auto request = read_descriptor_request(body)) return answer(id, connection, *request);
      return nonsense();
    case Type::descriptor:
      if (auto answer = read_descriptor_answer(body)) take_answer(id, connection, *answer);
      else return nonsense();
      return true;
    case Type::abort:
      if (auto abort = read_abort(body)) report(connection, *abort);
      else return nonsense();
      return true;
    case Type::goodbye:
      connection.said_goodbye = true;
      by_identity.erase(connection.link.peer().card);  // a later set-up does not go this way
      return true;
    default: return nonsense();
  }
}

bool Server::answer(std::uint64_t id, Connection& connection, const DescriptorRequest& request) {
  if (connection.link.kind() != SocketKind::unix_socket)
    return send(id, packet(DescriptorAnswer{request.number, Passing::not_this_way}));
  Fd passed = source ? source(request.what) : Fd{};
  if (!passed) return send(id, packet(DescriptorAnswer{request.number, Passing::not_there}));
  ++descriptors;
  return send(id, packet(DescriptorAnswer{request.number, Passing::here}), std::move(passed));
}

void Server::take_answer(std::uint64_t id, Connection& connection, const DescriptorAnswer& answer) {
  Fd passed = answer.passing == Passing::here ? connection.link.take_descriptor() : Fd{};
  const auto it = fetches.find(answer.number);
  if (it == fetches.end() || it->second.connection != id || it->second.done) return;  // nobody waits any more
  Fetch& fetch = it->second;
  if (passed) fetch.result = std::move(passed);
  else if (answer.passing == Passing::not_this_way)
    fetch.result = fail(Errc::unavailable, "descriptors go by Unix-domain sockets only");
  else fetch.result = fail(Errc::not_found, "that process has no such descriptor (now)");
  fetch.done = true;
  news.notify_all();
}

void Server::fail_fetches(std::uint64_t id) {
  for (auto& [number, fetch] : fetches)
    if (fetch.connection == id && !fetch.done) {
      fetch.result = fail(Errc::peer_failed, "that process has ended");
      fetch.done = true;
    }
  news.notify_all();
}

// The first one only: a job that falls apart has many.
void Server::report(const Connection& connection, const Abort& abort) {
  if (++aborts != 1) return;
  const Identity& peer = connection.link.peer();
  const std::string code = abort.code == kUnknownCode ? "" : fmt::format(", exit code {}", abort.code);
  std::fprintf(stderr, "ulfm: rank %d: process %u (rank %u of its job) gave up: %s%s\n", settings.rank, peer.pid,
               peer.rank, abort.sentence.c_str(), code.c_str());
}

// Without a goodbye the kernel has closed it for a process that is no more; one that we close gets a goodbye,
// so that the other side does not think so of us.
void Server::part_with(std::uint64_t id, bool broken_by_peer) {
  const auto it = connections.find(id);
  Connection& connection = *it->second;
  const Identity& peer = connection.link.peer();
  if (!broken_by_peer) {
    (void)connection.link.send(goodbye());
  } else if (!connection.said_goodbye) {
    ++ended;
    // Of others /proc tells.
    if (peer.host == self.host && connection.tied) note_departed(static_cast<pid_t>(peer.pid), peer.started);
  }
  if (const auto named = by_identity.find(peer.card); named != by_identity.end() && named->second == id)
    by_identity.erase(named);
  fail_fetches(id);
  connections.erase(it);
}

}  // namespace ulfm::control
