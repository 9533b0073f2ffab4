#include "job/control/call.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include <fmt/core.h>

namespace ulfm::control {
namespace {

using std::chrono::milliseconds;

// One try: a little more than the time an acceptor gives to whoever it does not know.
constexpr milliseconds kOneTry{6000};
constexpr milliseconds kMostPause{64};

}  // namespace

std::uint32_t Call::awaits() const noexcept { return state_ == State::connecting ? EPOLLOUT : EPOLLIN; }

Call::State Call::move_on(bool ready) {
  if (ready) {
    if (state_ == State::connecting) begin_handshake();
    else if (state_ == State::shaking_hands) shake_hands();
  } else if (Clock::now() >= deadline_) {
    if (state_ == State::pausing) begin_try();
    else try_again("it did not answer");
  }
  return state_;
}

void Call::begin_try() {
  begun_ = true;
  deadline_ = std::min(until_, Clock::now() + kOneTry);
  auto begun = begin_connect(key_);
  if (begun) {
    socket_ = std::move(*begun);
    state_ = State::connecting;
    return;
  }
  if (begun.error().code == Errc::full) return try_again("the listener has no room");
  nobody_there_ = begun.error().code == Errc::peer_failed;
  give_up(std::move(begun.error()));
}

void Call::begin_handshake() {
  switch (const int error = outcome(socket_)) {
    case 0: break;
    case ETIMEDOUT:
    case ECONNRESET: return try_again("it did not answer");
    case ECONNREFUSED:
      nobody_there_ = true;
      return give_up({Errc::peer_failed, "nobody listens at the address of its control channel any more"});
    default: return give_up(fail_errno("connecting to its control channel", error).value());
  }
  tune(socket_, key_.kind);
  connector_.emplace(key_.secret, self_);
  reader_ = {};
  reader_.expect(connector_->expects());
  state_ = State::shaking_hands;
  send(connector_->greeting(), 1);
}

void Call::shake_hands() {
  while (state_ == State::shaking_hands) {
    const auto room = reader_.room();
    const ssize_t got = recv(socket_.get(), room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return try_again("it closed the connection");
    traffic_.bytes_in += static_cast<std::size_t>(got);
    const PacketReader::Step step = reader_.took(static_cast<std::size_t>(got));
    if (step == PacketReader::Step::more) continue;
    if (step == PacketReader::Step::broken)
      return give_up(
          {Errc::peer_failed, "who listens at the address of its control channel now speaks something else"});
    ++traffic_.messages_in;
    Bytes out;
    if (auto ok = connector_->take(reader_.body(), out); !ok) return give_up(std::move(ok.error()));
    if (connector_->done()) {
      state_ = State::through;
      return;
    }
    reader_.next();
    reader_.expect(connector_->expects());
    send(out, 2);  // proof and identity
  }
}

// A new socket has room for the little that is said here.
void Call::send(const Bytes& bytes, std::uint64_t messages) {
  if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    return try_again("it closed the connection");
  traffic_.bytes_out += bytes.size();
  traffic_.messages_out += messages;
}

// Nothing tells when a crowded listener has room again.
void Call::try_again(const char* how) {
  socket_.reset();
  deadline_ = Clock::now() + pause_;
  pause_ = std::min(2 * pause_, kMostPause);
  state_ = State::pausing;
  if (deadline_ >= until_)
    give_up({Errc::timed_out, fmt::format("its control channel could not be reached in time: {}", how)});
}

void Call::give_up(Error error) {
  socket_.reset();
  error_ = std::move(error);
  state_ = State::failed;
}

}  // namespace ulfm::control
