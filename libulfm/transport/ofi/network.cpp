#include "transport/ofi/network.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "base/own_thread.hpp"
#include "base/room.hpp"
#include "base/timespec.hpp"
#include "transport/hosts/silence.hpp"
#include "transport/ofi/signals.hpp"

namespace ulfm::ofi {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kReceiveBuffers = 32;
constexpr std::uint32_t kLooksPerEvent = 64;
constexpr milliseconds kTick{10};

Error fabric_error(const std::string& what, long rc) {
  return {rc == -FI_ENOMEM ? Errc::no_memory : Errc::system, fmt::format("{}: {}", what, error_text(rc))};
}

}  // namespace

// ---- making it ------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<OfiNetwork>> OfiNetwork::create(const hosts::NetworkSettings& settings) {
  auto library = fabric_library();
  if (!library) return fail(library.error());
  auto self = hosts::self_of(settings);
  if (!self) return fail(self.error());
  std::unique_ptr<OfiNetwork> network(new OfiNetwork(settings, std::move(*self), *library));
  for (auto step : {&OfiNetwork::open_domain, &OfiNetwork::listen, &OfiNetwork::make_poll_set})
    if (auto ok = (network.get()->*step)(); !ok) return fail(ok.error());
  auto started = start_own_thread("of the network", [n = network.get()] { n->serve(); });
  if (!started) return fail(started.error());
  network->thread_ = std::move(*started);
  hosts::enter(*network);
  return network;
}

// Libfabric's own notes of them stay; nobody looks at those in the child.
void OfiNetwork::after_fork_in_child() noexcept {
  for (const auto& weak : outgoing_)
    if (const auto one = weak.lock()) one->lifeline.leave();
  leave_sockets_at(self_.port);
  lock_.unlock();
}

Result<void> OfiNetwork::open_provider(const std::string& name) {
  Info hints(library_->dupinfo(nullptr));
  if (!hints) return fail(Errc::no_memory, "no memory for libfabric");
  hints->ep_attr->type = FI_EP_MSG;
  hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  hints->caps = FI_MSG;
  hints->addr_format = FI_SOCKADDR_IN;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;  // all under lock_
  hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->fabric_attr->prov_name = strdup(name.c_str());
  set_source(*hints, SocketAddress::any(false, 0));
  fi_info* found = nullptr;
  const int rc = library_->getinfo(FI_VERSION(1, 11), nullptr, nullptr, 0, hints.get(), &found);
  if (rc != 0)
    return fail(fabric_error(fmt::format("libfabric has no provider {} for connections over IPv4", name), rc));
  info_.reset(found);
  provider_ = name;
  return {};
}

Result<void> OfiNetwork::open_domain() {
  // libfabric looks at all its providers when it is first asked, which takes time and may touch devices.
  const bool filter = std::getenv("FI_PROVIDER") == nullptr;
  const std::string wanted =
      fmt::format("net,tcp{}", settings_.provider.empty() ? "" : fmt::format(",{}", settings_.provider));
  if (filter) setenv("FI_PROVIDER", wanted.c_str(), 1);
  Result<void> opened = settings_.provider.empty() ? open_provider("net") : open_provider(settings_.provider);
  if (!opened && settings_.provider.empty()) opened = open_provider("tcp");
  if (filter) unsetenv("FI_PROVIDER");
  if (!opened && !filter)
    return fail(opened.error().code,
                fmt::format("{}; FI_PROVIDER is '{}' and hides all others: unset it, or name net or "
                            "tcp in it",
                            opened.error().what, std::getenv("FI_PROVIDER")));
  if (!opened) return opened;

  const auto take = [](auto& owner, auto* object, long rc, const char* what) -> Result<void> {
    if (rc != 0) return fail(fabric_error(what, rc));
    owner.reset(object);
    return {};
  };
  fid_fabric* fabric = nullptr;
  long rc = library_->fabric(info_->fabric_attr, &fabric, nullptr);
  if (auto ok = take(fabric_, fabric, rc, "opening libfabric"); !ok) return ok;
  fi_eq_attr event_attributes{};
  event_attributes.wait_obj = FI_WAIT_FD;
  fid_eq* events = nullptr;
  rc = fi_eq_open(fabric, &event_attributes, &events, nullptr);
  if (auto ok = take(events_, events, rc, "opening libfabric's event queue"); !ok) return ok;
  fid_domain* domain = nullptr;
  rc = fi_domain(fabric, info_.get(), &domain, nullptr);
  if (auto ok = take(domain_, domain, rc, "opening libfabric's domain"); !ok) return ok;
  fi_cq_attr completion_attributes{};
  completion_attributes.format = FI_CQ_FORMAT_MSG;
  completion_attributes.wait_obj = FI_WAIT_FD;
  completion_attributes.size = 4096;
  fid_cq* completions = nullptr;
  rc = fi_cq_open(domain, &completion_attributes, &completions, nullptr);
  if (auto ok = take(completions_, completions, rc, "opening libfabric's completion queue"); !ok) return ok;
  fid_ep* context = nullptr;
  rc = fi_srx_context(domain, info_->rx_attr, &context, nullptr);
  if (auto ok = take(send_only_, context, rc, "making a receive context"); !ok) return ok;
  inject_limit_ = info_->tx_attr->inject_size;
  buffer_bytes_ = sizeof(FrameHead) + 256 + settings_.max_frame;
  return {};
}

Result<std::uint16_t> OfiNetwork::listen_at(const SocketAddress& where) {
  Info info(library_->dupinfo(info_.get()));
  if (!info) return fail(Errc::no_memory, "no memory for libfabric");
  set_source(*info, where);
  fid_pep* made = nullptr;
  long rc = fi_passive_ep(fabric_.get(), info.get(), &made, nullptr);
  if (rc != 0) return fail(hosts::listen_error(where, static_cast<int>(-rc)));  // some providers bind here
  Fid<fid_pep> owner(made);
  rc = fi_pep_bind(made, &events_->fid, 0);
  if (rc == 0) rc = fi_listen(made);
  SocketAddress got;
  std::size_t length = SocketAddress::room();
  if (rc == 0) rc = fi_getname(&made->fid, got.get(), &length);
  if (rc != 0) return fail(hosts::listen_error(where, static_cast<int>(-rc)));
  (where.is_v6() ? v6_listener_ : listener_) = std::move(owner);
  return got.port();
}

Result<void> OfiNetwork::listen() {
  return hosts::listen(settings_, self_, [this](const SocketAddress& where) { return listen_at(where); });
}

Result<void> OfiNetwork::make_poll_set() {
  long rc = fi_control(&completions_->fid, FI_GETWAIT, &waits_on_[0]);
  if (rc == 0) rc = fi_control(&events_->fid, FI_GETWAIT, &waits_on_[1]);
  if (rc != 0) return fail(fabric_error("asking libfabric for a descriptor to wait on", rc));
  for (const int fd : waits_on_) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  close_on_exec_at(self_.port);
  auto set = poll_set(-1);
  if (!set) return fail(set.error());
  poll_set_ = std::move(*set);
  return {};
}

Result<Fd> OfiNetwork::poll_set(int other) const {
  Fd set(epoll_create1(EPOLL_CLOEXEC));
  if (!set) return fail_errno("making what a wait for the network sleeps on");
  for (const int fd : {waits_on_[0], waits_on_[1], other}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (fd >= 0 && epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return fail_errno("making what a wait for the network sleeps on");
  }
  return set;
}

OfiNetwork::~OfiNetwork() {
  hosts::leave(*this);
  {
    std::lock_guard lock(stop_lock_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // What was sent leaves first, as far as somebody reads it.
  const auto until = Clock::now() + hosts::kDrainFor;
  for (std::unique_lock lock(lock_); !retired_.empty() && Clock::now() < until;) {
    progress();
    read_events();
    reap();
    if (retired_.empty()) break;
    lock.unlock();
    nap();
    lock.lock();
  }
  retired_.clear();
}

// ---- what comes in --------------------------------------------------------------------------------------------------

// Under the lock, as everything from here to "connections". True when something completed.
bool OfiNetwork::progress() {
  if (!idle_.empty()) post_idle();
  fi_cq_msg_entry entries[16];
  const ssize_t n = fi_cq_read(completions_.get(), entries, std::size(entries));
  if (n == -FI_EAVAIL) {
    take_failed_completion();
    return true;
  }
  for (ssize_t i = 0; i < n; ++i) take_completion(entries[i]);
  if (n > 0 && !retired_.empty()) reap();
  return n > 0;
}

void OfiNetwork::left(const SendBuffer& sent) noexcept {
  --sent.connection->in_flight;
  sent.connection->bytes_in_flight -= sent.length;
}

void OfiNetwork::take_completion(const fi_cq_msg_entry& entry) {
  auto* operation = static_cast<Operation*>(entry.op_context);
  if (operation->type == Operation::Type::receive) return arrived(*static_cast<ReceiveBuffer*>(operation), entry.len);
  auto* sent = static_cast<SendBuffer*>(operation);
  if (sent->connection != nullptr) left(*sent);
  free_buffers_.push_back(sent);
}

void OfiNetwork::take_failed_completion() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(completions_.get(), &entry, 0) != 1 || entry.op_context == nullptr) return;
  auto* operation = static_cast<Operation*>(entry.op_context);
  if (operation->type == Operation::Type::receive) return repost(*static_cast<ReceiveBuffer*>(operation));
  auto* sent = static_cast<SendBuffer*>(operation);
  if (sent->connection != nullptr) {
    left(*sent);
    on_shutdown(*sent->connection);
  }
  free_buffers_.push_back(sent);
}

void OfiNetwork::repost(ReceiveBuffer& buffer) {
  if (!buffer.port->receive_context) return;  // the port is being closed
  const long rc = fi_recv(buffer.port->receive_context.get(), buffer.bytes.get(), buffer_bytes_, nullptr, 0,
                          static_cast<Operation*>(&buffer));
  // The context has an entry for each buffer, but there may be no memory for it.
  if (rc != 0) idle_.push_back(&buffer);  // open() has made room
}

void OfiNetwork::post_idle() {
  for (std::size_t left = idle_.size(); left != 0; --left) {
    ReceiveBuffer* buffer = idle_.front();
    idle_.erase(idle_.begin());
    repost(*buffer);
  }
}

void OfiNetwork::arrived(ReceiveBuffer& buffer, std::size_t length) {
  FrameHead head{};
  OfiPort& port = *buffer.port;
  if (length >= sizeof head) std::memcpy(&head, buffer.bytes.get(), sizeof head);
  OfiIncoming* from =
      length >= sizeof head && head.connection < port.incoming.size() ? port.incoming[head.connection].get() : nullptr;
  const Kind kind{head.kind};
  if (from == nullptr || !from->open || from->cut_off || head.check != from->check || kind == kEnd) {
    if (kind != kEnd) ++counts_.dropped;
    return repost(buffer);
  }
  const bool whole = sizeof head + head.header + std::size_t{head.length} == length;
  const std::span body(buffer.bytes.get() + sizeof head, length - sizeof head);
  if (whole && !from->greeted && kind == kHello && head.header == 0 && introduce(*from, body)) return repost(buffer);
  const bool known = kind == Kind::first || kind == Kind::more || kind == Kind::bye;
  if (!whole || !from->greeted || !known) {
    from->cut_off = true;
    ++port.broken;
    ++counts_.dropped;
    return repost(buffer);
  }
  buffer.length = static_cast<std::uint32_t>(length);
  port.ready.push_back(&buffer);
  ++counts_.received;
  port.arrivals.store(port.arrivals.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  // The owner announced its sleep before its last look, which was under the lock.
  if (port.is_awaited.load(std::memory_order_relaxed)) ring(port);
  if (port.is_watched.load(std::memory_order_relaxed)) ring_watcher(port);
}

bool OfiNetwork::introduce(OfiIncoming& from, std::span<const std::byte> bytes) {
  const auto introduction = hosts::read_introduction(kTransport, bytes);
  if (!introduction) return false;
  from.card = introduction->card;
  from.hello.assign(introduction->hello.begin(), introduction->hello.end());
  from.token = introduction->process.token;
  unreached_.forget(from.token);
  from.port->silent.erase(from.token);
  reached_.insert(introduction->process.host);
  from.greeted = from.fresh = true;
  return true;
}

bool OfiNetwork::next(OfiPort& port, Frame& frame) {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  std::lock_guard lock(lock_);
  if (port.ready.empty()) {
    if (++looks_ % kLooksPerEvent == 0) read_events();
    if (!progress() || port.ready.empty()) return false;
  }
  ReceiveBuffer& buffer = *port.ready.front();
  port.ready.pop_front();
  FrameHead head{};
  std::memcpy(&head, buffer.bytes.get(), sizeof head);
  frame.header = buffer.bytes.get() + sizeof head;
  frame.data = frame.header + head.header;
  frame.header_length = head.header;
  frame.length = head.length;
  frame.kind = Kind{head.kind};
  frame.origin = head.connection;
  frame.fresh = std::exchange(port.incoming[head.connection]->fresh, false);
  // A few may be kept where they are; then all senders share what is left.
  frame.shared_room = ++port.held > kReceiveBuffers / 2;
  frame.source = 0;
  frame.position = buffer.index;
  return true;
}

bool OfiNetwork::has_arrived(OfiPort& port) {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  std::lock_guard lock(lock_);
  if (port.ready.empty()) progress();
  return !port.ready.empty();
}

void OfiNetwork::release(OfiPort& port, const Frame& frame) {
  std::lock_guard lock(lock_);
  --port.held;
  repost(*port.buffers[frame.position]);
}

// ---- ports ----------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<OfiPort>> OfiNetwork::open(std::uint16_t number) {
  std::lock_guard lock(lock_);
  if (ports_[number] != nullptr) return fail(Errc::busy, fmt::format("port {} is open already", number));
  auto port = std::make_unique<OfiPort>();
  port->number = number;
  port->rung = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  port->watched = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!port->rung) return fail_errno(fmt::format("opening port {}", number));
  auto set = poll_set(port->rung.get());
  if (!set) return fail(std::move(set.error()).within(fmt::format("opening port {}", number)));
  port->set = std::move(*set);
  fi_rx_attr attributes = *info_->rx_attr;
  attributes.size = std::max<std::size_t>(attributes.size, kReceiveBuffers);
  fid_ep* context = nullptr;
  if (const long rc = fi_srx_context(domain_.get(), &attributes, &context, nullptr); rc != 0)
    return fail(fabric_error(fmt::format("opening port {}", number), rc));
  port->receive_context.reset(context);
  port->buffers.reserve(kReceiveBuffers);
  make_room_for(idle_, receive_buffers_ + kReceiveBuffers);
  for (std::uint32_t i = 0; i < kReceiveBuffers; ++i) {
    auto buffer = std::make_unique<ReceiveBuffer>();
    buffer->type = Operation::Type::receive;
    buffer->port = port.get();
    buffer->index = i;
    buffer->bytes.reset(new (std::nothrow) std::byte[buffer_bytes_]);
    if (!buffer->bytes) return fail(Errc::no_memory, "no memory for the receive buffers of a port");
    port->buffers.push_back(std::move(buffer));
  }
  for (const auto& buffer : port->buffers) repost(*buffer);
  receive_buffers_ += kReceiveBuffers;
  ports_[number] = port.get();
  return port;
}

void OfiNetwork::close(std::unique_ptr<OfiPort> port) {
  std::lock_guard lock(lock_);
  progress();  // a completion that is there may name one of its buffers
  ports_[port->number] = nullptr;
  for (auto& one : port->incoming) one->ep.reset();
  port->receive_context.reset();
  receive_buffers_ -= kReceiveBuffers;
  std::erase_if(idle_, [&](const ReceiveBuffer* buffer) { return buffer->port == port.get(); });
  while (progress()) {
  }
}

OriginInfo OfiNetwork::origin(const OfiPort& port, std::uint32_t index) const {
  std::lock_guard lock(lock_);
  if (index >= port.incoming.size() || !port.incoming[index]->open) return {};
  const OfiIncoming& from = *port.incoming[index];
  return {from.card, from.from, from.process, from.hello};
}

void OfiNetwork::drop_origin(OfiPort& port, std::uint32_t index) {
  std::lock_guard lock(lock_);
  if (index >= port.incoming.size() || !port.incoming[index]->open) return;
  end(*port.incoming[index]);
  port.unused.push_back(index);
}

bool OfiNetwork::take_given_up(OfiPort& port, Error& error) {
  std::lock_guard lock(lock_);
  if (port.given_up.empty()) return false;
  error = std::move(port.given_up.front());
  port.given_up.pop_front();
  return true;
}

// The place is free for another; frames with the old check are dropped.
void OfiNetwork::end(OfiIncoming& incoming) {
  incoming.ep.reset();
  incoming.peer.clear();
  incoming.open = incoming.greeted = incoming.fresh = incoming.ended = incoming.cut_off = incoming.is_told = false;
  incoming.check = 0;
  incoming.card.clear();
  incoming.hello.clear();
  incoming.process = {};
  incoming.token = 0;
  incoming.lifeline = {};
}

std::int64_t OfiNetwork::find_dead(OfiPort& port) {
  std::lock_guard lock(lock_);
  read_events();
  progress();
  if (!port.ready.empty()) return -1;
  for (std::uint32_t i = 0; i < port.incoming.size(); ++i) {
    OfiIncoming& from = *port.incoming[i];
    if (!from.open || !from.ended) continue;
    if (from.greeted) return i;
    end(from);  // it never said who it is: nobody above knows of it
    port.unused.push_back(i);
  }
  return -1;
}

std::int64_t OfiNetwork::take_broken(OfiPort& port) {
  std::lock_guard lock(lock_);
  if (port.broken == 0) return -1;
  --port.broken;
  const auto which = std::find_if(port.incoming.begin(), port.incoming.end(),
                                  [](const auto& one) { return one->cut_off && !std::exchange(one->is_told, true); });
  return which != port.incoming.end() ? which - port.incoming.begin() : -1;
}

bool OfiNetwork::has_frame(OfiPort& port) {
  std::lock_guard lock(lock_);
  do {
    progress();
    read_events();
    if (!port.ready.empty()) return true;
  } while (!is_ready_to_wait() || clear_signals());
  return false;
}

// Only before a sleep, which a stale one would end at once. True when there was one.
bool OfiNetwork::clear_signals() {
  pollfd set{poll_set_.get(), POLLIN, 0};
  if (poll(&set, 1, 0) <= 0) return false;
  const bool one = take_signal(waits_on_[0]), other = take_signal(waits_on_[1]);
  return one || other;
}

bool OfiNetwork::is_ready_to_wait() {
  fid* both[] = {&completions_->fid, &events_->fid};
  return fi_trywait(fabric_.get(), both, 2) != -FI_EAGAIN;
}

// ---- waiting --------------------------------------------------------------------------------------------------------

void OfiNetwork::ring(OfiPort& port) noexcept {
  const std::uint64_t one = 1;
  (void)!write(port.rung.get(), &one, sizeof one);
  port.is_rung.store(true, std::memory_order_release);
}

void OfiNetwork::ring_watcher(OfiPort& port) noexcept {
  const std::uint64_t one = 1;
  (void)!write(port.watched.get(), &one, sizeof one);
}

// For news that are no frames, which a look before a sleep does not find.
void OfiNetwork::ring_all() noexcept {
  for (OfiPort* port : ports_)
    if (port != nullptr) ring(*port);
}

void OfiNetwork::forget_rings(OfiPort& port) noexcept {
  std::uint64_t count = 0;
  if (port.is_rung.load(std::memory_order_relaxed) && port.is_rung.exchange(false, std::memory_order_acquire))
    (void)!read(port.rung.get(), &count, sizeof count);
}

bool OfiNetwork::sleep(const OfiPort& port, std::chrono::nanoseconds limit, int other) noexcept {
  pollfd sets[] = {{port.set.get(), POLLIN, 0}, {other, POLLIN, 0}};
  const timespec time = timespec_of(limit);
  return ppoll(sets, std::size(sets), &time, nullptr) > 0;
}

// Of a thread that waits for the network with no port of its own.
void OfiNetwork::nap() const noexcept {
  pollfd set{poll_set_.get(), POLLIN, 0};
  (void)poll(&set, 1, 5);
}

bool OfiNetwork::look_beside(const OfiPort& port) {
  std::lock_guard lock(lock_);
  if (!port.ready.empty()) return false;
  progress();
  read_events();
  (void)is_ready_to_wait();
  return true;
}

// A program that computes polls nothing, and its peers want to connect and to get what it has sent.
void OfiNetwork::serve() {
  std::unique_lock stopping(stop_lock_);
  std::uint64_t seen = 0;
  while (!stop_changed_.wait_for(stopping, kTick, [this] { return stop_; })) {
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
    const bool busy = polls - std::exchange(seen, polls) >= kLooksPerEvent;
    std::unique_lock lock(lock_, std::try_to_lock);
    if (!lock) continue;
    try {
      if (!busy) progress();
      if (!busy) read_events();
      end_unauthenticated();
      find_silent();
    } catch (const std::bad_alloc&) {  // what was not served is so in the next turn
    }
    if (!busy) reap();
  }
}

std::vector<NamedCount> OfiNetwork::counts() const {
  std::lock_guard lock(lock_);
  // libfabric ends some itself.
  const std::uint64_t others = counts_.accepted + UnauthenticatedPeers::count(self_.port, authenticated());
  const std::uint64_t refused = std::max(counts_.refused, counts_.came - std::min(counts_.came, others));
  return {
      {"connections made", counts_.made}, {"accepted", counts_.accepted},        {"refused", refused},
      {"frames sent", counts_.sent},      {"frames received", counts_.received}, {"frames dropped", counts_.dropped}};
}

}  // namespace ulfm::ofi
