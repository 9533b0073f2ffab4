#include "job/control/server.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/core.h>

#include "base/wait.hpp"
#include "job/control/registry.hpp"
#include "job/liveness.hpp"

namespace ulfm::control {
namespace {

constexpr int kExitTries = 1000;  // for the lock, when the process ends
// The first messages of a program come in a burst that need not share the cores with handshakes.
constexpr std::chrono::milliseconds kNotAtOnce{50};
constexpr std::chrono::seconds kLastCalls{2};  // for those that are being made when the channel is closed

Identity describe_self(std::string identity, int rank) {
  return {static_cast<std::uint32_t>(getpid()), static_cast<std::uint32_t>(rank), start_time(getpid()), host_identity(),
          std::move(identity)};
}

// With all signals blocked: they are the program's, and its threads'.
Result<pthread_t> start_thread(Server& server) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int rc = pthread_create(
      &thread, nullptr,
      [](void* self) -> void* {
        static_cast<Server*>(self)->serve();
        return nullptr;
      },
      &server);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (rc != 0) return fail_errno("control channel: starting its thread", rc);
  (void)pthread_setname_np(thread, "ulfm-control");
  return thread;
}

// An event or timer descriptor, which stays readable until somebody has read how often it rang.
void drain(const Fd& fd) {
  std::uint64_t times = 0;
  (void)!read(fd.get(), &times, sizeof times);
}

}  // namespace

std::string process_of(std::string_view identity) { return fmt::format("the process with the address {}", identity); }

Result<void> Server::begin(std::string identity) {
  self = describe_self(std::move(identity), settings.rank);
  key.kind = settings.kind;
  key.secret = random_secret();
  auto listening = listen_at(key);
  if (!listening) return fail(listening.error());
  listener = std::move(*listening);
  epoll = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  timer = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll || !wake || !timer || !watch(listener.get(), kListener, EPOLLIN, EPOLL_CTL_ADD) ||
      !watch(wake.get(), kWake, EPOLLIN, EPOLL_CTL_ADD) || !watch(timer.get(), kTimer, EPOLLIN, EPOLL_CTL_ADD))
    return fail_errno("control channel: needs four descriptors");
  auto started = start_thread(*this);
  if (!started) return fail(started.error());
  thread = *started;
  running = true;
  enter(*this);
  return {};
}

void Server::close() {
  if (!running) return;
  leave(*this);
  {
    std::unique_lock lock(mutex);
    running = false;
    for (auto& [id, calling] : calls) calling.call.hurry();
    if (!calls.empty()) wake_up();
    // Who breaks a handshake off looks like an unauthenticated peer to the other side.
    news.wait_for(lock, kLastCalls, [&] { return calls.empty(); });
    stopping = true;
    for (auto& [id, connection] : connections) (void)connection->link.send(goodbye());
    wake_up();
  }
  pthread_join(thread, nullptr);
  std::lock_guard lock(mutex);
  forget_all();
  listener.reset();
}

void Server::forget_all() {
  unauthenticated.clear();
  connections.clear();
  by_identity.clear();
  calls.clear();
  called.clear();
}

void Server::wake_up() const {
  const std::uint64_t one = 1;
  (void)!write(wake.get(), &one, sizeof one);
}

void Server::disown() {
  running = false;
  forget_all();
  for (Fd* fd : {&listener, &wake, &timer, &epoll}) fd->reset();
}

// ---- any thread ----------------------------------------------------------------------------------------------------

Result<void> Server::set_up(std::string_view card, std::uint16_t to, std::uint16_t from) {
  const std::string identity(identity_of(card));
  if (identity == self.card) return {};
  std::lock_guard lock(mutex);
  if (!running) return fail(Errc::closed, "the control channel of this process is closed (or it is a forked child)");
  if (const auto it = by_identity.find(identity);
      it != by_identity.end() && send(it->second, packet(SetUp{from, to}))) {
    ++set_ups_out;
    return {};
  }
  if (const auto it = called.find(identity); it != called.end()) {
    calls.at(it->second).set_ups.push_back({from, to});
    return {};
  }
  if (key_in(card).empty()) return {};
  auto peer_key = decode_key(key_in(card));
  if (!peer_key) return fail(peer_key.error());
  const std::uint64_t id = next_id++;
  const auto begin = Clock::now() + kNotAtOnce;
  calls.try_emplace(id, std::move(*peer_key), self, begin, begin + settings.patience, identity)
      .first->second.set_ups.push_back({from, to});
  called[identity] = id;
  unreachable.erase(identity);
  wake_up_at(begin);
  return {};
}

Result<void> Server::await(std::string_view identity) {
  std::unique_lock lock(mutex);
  return await(identity, lock);
}

Result<void> Server::await(std::string_view who, std::unique_lock<std::mutex>& lock) {
  const std::string identity(who);
  if (const auto it = called.find(identity); it != called.end()) {
    calls.at(it->second).call.hurry();
    wake_up();
  }
  // The call ends by itself in its time.
  news.wait(lock, [&] { return by_identity.count(identity) != 0 || called.count(identity) == 0; });
  if (by_identity.count(identity) != 0) return {};
  if (const auto it = unreachable.find(identity); it != unreachable.end()) return fail(it->second);
  return fail(Errc::unavailable, fmt::format("{} has no control connection to this one", process_of(identity)));
}

Result<Fd> Server::fetch(std::string_view identity, std::uint32_t what) {
  std::unique_lock lock(mutex);
  const auto call = called.find(std::string(identity));
  if (call != called.end() && calls.at(call->second).call.kind() == SocketKind::unix_socket)
    if (auto ok = await(identity, lock); !ok) return fail(std::move(ok.error()));
  const auto it = by_identity.find(std::string(identity));
  if (it == by_identity.end() || connections.at(it->second)->link.kind() != SocketKind::unix_socket)
    return fail(Errc::unavailable, fmt::format("{} is not connected by a Unix-domain socket", process_of(identity)));
  const std::uint32_t number = next_fetch++;
  const std::uint64_t connection = it->second;  // a send that fails takes it out of the table
  fetches[number].connection = connection;
  if (!send(connection, packet(DescriptorRequest{number, what}))) fail_fetches(connection);
  const bool in_time = news.wait_for(lock, settings.patience, [&] { return fetches.at(number).done; });
  Result<Fd> result = std::move(fetches.at(number).result);
  fetches.erase(number);
  if (!in_time) return fail(Errc::timed_out, fmt::format("{} did not pass its descriptor", process_of(identity)));
  return result;
}

void Server::abort(std::int32_t code, std::string_view sentence) {
  std::lock_guard lock(mutex);
  const Bytes bytes = packet(Abort{code, std::string(sentence)});
  for (auto& [id, connection] : connections) (void)connection->link.send(bytes);
}

void Server::abort_at_exit(std::int32_t code) {
  for (int i = 0; !mutex.try_lock(); ++i) {
    if (i == kExitTries) return;
    yield_now();
  }
  const Bytes bytes = packet(Abort{code, "it ended without leaving the job"});
  for (auto& [id, connection] : connections) (void)connection->link.send(bytes);
  mutex.unlock();
}

std::string Server::statistics(const std::string& who) const {
  std::lock_guard lock(mutex);
  std::string text;
  for (std::size_t kind = 0; kind < traffic.size(); ++kind) {
    const Traffic& t = traffic[kind];
    if (static_cast<SocketKind>(kind) != settings.kind && t.made == 0) continue;
    text += fmt::format(
        "ulfm: stats {} control {}: connections {} made {} accepted, sent {} messages {} bytes, received {} messages "
        "{} bytes\n",
        who, kKindNames[kind], t.made, t.accepted, t.messages_out, t.bytes_out, t.messages_in, t.bytes_in);
  }
  return text +
         fmt::format(
             "ulfm: stats {} control events: set-ups {} sent {} received {} failed, descriptors {} passed, aborts "
             "{}, ended without goodbye {}, unauthenticated connections refused {}: wrong {}, timed out {}, "
             "crowded out {}, left {}\n",
             who, set_ups_out, set_ups_in, calls_failed, descriptors, aborts, ended, counts.all(), counts.refused,
             counts.timed_out, counts.crowded_out, counts.left);
}

// ---- the serving thread --------------------------------------------------------------------------------------------

void Server::serve() {
  constexpr int kBatch = 64;
  epoll_event events[kBatch];
  // Set-up must not push aside who computes or sends: it gets its share, but wakes up in front of nobody.
  const sched_param none{};
  (void)sched_setscheduler(0, SCHED_BATCH, &none);
  std::unique_lock lock(mutex);
  while (!stopping) {
    const int limit = time_to_deadline();
    lock.unlock();
    const int n = epoll_wait(epoll.get(), events, kBatch, limit);
    lock.lock();
    for (int i = 0; i < n && !stopping; ++i) serve_event(events[i].data.u64, events[i].events);
    look_at_clock();
  }
}

// For ever when there is nobody at the door and nobody is called.
int Server::time_to_deadline() const {
  auto first = Clock::time_point::max();
  if (!unauthenticated.empty()) first = unauthenticated.begin()->second.deadline;
  if (accept_again != Clock::time_point{}) first = std::min(first, accept_again);
  for (const auto& [id, calling] : calls) first = std::min(first, calling.call.deadline());
  if (first == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void Server::serve_event(std::uint64_t id, std::uint32_t events) {
  if (id == kListener) return accept_some();
  if (id == kWake) return drain(wake);
  if (id == kTimer) return hear_timer();
  if (calls.count(id) != 0) return serve_call(id, true);
  if (const auto it = unauthenticated.find(id); it != unauthenticated.end())
    return serve_unauthenticated(id, it->second);
  if (connections.count(id) != 0) serve_connection(id, events);
}

void Server::look_at_clock() {
  if (unauthenticated.empty() && calls.empty() && accept_again == Clock::time_point{}) return;
  const auto now = Clock::now();
  while (!unauthenticated.empty() && unauthenticated.begin()->second.deadline <= now)
    dismiss(unauthenticated.begin()->first, counts.timed_out, "it did not show the secret in time");
  if (accept_again != Clock::time_point{} && accept_again <= now) {
    accept_again = {};
    (void)watch(listener.get(), kListener, EPOLLIN, EPOLL_CTL_MOD);
  }
  for (auto it = calls.begin(); it != calls.end();) {
    const auto& [id, calling] = *it++;  // which may end
    if (calling.call.deadline() <= now) serve_call(id, false);
  }
}

// Without waking the thread now. A timer that is set already is the earlier one.
void Server::wake_up_at(Clock::time_point when) {
  if (std::exchange(timer_set, true)) return;
  const auto since_boot = when.time_since_epoch();
  itimerspec at{};
  at.it_value.tv_sec = static_cast<time_t>(since_boot / std::chrono::seconds(1));
  at.it_value.tv_nsec = static_cast<long>((since_boot % std::chrono::seconds(1)) / std::chrono::nanoseconds(1));
  (void)timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

// The thread is awake, and sees to the calls behind the first.
void Server::hear_timer() {
  drain(timer);
  timer_set = false;
}

bool Server::watch(int fd, std::uint64_t id, std::uint32_t events, int operation) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll.get(), operation, fd, &event) == 0;
}

}  // namespace ulfm::control
