// The part of Network that makes, serves and ends connections.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "base/copy.hpp"
#include "base/room.hpp"
#include "job/liveness.hpp"
#include "transport/hosts/silence.hpp"
#include "transport/ofi/lifeline.hpp"
#include "transport/ofi/network.hpp"

namespace ulfm::ofi {

using hosts::check;
using hosts::Greeting;
using hosts::greeting;
using hosts::Key;
using hosts::key_for;
using hosts::refusal;
using hosts::Refusal;
using hosts::welcome;
using hosts::Welcome;

namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kMostInFlight = 32;  // sends of a connection that are not complete
constexpr std::size_t kMostBytesInFlight = 1 << 20;

}  // namespace

// ---- events ---------------------------------------------------------------------------------------------------------

void OfiNetwork::read_events() {
  bool any = false;
  alignas(fi_eq_cm_entry) std::byte bytes[sizeof(fi_eq_cm_entry) + 256];
  for (;;) {
    std::uint32_t what = 0;
    const Accepting accepting(v6_listener_ ? 2 : 1);
    const ssize_t got = fi_eq_read(events_.get(), &what, bytes, sizeof bytes, 0);
    counts_.came += accepting.count(self_.port);
    any = any || got > 0 || got == -FI_EAVAIL;
    if (got == -FI_EAVAIL) {
      take_failed_event();
      continue;
    }
    if (got < static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) break;
    const auto& event = *reinterpret_cast<const fi_eq_cm_entry*>(bytes);
    const std::span data(bytes + sizeof event, static_cast<std::size_t>(got) - sizeof event);
    if (what == FI_CONNREQ) on_request(event, data);
    else if (event.fid->context == nullptr) continue;
    else if (what == FI_CONNECTED) on_connected(*static_cast<OfiEndpoint*>(event.fid->context), data);
    else if (what == FI_SHUTDOWN) on_shutdown(*static_cast<OfiEndpoint*>(event.fid->context));
  }
  if (any) ring_all();
}

void OfiNetwork::take_failed_event() {
  std::byte data[256];
  fi_eq_err_entry entry{};
  entry.err_data = data;
  entry.err_data_size = sizeof data;
  if (fi_eq_readerr(events_.get(), &entry, 0) <= 0 || entry.fid == nullptr || entry.fid->context == nullptr) return;
  auto& endpoint = *static_cast<OfiEndpoint*>(entry.fid->context);
  if (endpoint.side == OfiEndpoint::Side::incoming) return on_shutdown(endpoint);
  auto& out = static_cast<OfiOutgoing&>(endpoint);
  if (out.state == OfiOutgoing::State::up) return on_shutdown(endpoint);
  const std::span answer(static_cast<const std::byte*>(entry.err_data), entry.err_data_size);
  if (entry.err_data_size != 0 && check(answer, out.key, out.nonce, out.welcome)) out.refusal = out.welcome.refusal;
  const std::string reason = out.refusal == Refusal::none ? error_text(entry.err) : "refused";
  out.fail_by(entry.err, reason);  // libfabric's numbers are those of errno
}

void OfiNetwork::on_request(const fi_eq_cm_entry& event, std::span<const std::byte> bytes) {
  Info info(event.info);
  Greeting greeting{};
  Refusal why = Refusal::unknown_secret;
  try {
    why = check(bytes, key_, greeted_, greeting);
  } catch (const std::bad_alloc&) {  // it tries again when it is refused without an answer
  }
  OfiPort* port = why == Refusal::none && greeting.to < ports_.size() ? ports_[greeting.to] : nullptr;
  if (why == Refusal::none && port == nullptr) why = Refusal::no_such_port;
  if (why == Refusal::none && !accept(*info, *port, greeting)) why = Refusal::no_room;
  if (why == Refusal::none) return;
  // A peer that does not know the secret learns nothing.
  const Welcome answer = refusal(key_, greeting.nonce, why);
  fid_pep* listener = v6_listener_ && event.fid == &v6_listener_->fid ? v6_listener_.get() : listener_.get();
  fi_reject(listener, info->handle, &answer, why == Refusal::unknown_secret ? 0 : sizeof answer);
  ++counts_.refused;
}

Result<fid_ep*> OfiNetwork::make_endpoint(fi_info& info, fid_ep* receive_context, void* context) {
  info.ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  fid_ep* made = nullptr;
  long rc = fi_endpoint(domain_.get(), &info, &made, context);
  if (rc != 0) return fail(Errc::system, fmt::format("making an endpoint: {}", error_text(rc)));
  Fid<fid_ep> ep(made);
  rc = fi_ep_bind(made, &events_->fid, 0);
  if (rc == 0) rc = fi_ep_bind(made, &completions_->fid, FI_TRANSMIT | FI_RECV);
  if (rc == 0) rc = fi_ep_bind(made, &receive_context->fid, 0);
  if (rc == 0) rc = fi_enable(made);
  if (rc != 0) return fail(Errc::system, fmt::format("setting an endpoint up: {}", error_text(rc)));
  return ep.release();
}

Result<void> OfiNetwork::accept(fi_info& info, OfiPort& port, const Greeting& greeting) {
  std::uint32_t place = static_cast<std::uint32_t>(port.incoming.size());
  if (port.unused.empty()) {
    if (place >= settings_.peers) return fail(Errc::full, "all places for senders are taken");
    port.incoming.push_back(std::make_unique<OfiIncoming>());
  } else {
    place = port.unused.back();
    port.unused.pop_back();
  }
  OfiIncoming& from = *port.incoming[place];
  from.side = OfiEndpoint::Side::incoming;
  from.port = &port;
  from.check = static_cast<std::uint32_t>(random_token()) | 1;
  const SocketAddress peer(info.dest_addr, info.dest_addrlen);
  from.peer = peer.text();
  from.process = {.number = greeting.pid};
  if (!peer.ip().is_loopback()) from.process.host = peer.ip();
  from.token = greeting.token;
  from.from = greeting.from;
  from.open = true;
  auto ep = make_endpoint(info, port.receive_context.get(), static_cast<OfiEndpoint*>(&from));
  const Welcome answer = welcome(key_, greeting.nonce, place, from.check, static_cast<std::uint32_t>(max_frame()));
  if (ep) from.ep.reset(*ep);
  const long rc = ep ? fi_accept(from.ep.get(), &answer, sizeof answer) : 0;
  if (ep && rc == 0) {
    ++counts_.accepted;
    return {};
  }
  end(from);
  port.unused.push_back(place);
  return ep ? fail(Errc::system, fmt::format("accepting: {}", error_text(rc))) : fail(ep.error());
}

void OfiNetwork::on_connected(OfiEndpoint& endpoint, std::span<const std::byte> answer) {
  find_lifeline(endpoint);
  if (endpoint.side == OfiEndpoint::Side::incoming) return;
  auto& out = static_cast<OfiOutgoing&>(endpoint);
  if (out.state != OfiOutgoing::State::connecting) return;
  const bool proven = check(answer, out.key, out.nonce, out.welcome) && out.welcome.refusal == Refusal::none;
  out.state = proven ? OfiOutgoing::State::up : OfiOutgoing::State::failed;
  if (!proven) out.failure = "another process answered";
  else ++counts_.made;
  if (proven && out.from < ports_.size() && ports_[out.from] != nullptr) ports_[out.from]->silent.erase(out.token);
}

void OfiNetwork::find_lifeline(OfiEndpoint& endpoint) const {
  SocketAddress own, peer;
  std::size_t own_length = SocketAddress::room(), peer_length = SocketAddress::room();
  if (!endpoint.ep || fi_getname(&endpoint.ep->fid, own.get(), &own_length) != 0 ||
      fi_getpeer(endpoint.ep.get(), peer.get(), &peer_length) != 0)
    return;
  endpoint.lifeline.find(own, peer, settings_.give_up);
}

std::set<std::string> OfiNetwork::authenticated() const {
  std::set<std::string> known;
  for (const OfiPort* port : ports_) {
    if (port == nullptr) continue;
    for (const auto& one : port->incoming)
      if (one->ep) known.insert(one->peer);
  }
  return known;
}

void OfiNetwork::end_unauthenticated() {
  if (Clock::now() < unauthenticated_.next_look()) return;
  counts_.refused += unauthenticated_.end_some(self_.port, authenticated(), Clock::now());
}

// libfabric does not tell why a connection has ended, so a host that does not answer is found before its kernel ends
// it.
void OfiNetwork::find_silent() {
  const auto now = Clock::now();
  if (now < look_for_silence_) return;
  look_for_silence_ = now + hosts::kLookForSilenceEvery;
  for (OfiPort* port : ports_) {
    if (port == nullptr) continue;
    for (const auto& one : port->incoming)
      if (one->ep && !one->ended && one->lifeline.is_silent(settings_.give_up)) give_up(*one, port);
  }
  std::erase_if(outgoing_, [](const auto& one) { return one.expired(); });
  for (const auto& weak : outgoing_) {
    const auto one = weak.lock();
    if (one && !one->closed.load(std::memory_order_relaxed) && one->lifeline.is_silent(settings_.give_up))
      give_up(*one, one->from < ports_.size() ? ports_[one->from] : nullptr);
  }
}

void OfiNetwork::give_up(OfiEndpoint& endpoint, OfiPort* port) {
  // Each direction has a connection of its own.
  auto why = hosts::silence_of(endpoint.process, settings_.give_up);
  unreached_.note_silent(endpoint.token, Clock::now(), why);
  if (port != nullptr && port->silent.count(endpoint.token) == 0) {
    port->given_up.push_back(std::move(why));
    port->silent.insert(endpoint.token);
  }
  on_shutdown(endpoint);
  endpoint.lifeline.cut();
  ring_all();
}

void OfiNetwork::on_shutdown(OfiEndpoint& endpoint) {
  if (endpoint.side == OfiEndpoint::Side::incoming) {
    static_cast<OfiIncoming&>(endpoint).ended = true;
    return;
  }
  auto& out = static_cast<OfiOutgoing&>(endpoint);
  if (out.state == OfiOutgoing::State::connecting) {
    out.fail_for_now("the connection was closed at once");
  }
  if (!out.closed.exchange(true)) out.closed_at = Clock::now();
}

// ---- connecting -----------------------------------------------------------------------------------------------------

Result<std::shared_ptr<OfiOutgoing>> OfiNetwork::begin(const hosts::ProcessCard& to, const Ip& ip,
                                                       const Greeting& greeting, const Key& key) {
  auto out = std::make_shared<OfiOutgoing>();
  out->side = OfiEndpoint::Side::outgoing;
  out->where = {ip, to.port};
  out->key = key;
  out->nonce = greeting.nonce;
  out->process = {.number = to.pid, .host = to.host == self_.host ? Ip{} : ip};
  out->token = to.token;
  out->from = greeting.from;
  Info info(library_->dupinfo(info_.get()));
  if (!info) return fail(Errc::no_memory, "no memory for a connection");
  set_destination(*info, out->where);
  info->handle = nullptr;
  auto ep = make_endpoint(*info, send_only_.get(), static_cast<OfiEndpoint*>(out.get()));
  if (!ep) return fail(ep.error());
  out->ep.reset(*ep);
  if (const long rc = fi_connect(out->ep.get(), out->where.get(), &greeting, sizeof greeting); rc != 0) {
    out->fail_by(static_cast<int>(-rc), error_text(rc));
  }
  return out;
}

bool OfiOutgoing::is_host_answering() const { return ofi::is_host_answering(where); }

Result<std::shared_ptr<OfiOutgoing>> OfiNetwork::connect(const hosts::ProcessCard& to, std::uint16_t port,
                                                         std::uint16_t from, std::span<const std::byte> introduction) {
  const std::string process = ProcessId{to.pid, to.addresses.empty() ? Ip{} : to.addresses.front().ip}.text();
  std::unique_lock lock(lock_);
  // Ends before the lock does: closing a connection is a call of libfabric.
  hosts::Attempts attempts(candidates(surroundings_, to, to.host == self_.host), settings_.give_up,
                           reached_.contains(to.host));
  const Key key = key_for(settings_.job_secret, to.token);
  for (;;) {
    const auto now = Clock::now();
    progress();
    read_events();
    if (attempts.over(now)) break;  // with what had come until then taken in: this process may have been stopped
    if (const auto which = attempts.due(now)) {
      Greeting about{};
      about.to = port;
      about.from = from;
      about.pid = self_.pid;
      about.token = self_.token;
      about.nonce = hosts::random_nonce();
      auto one = begin(to, attempts.candidate(*which).ip, greeting(key, about), key);
      if (!one) return fail(std::move(one.error()).within(process));
      (void)attempts.add(*which, std::move(*one), now);
    }
    if (!is_ready_to_wait()) continue;
    lock.unlock();
    nap();
    lock.lock();
  }
  const auto won = std::static_pointer_cast<OfiOutgoing>(attempts.winner());
  if (!won) return fail(attempts.error(process, port, to.port));
  reached_.insert(to.host);
  make_room_for(retired_, retired_.size() + outgoing_.size() + 1);
  outgoing_.push_back(won);
  const iovec piece{const_cast<std::byte*>(introduction.data()), introduction.size()};
  Gather data(std::span(&piece, 1));
  if (push_locked(*won, kHello, {}, data, introduction.size())) return won;
  if (!won->closed.load(std::memory_order_relaxed))
    return fail(Errc::no_memory, fmt::format("no memory for the first frame to {}", process));
  return fail(Errc::peer_failed, fmt::format("{} has closed the connection at once", process));
}

// ---- sending --------------------------------------------------------------------------------------------------------

SendBuffer* OfiNetwork::take_buffer(OfiOutgoing& to) {
  const auto is_full = [&to] { return to.in_flight >= kMostInFlight || to.bytes_in_flight >= kMostBytesInFlight; };
  if (is_full()) progress();
  if (is_full()) return nullptr;
  if (free_buffers_.empty()) {
    auto buffer = std::make_unique<SendBuffer>();
    buffer->type = Operation::Type::send;
    buffer->bytes.reset(new (std::nothrow) std::byte[buffer_bytes_]);
    if (!buffer->bytes) return nullptr;
    free_buffers_.push_back(buffer.get());
    all_buffers_.push_back(std::move(buffer));
  }
  SendBuffer* buffer = free_buffers_.back();
  free_buffers_.pop_back();
  buffer->connection = &to;
  return buffer;
}

bool OfiNetwork::push(OfiOutgoing& to, Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) {
  std::lock_guard lock(lock_);
  return push_locked(to, kind, header, data, length);
}

bool OfiNetwork::push_locked(OfiOutgoing& to, Kind kind, std::span<const std::byte> header, Gather& data,
                             std::size_t length) {
  if (to.closed.load(std::memory_order_relaxed)) return false;
  const FrameHead head{to.welcome.connection,
                       to.welcome.check,
                       static_cast<std::uint32_t>(length),
                       static_cast<std::uint8_t>(kind),
                       static_cast<std::uint8_t>(header.size()),
                       0};
  const std::size_t total = sizeof head + header.size() + length;
  SendBuffer* buffer = take_buffer(to);
  if (buffer == nullptr) return false;
  std::byte* at = buffer->bytes.get();
  std::memcpy(at, &head, sizeof head);
  copy_bytes(at + sizeof head, header.data(), header.size());
  Gather rest = data;  // moved on only when the frame goes
  if (length != 0) rest.copy(at + sizeof head + header.size(), length);
  // A short one needs no completion. The last one has to show that all have left.
  const bool injected = total <= inject_limit_ && kind != kEnd;
  const long rc = injected ? fi_inject(to.ep.get(), at, total, 0)
                           : fi_send(to.ep.get(), at, total, nullptr, 0, static_cast<Operation*>(buffer));
  if (injected || rc != 0) free_buffers_.push_back(buffer);
  if (rc == -FI_EAGAIN) progress();
  if (rc != 0 && rc != -FI_EAGAIN) on_shutdown(to);
  if (rc != 0) return false;
  data = rest;
  if (!injected) {
    buffer->length = total;
    to.bytes_in_flight += total;
    ++to.in_flight;
  }
  ++counts_.sent;
  return true;
}

void OfiNetwork::retire(std::shared_ptr<OfiOutgoing> connection) {
  std::lock_guard lock(lock_);
  connection->ending = true;
  retired_.push_back(std::move(connection));  // connect() has made room
  reap();
}

// Ends connections from which everything has left. Sending may make progress, which reaps: not while this walks.
void OfiNetwork::reap() {
  if (std::exchange(is_reaping_, true)) return;
  struct Over {
    bool& is_reaping;
    ~Over() { is_reaping = false; }
  } const over{is_reaping_};
  Gather none;
  for (const auto& one : retired_)
    if (one->ending && push_locked(*one, kEnd, {}, none, 0)) one->ending = false;
  std::erase_if(retired_, [this](const auto& one) {
    if (one->closed.load(std::memory_order_relaxed)) {
      for (const auto& buffer : all_buffers_)
        if (buffer->connection == one.get()) buffer->connection = nullptr;  // its completion may still come
      return true;
    }
    return !one->ending && one->in_flight == 0;
  });
}

bool OfiNetwork::peer_listening(const OfiOutgoing& to) {
  std::lock_guard lock(lock_);
  progress();
  read_events();
  if (!to.closed.load(std::memory_order_relaxed)) return true;
  return Clock::now() - to.closed_at < hosts::kTrailFor && is_heard_from(to.token);
}

// A process has connections here that have not ended, or frames that nobody has taken.
bool OfiNetwork::is_heard_from(std::uint64_t token) const {
  for (const OfiPort* port : ports_) {
    if (port == nullptr) continue;
    for (const auto& one : port->incoming)
      if (one->open && one->token == token && (!one->ended || !port->ready.empty())) return true;
  }
  return false;
}

}  // namespace ulfm::ofi
