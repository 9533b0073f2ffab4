// How a TcpNetwork makes links: it listens, accepts peers that prove themselves, and connects to others.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/own_thread.hpp"
#include "transport/hosts/silence.hpp"
#include "transport/tcp/network.hpp"

namespace ulfm::tcp {
namespace {

using hosts::Greeting;
using hosts::Refusal;
using hosts::Welcome;
using std::chrono::milliseconds;
using namespace std::chrono_literals;
using State = hosts::Try::State;

constexpr std::uint64_t kWake = 1, kListener = 2, kV6Listener = 3, kSoon = 4;
constexpr std::size_t kMostUnauthenticated = 256;  // at a time; one more takes the place of the oldest
constexpr milliseconds kAcceptAgain{100};          // after a lack of descriptors
constexpr milliseconds kTick{50}, kBusyTick{10};   // between two turns of the thread
constexpr milliseconds kCrossedFor{2000};          // for the connection that the peer is making
constexpr milliseconds kNap{5}, kShortNap{1};

void send_all_at_once(const Fd& socket, const Welcome& answer) noexcept {
  (void)!::send(socket.get(), &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);  // the first bytes: there is room
}

// A port of ULFM_PORTS is free when the process that had it has ended, not a minute later, when the system forgets its
// last connection. Where somebody listens, bind() or listen() fails all the same.
bool may_follow_another(const Fd& made, const SocketAddress& where) {
  const int on = 1;
  return where.port() == 0 || setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
}

}  // namespace

// ---- making the network ---------------------------------------------------------------------------------------------

Result<std::unique_ptr<TcpNetwork>> TcpNetwork::create(const hosts::NetworkSettings& settings) {
  auto congestion = CongestionControl::create(settings.congestion);
  if (!congestion) return fail(congestion.error());
  auto self = hosts::self_of(settings);
  if (!self) return fail(self.error());
  std::unique_ptr<TcpNetwork> network(new TcpNetwork(settings, std::move(*congestion), std::move(*self)));
  for (auto step : {&TcpNetwork::listen, &TcpNetwork::watch_common})
    if (auto ok = (network.get()->*step)(); !ok) return fail(ok.error());
  auto started = start_own_thread("that accepts connections", [n = network.get()] { n->serve(); });
  if (!started) return fail(started.error());
  network->thread_ = std::move(*started);
  hosts::enter(*network);
  return network;
}

void TcpNetwork::after_fork_in_child() noexcept {
  for (Fd* one : {&listener_, &v6_listener_}) one->reset();
  for (auto& [number, link] : links_) link->socket.reset();
  for (auto& [number, peer] : unauthenticated_) peer.socket.reset();
  lock_.unlock();
}

Result<void> TcpNetwork::listen() {
  return hosts::listen(settings_, self_, [this](const SocketAddress& where) -> Result<std::uint16_t> {
    Fd made(socket(where.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    SocketAddress got;
    socklen_t length = SocketAddress::room();
    if (made) congestion_.begin(made.get());  // its connections begin so
    if (!made || !may_follow_another(made, where) ||
        bind(made.get(), where.get(), static_cast<socklen_t>(where.size())) != 0 ||
        ::listen(made.get(), SOMAXCONN) != 0 || getsockname(made.get(), got.get(), &length) != 0)
      return fail(hosts::listen_error(where, errno));
    (where.is_v6() ? v6_listener_ : listener_) = std::move(made);
    return got.port();
  });
}

Result<void> TcpNetwork::watch_common() {
  common_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  soon_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!common_ || !wake_ || !soon_ || !watch_for_reading(common_, wake_, kWake) ||
      !watch_for_reading(common_, soon_, kSoon) || !watch_listeners())
    return fail_errno("making what a wait for the network sleeps on");
  return {};
}

bool TcpNetwork::watch_listeners() {
  return (!listener_ || watch_for_reading(common_, listener_, kListener)) &&
         (!v6_listener_ || watch_for_reading(common_, v6_listener_, kV6Listener));
}

TcpNetwork::~TcpNetwork() {
  hosts::leave(*this);
  {
    std::lock_guard lock(lock_);
    stopping_ = true;
  }
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  // What was sent leaves first, as far as somebody reads it: closing a connection that something comes in on would take
  // back what the other host has not acknowledged.
  for (const auto until = Clock::now() + hosts::kDrainFor; Clock::now() < until;) {
    flush_all();
    const bool is_awaited = std::any_of(links_.begin(), links_.end(), [this](const auto& at) {
      const TcpLink& link = *at.second;
      if (!link.unproven || is_all_acknowledged(link)) return false;
      pollfd one{link.socket.get(), POLLOUT, 0};
      return poll(&one, 1, 0) <= 0 || (one.revents & (POLLERR | POLLHUP)) == 0;
    });
    if (!is_awaited) break;
    std::this_thread::sleep_for(100us);  // there is no event for an acknowledgement
  }
}

// ---- accepting ------------------------------------------------------------------------------------------------------

void TcpNetwork::serve_common() {
  epoll_event events[16];
  const int n = epoll_wait(common_.get(), events, static_cast<int>(std::size(events)), 0);
  for (int i = 0; i < n; ++i) {
    const std::uint64_t number = events[i].data.u64;
    if (number == kListener) accept_some(listener_.get());
    else if (number == kV6Listener) accept_some(v6_listener_.get());
    else if (number == kSoon) send_soon();
    else if (unauthenticated_.count(number) != 0) serve_unauthenticated(number);
    if (const auto at = links_.find(number); at != links_.end()) {
      const auto link = at->second;
      if (link->state == State::connecting) serve_connecting(link);
      else if ((events[i].events & EPOLLOUT) != 0) (void)flush(*link);
      // connect() gives one that has just come up its port, on which the peer may send already.
      const bool is_taken = link->out != TcpLink::Way::unused || link->is_parting;
      if (link->state == State::up && is_taken && link->port == nullptr) read(*link, false);
    }
  }
}

// The program has not looked at its port since it sent what was gathered.
void TcpNetwork::send_soon() {
  std::uint64_t times = 0;
  (void)!::read(soon_.get(), &times, sizeof times);
  soon_is_set_ = false;
  flush_all();
}

void TcpNetwork::accept_some(int listener) {
  for (int i = 0; i < 64; ++i) {
    UnauthenticatedPeer* peer = make_unauthenticated();
    if (peer == nullptr) return pause_accepting();
    socklen_t length = SocketAddress::room();
    peer->socket = Fd(accept4(listener, peer->from.get(), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int error = peer->socket ? 0 : errno;
    peer->since = Clock::now();
    if (!peer->socket || !watch_for_reading(common_, peer->socket, next_number_)) unauthenticated_.erase(next_number_);
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) return pause_accepting();
    if (error != 0 && error != EINTR && error != ECONNABORTED) return;
    if (unauthenticated_.size() > kMostUnauthenticated) {
      unauthenticated_.erase(unauthenticated_.begin());
      ++counts_.refused;
    }
  }
}

// Its number is the last one.
TcpNetwork::UnauthenticatedPeer* TcpNetwork::make_unauthenticated() noexcept try {
  return &unauthenticated_[++next_number_];
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Without a descriptor or memory for it, whoever came stays in the kernel's queue, and epoll would tell so for ever.
void TcpNetwork::pause_accepting() {
  accept_again_ = Clock::now() + kAcceptAgain;
  for (const Fd* one : {&listener_, &v6_listener_})
    if (*one) (void)epoll_ctl(common_.get(), EPOLL_CTL_DEL, one->get(), nullptr);
}

void TcpNetwork::serve_unauthenticated(std::uint64_t number) {
  UnauthenticatedPeer& peer = unauthenticated_.at(number);
  const ssize_t n = recv(peer.socket.get(), peer.bytes.data() + peer.got, peer.bytes.size() - peer.got, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) peer.got += static_cast<std::size_t>(n);
  if (n > 0 && peer.got < peer.bytes.size()) return;
  Greeting greeting{};
  Refusal why = Refusal::unknown_secret;
  try {
    if (n > 0) why = hosts::check(peer.bytes, key_, greeted_, greeting);
    if (why == Refusal::none) why = admit(peer, greeting);
  } catch (const std::bad_alloc&) {
    why = Refusal::unknown_secret;  // it tries again when it is closed without an answer
  }
  if (why != Refusal::none) {
    // A peer that does not know the secret learns nothing.
    if (why != Refusal::unknown_secret) send_all_at_once(peer.socket, refusal(key_, greeting.nonce, why));
    if (why != Refusal::crossed) ++counts_.refused;
  }
  unauthenticated_.erase(number);
}

Refusal TcpNetwork::admit(UnauthenticatedPeer& peer, const Greeting& greeting) {
  TcpPort* port = greeting.to < ports_.size() ? ports_[greeting.to] : nullptr;
  if (port == nullptr) return Refusal::no_such_port;
  const bool both_ways = (greeting.flags & hosts::kBothWays) != 0;
  const bool crossed = both_ways && (greeting.flags & hosts::kInsists) == 0 && self_.token < greeting.token &&
                       std::any_of(connecting_.begin(), connecting_.end(), [&](const Connecting& own) {
                         return own.token == greeting.token && own.to == greeting.from && own.from == greeting.to;
                       });
  if (crossed) return Refusal::crossed;
  if (port->links.size() >= settings_.peers) return Refusal::no_room;
  make_room_for(port->links, port->links.size() + 1);
  const auto link = link_to(peer, greeting, *port);
  link->both_ways = both_ways;
  (void)epoll_ctl(common_.get(), EPOLL_CTL_DEL, link->socket.get(), nullptr);
  if (!watch(*link, port->set.get(), EPOLLIN)) {
    peer.socket = std::move(link->socket);
    links_.erase(link->number);
    return Refusal::no_room;
  }
  send_all_at_once(link->socket, hosts::welcome(key_, greeting.nonce, 0, 0, static_cast<std::uint32_t>(max_frame())));
  port->links.push_back(link);
  ++counts_.accepted;
  return Refusal::none;
}

std::shared_ptr<TcpLink> TcpNetwork::link_to(UnauthenticatedPeer& peer, const Greeting& greeting, TcpPort& port) {
  auto link = std::make_shared<TcpLink>(++next_number_);
  links_.emplace(link->number, link);
  link->socket = std::move(peer.socket);
  tune(link->socket.get(), settings_.give_up);
  congestion_.settle(link->socket.get());
  link->state = State::up;
  link->where = peer.from;
  link->port = &port;
  link->token = greeting.token;
  link->peer_port = greeting.from;
  link->pid = greeting.pid;
  link->most = greeting.most;
  return link;
}

void TcpNetwork::end_unauthenticated(Clock::time_point now) {
  const auto patience =
      unauthenticated_.size() > hosts::kManyUnauthenticated ? hosts::kProveWithinOfMany : hosts::kProveWithin;
  counts_.refused +=
      std::erase_if(unauthenticated_, [&](const auto& one) { return now - one.second.since >= patience; });
}

// ---- connecting -----------------------------------------------------------------------------------------------------

std::shared_ptr<TcpLink> TcpNetwork::begin(const SocketAddress& where, const Greeting& greeting,
                                           const hosts::Key& key) {
  auto link = std::make_shared<TcpLink>(++next_number_);
  link->where = where;
  link->key = key;
  link->greeting = greeting;
  link->socket = Fd(socket(where.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!link->socket) {
    link->fail(std::strerror(errno));
    return link;
  }
  tune(link->socket.get(), settings_.give_up);
  // The system may choose a port of ULFM_PORTS, at which others are to listen beside this, and in the minute after it.
  control::set_option(link->socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  congestion_.begin(link->socket.get());
  const int rc = ::connect(link->socket.get(), where.get(), static_cast<socklen_t>(where.size()));
  if ((rc != 0 && errno != EINPROGRESS) || !watch(*link, common_.get(), EPOLLOUT)) {
    link->fail_by(errno, std::strerror(errno));
    link->socket.reset();
    return link;
  }
  links_.emplace(link->number, link);
  return link;
}

void TcpNetwork::serve_connecting(const std::shared_ptr<TcpLink>& link) {
  const auto failed = [&](int error) {
    link->fail_by(error, error == 0 ? "the connection was closed at once" : std::strerror(error));
    forget(*link);
  };
  if (!link->has_greeted) {
    int error = 0;
    socklen_t length = sizeof error;
    (void)getsockopt(link->socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return failed(error);
    const ssize_t n = ::send(link->socket.get(), &link->greeting, sizeof link->greeting, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n != static_cast<ssize_t>(sizeof link->greeting)) return failed(n < 0 ? errno : ECONNABORTED);
    link->has_greeted = true;
    (void)watch(*link, common_.get(), EPOLLIN);
    return;
  }
  const ssize_t n = recv(link->socket.get(), link->answer.data() + link->answered, link->answer.size() - link->answered,
                         MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return failed(n < 0 ? errno : 0);
  link->answered += static_cast<std::size_t>(n);
  if (link->answered < link->answer.size()) return;
  Welcome welcome{};
  const bool proven = hosts::check(link->answer, link->key, link->greeting.nonce, welcome);
  if (!proven || welcome.refusal != Refusal::none) {
    link->fail(proven ? "refused" : "another process answered");
    if (proven) link->refusal = welcome.refusal;
    return forget(*link);
  }
  link->most = welcome.most;
  congestion_.settle(link->socket.get());
  link->state = State::up;
  ++counts_.made;
}

// Links that the peer has made to one of our ports, and on which nothing leaves yet. A peer that tries several
// addresses may make several. It says hello on the one that it uses and closes the others; a lossy network may not tell
// us so.
TcpNetwork::Offer TcpNetwork::offered(std::uint64_t token, std::uint16_t to, std::uint16_t from) {
  TcpPort* port = from < ports_.size() ? ports_[from] : nullptr;
  Offer offer;
  if (port == nullptr) return offer;
  for (const auto& link : std::vector(port->links)) {
    if (!link->both_ways || link->out != TcpLink::Way::unused || link->token != token || link->peer_port != to)
      continue;
    if (link->in == TcpLink::Way::unused) {  // the hello may be there
      read(*link, false);
      ring_for_found(*port);
    }
    if (!link->carries()) continue;
    if (link->in == TcpLink::Way::used) offer.link = link;
    if (link->in == TcpLink::Way::unused) offer.is_undecided = true;
  }
  return offer;
}

// Waits while the peer decides which of its links it uses: for a moment, because it may have ended, or its host.
std::shared_ptr<TcpLink> TcpNetwork::await_offer(std::unique_lock<std::mutex>& lock, std::uint64_t token,
                                                 std::uint16_t to, std::uint16_t from) {
  for (const auto until = Clock::now() + kCrossedFor;;) {
    const Offer offer = offered(token, to, from);
    if (offer.link || !offer.is_undecided || Clock::now() >= until) return offer.link;
    lock.unlock();
    std::this_thread::sleep_for(kShortNap);
    lock.lock();
  }
}

std::shared_ptr<TcpLink> TcpNetwork::connected(std::unique_lock<std::mutex>& lock, const hosts::ProcessCard& to,
                                               std::uint16_t port, std::uint16_t from, Error& why) {
  const std::string process = ProcessId{to.pid, to.addresses.empty() ? Ip{} : to.addresses.front().ip}.text();
  const auto make_attempts = [&] {
    return hosts::Attempts(candidates(surroundings_, to, to.host == self_.host), settings_.give_up,
                           reached_.contains(to.host));
  };
  const hosts::Key key = hosts::key_for(settings_.job_secret, to.token);
  std::shared_ptr<TcpLink> won = await_offer(lock, to.token, port, from);
  if (won) return won;
  struct Begun {
    TcpNetwork& network;
    std::vector<std::shared_ptr<TcpLink>> links;
    std::shared_ptr<TcpLink> kept;
    // Also when there is no memory for more.
    ~Begun() {
      for (const auto& one : links)
        if (one != kept && one->is_open()) network.forget(*one);
    }
  } begun{*this, {}, nullptr};
  std::optional<Clock::time_point> crossed_until;
  std::uint16_t insists = 0;
  for (auto attempts = make_attempts();;) {
    const auto now = Clock::now();
    serve_common();  // all that had come until then: this process may have been stopped
    if ((won = offered(to.token, port, from).link)) break;
    if (attempts.over(now)) {
      won = std::static_pointer_cast<TcpLink>(attempts.winner());
      if (!won) why = attempts.error(process, port, to.port);
      if (won || attempts.refusal() != Refusal::crossed) break;
      if (!crossed_until) crossed_until = now + kCrossedFor;
      if (now >= *crossed_until) {  // the peer does not get through to here
        insists = hosts::kInsists;
        attempts = make_attempts();
      }
    } else if (const auto which = attempts.due(now)) {
      Greeting about{};
      about.to = port;
      about.from = from;
      about.flags = insists;
      if (from < ports_.size() && ports_[from] != nullptr) about.flags |= hosts::kBothWays;
      about.pid = self_.pid;
      about.token = self_.token;
      about.most = static_cast<std::uint32_t>(max_frame());
      about.nonce = hosts::random_nonce();
      make_room_for(begun.links, begun.links.size() + 1);
      begun.links.push_back(begin({attempts.candidate(*which).ip, to.port}, greeting(key, about), key));
      const auto old = std::static_pointer_cast<TcpLink>(attempts.add(*which, begun.links.back(), now));
      if (old && old->is_open()) forget(*old);
    }
    lock.unlock();
    pollfd one{common_.get(), POLLIN, 0};
    (void)poll(&one, 1, static_cast<int>(kNap.count()));
    lock.lock();
  }
  begun.kept = won;
  return won;
}

Result<std::shared_ptr<TcpLink>> TcpNetwork::connect(const hosts::ProcessCard& to, std::uint16_t port,
                                                     std::uint16_t from, std::span<const std::byte> introduction) {
  std::unique_lock lock(lock_);
  connecting_.push_back({to.token, port, from});
  struct Ended {
    TcpNetwork& network;
    const Connecting what;
    ~Ended() {
      std::erase_if(network.connecting_, [&](const Connecting& one) {
        return one.token == what.token && one.to == what.to && one.from == what.from;
      });
    }
  } const ended{*this, connecting_.back()};
  return connect_locked(lock, to, port, from, introduction);
}

Result<std::shared_ptr<TcpLink>> TcpNetwork::connect_locked(std::unique_lock<std::mutex>& lock,
                                                            const hosts::ProcessCard& to, std::uint16_t port,
                                                            std::uint16_t from,
                                                            std::span<const std::byte> introduction) {
  Error why;
  const auto link = connected(lock, to, port, from, why);
  if (!link) return fail(std::move(why));
  note_reached(to.host);
  const bool is_ours = link->port == nullptr && link->watched_by == common_.get();
  if (is_ours)
    if (auto ok = adopt(link, to, port, from); !ok) return fail(ok.error());
  link->out = TcpLink::Way::used;
  const iovec piece{const_cast<std::byte*>(introduction.data()), introduction.size()};
  Gather data(std::span(&piece, 1));
  if (push_locked(*link, kHello, {}, data, introduction.size())) return link;
  const bool is_up = link->carries();
  if (is_up && !is_ours) link->out = TcpLink::Way::unused;  // what the peer sends on it still comes
  else break_link(*link);
  const std::string process = ProcessId{to.pid, link->where.ip()}.text();
  if (is_up) return fail(Errc::no_memory, fmt::format("no memory for the first frame to {}", process));
  return fail(Errc::peer_failed, fmt::format("{} has closed the connection at once", process));
}

// A link that was made here is of the port that it was made for, if the peer may answer on it.
Result<void> TcpNetwork::adopt(const std::shared_ptr<TcpLink>& link, const hosts::ProcessCard& to, std::uint16_t port,
                               std::uint16_t from) {
  TcpPort* own = from < ports_.size() ? ports_[from] : nullptr;
  link->token = to.token;
  link->peer_port = port;
  link->pid = to.pid;
  link->both_ways = own != nullptr && (link->greeting.flags & hosts::kBothWays) != 0;
  link->discards = !link->both_ways;
  if (!link->both_ways) return {};
  if (!make_room_for_one(own->links)) {
    forget(*link);
    return fail(Errc::no_memory, "there is no memory for a connection");
  }
  link->port = own;
  own->links.push_back(link);
  if (watch(*link, own->set.get(), EPOLLIN)) return {};
  break_link(*link);
  return fail_errno("watching a connection");
}

// Without memory to note it, its next silence is a firewall's rather than a cut cable's.
void TcpNetwork::note_reached(std::uint64_t host) noexcept try {
  reached_.insert(host);
} catch (const std::bad_alloc&) {
}

// ---- the thread -----------------------------------------------------------------------------------------------------

// A program that computes looks at nothing, and its peers want to connect and to get what it has sent.
void TcpNetwork::serve() {
  Clock::time_point looked{};
  std::uint64_t seen = 0;
  for (bool busy = false;;) {
    pollfd one{common_.get(), POLLIN, 0};
    (void)poll(&one, 1, static_cast<int>((busy ? kBusyTick : kTick).count()));
    std::unique_lock lock(lock_);
    if (stopping_) return;
    try {
      serve_common();
    } catch (const std::bad_alloc&) {  // what was not served is so in the next turn
    }
    flush_all();
    const auto now = Clock::now();
    busy = pushes_ != std::exchange(seen, pushes_) || !unauthenticated_.empty();
    end_unauthenticated(now);
    if (accept_again_ != Clock::time_point{} && now >= accept_again_) {
      accept_again_ = watch_listeners() ? Clock::time_point{} : now + kAcceptAgain;
    }
    if (now - looked < hosts::kLookForSilenceEvery) continue;
    looked = now;
    find_silent(now);
  }
}

}  // namespace ulfm::tcp
