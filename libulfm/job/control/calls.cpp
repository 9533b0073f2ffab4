// Calls to other processes, until they are connections.
#include <sys/epoll.h>

#include <cstdio>

#include <fmt/core.h>

#include "job/control/server.hpp"

namespace ulfm::control {

void Server::serve_call(std::uint64_t id, bool ready) {
  Call& call = calls.at(id).call;
  const int fd = call.fd();
  const std::uint32_t awaited = call.awaits();
  const Call::State state = call.move_on(ready);
  if (state == Call::State::through) return answered(id);
  if (state == Call::State::failed || (state == Call::State::pausing && !running)) return give_up(id);
  if (call.fd() >= 0 && (fd < 0 || call.awaits() != awaited))
    (void)watch(call.fd(), id, call.awaits(), fd < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
}

void Server::answered(std::uint64_t id) {
  auto node = calls.extract(id);
  Calling& calling = node.mapped();
  Call& call = calling.call;
  called.erase(calling.identity);
  news.notify_all();
  if (call.peer().card != calling.identity) {
    ++calls_failed;
    unreachable.insert_or_assign(calling.identity,
                                 Error{Errc::peer_failed, fmt::format("{} has ended; {} listens in its place",
                                                                      process_of(calling.identity), call.peer().card)});
    return;
  }
  (void)watch(call.fd(), id, EPOLLIN, EPOLL_CTL_MOD);
  add(id, call.take_socket(), call.kind(), call.peer(), call.traffic(), trace::Direction::sent);
  for (const SetUp& set_up : calling.set_ups) {
    if (!send(id, packet(set_up))) return;
    ++set_ups_out;
  }
}

// The data go on: whether that process lives, the transport sees too. A process that has left in good order
// is no news.
void Server::give_up(std::uint64_t id) {
  auto node = calls.extract(id);
  const Calling& calling = node.mapped();
  const Call& call = calling.call;
  called.erase(calling.identity);
  news.notify_all();
  if (call.state() != Call::State::failed) return;  // broken off
  Error error = call.error();
  error = std::move(error).within(process_of(calling.identity));
  if (++calls_failed == 1 && !call.nobody_there())
    std::fprintf(stderr, "ulfm: rank %d: no control connection: %s\n", settings.rank, error.what.c_str());
  unreachable.insert_or_assign(calling.identity, std::move(error));
}

}  // namespace ulfm::control
