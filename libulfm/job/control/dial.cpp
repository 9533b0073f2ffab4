#include "job/control/dial.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

namespace ulfm::control {
namespace {

using std::chrono::milliseconds;

// One try: a little more than the time an acceptor gives to whoever it does not know.
constexpr milliseconds kOneTry{6000};
constexpr milliseconds kLeastPause{1}, kMostPause{64};

int milliseconds_to(Clock::time_point until) {
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000000));
}

// Errc::closed for what another try may mend.
tl::unexpected<Error> ended(const char* how) { return fail(Errc::closed, how); }

Result<void> await(const Fd& socket, short events, Clock::time_point until) {
  for (;;) {
    pollfd p{socket.get(), events, 0};
    const int rc = poll(&p, 1, milliseconds_to(until));
    if (rc > 0) return {};
    if (rc == 0) return ended("it did not answer");
    if (errno != EINTR) return fail_errno("waiting for a control connection");
  }
}

Result<void> send_all(const Fd& socket, const Bytes& bytes, Clock::time_point until) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = send(socket.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      if (auto ok = await(socket, POLLOUT, until); !ok) return ok;
    } else if (errno != EINTR) {
      return ended("it closed the connection");
    }
  }
  return {};
}

Result<void> receive_packet(const Fd& socket, PacketReader& reader, Clock::time_point until, Dialled& result) {
  for (;;) {
    const auto room = reader.room();
    const ssize_t got = recv(socket.get(), room.data(), room.size(), 0);
    if (got > 0) {
      result.bytes_in += static_cast<std::size_t>(got);
      const PacketReader::Step step = reader.took(static_cast<std::size_t>(got));
      if (step == PacketReader::Step::whole) {
        ++result.messages_in;
        return {};
      }
      if (step == PacketReader::Step::broken)
        return fail(Errc::peer_failed, "who listens at the address of its control channel now speaks something else");
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return ended("it closed the connection");
    } else if (errno == EAGAIN) {
      if (auto ok = await(socket, POLLIN, until); !ok) return ok;
    }
  }
}

Result<void> connect_socket(const EndpointKey& key, Clock::time_point until, Fd& socket) {
  auto begun = begin_connect(key);
  if (!begun) return fail(begun.error());
  socket = std::move(*begun);
  if (auto ok = await(socket, POLLOUT, until); !ok) return ok;
  const int error = outcome(socket);
  if (error == 0) return {};
  if (error == ECONNREFUSED)
    return fail(Errc::peer_failed, "nobody listens at the address of its control channel any more");
  if (error == ETIMEDOUT || error == ECONNRESET) return ended("it did not answer");
  return fail_errno("connecting to its control channel", error);
}

Result<Dialled> try_once(const EndpointKey& key, const Identity& self, Clock::time_point until) {
  Dialled result;
  if (auto ok = connect_socket(key, until, result.socket); !ok) return fail(ok.error());
  tune(result.socket, key.kind);
  Connector connector(key.secret, self);
  PacketReader reader;
  Bytes out = connector.greeting();
  while (!connector.done()) {
    if (auto ok = send_all(result.socket, out, until); !ok) return fail(ok.error());
    result.bytes_out += out.size();
    if (!out.empty()) result.messages_out += connector.expects() == Type::challenge ? 1 : 2;
    out.clear();
    reader.expect(connector.expects());
    if (auto ok = receive_packet(result.socket, reader, until, result); !ok) return fail(ok.error());
    if (auto ok = connector.take(reader.body(), out); !ok) return fail(ok.error());
    reader.next();
  }
  result.peer = connector.peer();
  return result;
}

}  // namespace

Result<Dialled> dial(const EndpointKey& key, const Identity& self, Clock::time_point until) {
  for (milliseconds pause = kLeastPause;; pause = std::min(2 * pause, kMostPause)) {
    auto result = try_once(key, self, std::min(until, Clock::now() + kOneTry));
    if (result) return result;
    const Errc code = result.error().code;
    if (code != Errc::closed && code != Errc::full) return result;
    if (Clock::now() + pause >= until)
      return fail(Errc::timed_out, "its control channel could not be reached in time: " + result.error().what);
    // Nothing tells when a crowded listener has room again.
    poll(nullptr, 0, static_cast<int>(pause.count()));
  }
}

}  // namespace ulfm::control
