#include "transport/tcp/network.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/timespec.hpp"

namespace ulfm::tcp {
namespace {

constexpr std::uint32_t kLooksPerEvent = 64;
constexpr std::uint32_t kMostHeld = 16;
constexpr std::uint64_t kRung = 1, kOwn = 2;  // no link has these numbers

bool is_stream(const TcpFrameHead& head) {
  return Kind{head.kind} == Kind::more && head.header == 0 && head.length != 0;
}

std::size_t most_of(const TcpFrameHead& head, const FrameSizes& sizes) {
  return is_stream(head) || Kind{head.kind} == Kind::first ? std::max(sizes.longest, sizes.whole) : sizes.whole;
}

// So many bytes of it have to be there before it is handed on, whole or in parts.
std::size_t needed_of(const TcpFrameHead& head, const FrameSizes& sizes) {
  if (is_stream(head)) return data_of(head);
  return head.length > sizes.whole ? data_of(head) + kLeastFrame : size_of(head);
}

}  // namespace

// ---- ports ----------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<TcpPort>> TcpNetwork::open(std::uint16_t number) {
  std::lock_guard lock(lock_);
  if (ports_[number] != nullptr) return fail(Errc::busy, fmt::format("port {} is open already", number));
  auto port = std::make_unique<TcpPort>();
  port->number = number;
  port->set = Fd(epoll_create1(EPOLL_CLOEXEC));
  port->rung = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const TcpPort* own = ports_[kOwnPort];
  if (!port->set || !port->rung || !watch_for_reading(port->set, port->rung, kRung) ||
      (own != nullptr && !watch_for_reading(port->set, own->set, kOwn)))
    return fail_errno(fmt::format("opening port {}", number));
  ports_[number] = port.get();
  return port;
}

// Links on which something still leaves go on without the port.
void TcpNetwork::close(std::unique_ptr<TcpPort> port) {
  std::lock_guard lock(lock_);
  ports_[port->number] = nullptr;
  while (!port->ready.empty())
    if (Block* block = port->ready.take().block; block != nullptr) put_back(*block);
  const auto links = std::move(port->links);
  for (const auto& link : links) {
    link->port = nullptr;
    link->waiting = 0;
    stop(*link);
    if (std::exchange(link->is_starved, false) && link->is_open()) {  // discards, which needs no memory
      parse(*link);
      let_block_go(*link);
    }
    const std::uint32_t events = EPOLLIN | (link->watches_room ? EPOLLOUT : 0U);
    if (link->is_open() && !watch(*link, common_.get(), events)) break_link(*link);
  }
}

OriginInfo TcpNetwork::origin(const TcpPort& port, std::uint32_t index) const {
  std::lock_guard lock(lock_);
  if (index >= port.origins.size() || !port.origins[index].open) return {};
  const TcpOrigin& from = port.origins[index];
  return {from.card, from.from, from.process, from.hello};
}

void TcpNetwork::drop_origin(TcpPort& port, std::uint32_t index) {
  std::lock_guard lock(lock_);
  if (index >= port.origins.size() || !port.origins[index].open) return;
  drop_frames(port, index);
  TcpOrigin& origin = port.origins[index];
  const auto link = origin.link == nullptr ? nullptr : links_.at(origin.link->number);
  origin = {};
  port.unused.push_back(index);
  if (link) stop(*link);
}

void TcpNetwork::drop_frames(TcpPort& port, std::uint32_t origin) {
  port.ready.drop_if([&](const ReceivedFrame& one) {
    if (one.origin != origin) return false;
    if (one.link != nullptr) --one.link->waiting;
    if (one.block != nullptr) put_back(*one.block);
    return true;
  });
}

std::int64_t TcpNetwork::find_dead(TcpPort& port) {
  std::lock_guard lock(lock_);
  if (!port.ready.empty()) return -1;
  look(port, false);
  if (!port.ready.empty()) return -1;
  for (std::size_t i = 0; i < port.origins.size(); ++i)
    if (port.origins[i].open && port.origins[i].ended) return static_cast<std::int64_t>(i);
  return -1;
}

std::int64_t TcpNetwork::take_broken(TcpPort& port) {
  std::lock_guard lock(lock_);
  if (port.broken == 0) return -1;
  --port.broken;
  const auto which = std::find_if(port.origins.begin(), port.origins.end(),
                                  [](TcpOrigin& one) { return one.open && std::exchange(one.cut_off, false); });
  return which != port.origins.end() ? which - port.origins.begin() : -1;
}

bool TcpNetwork::take_given_up(TcpPort& port, Error& error) {
  std::lock_guard lock(lock_);
  if (port.given_up.empty()) return false;
  error = std::move(port.given_up.front());
  port.given_up.pop_front();
  return true;
}

// ---- frames ---------------------------------------------------------------------------------------------------------

bool TcpNetwork::next(TcpPort& port, Frame& frame) {
  std::lock_guard lock(lock_);
  if (port.ready.empty()) look(port, true);
  return take(port, frame);
}

bool TcpNetwork::next_at_hand(TcpPort& port, Frame& frame) {
  std::lock_guard lock(lock_);
  if (port.ready.empty() && !port.drained) look(port, true);
  return take(port, frame);
}

bool TcpNetwork::take(TcpPort& port, Frame& frame) {
  if (port.ready.empty()) return false;
  const ReceivedFrame found = port.ready.take();
  if (found.link != nullptr) --found.link->waiting;
  frame.header = found.header_at;
  frame.data = found.at;
  frame.header_length = found.header;
  frame.length = found.length;
  frame.kind = found.kind;
  frame.origin = found.origin;
  frame.fresh = std::exchange(port.origins[found.origin].fresh, false);
  frame.source = found.block == nullptr ? 1 : 0;
  frame.position = found.block == nullptr ? 0 : found.block->index;
  // A few may be kept where they are; then the blocks would become many.
  frame.shared_room = ++port.held > kMostHeld;
  return true;
}

void TcpNetwork::release(TcpPort& port, const Frame& frame) {
  std::lock_guard lock(lock_);
  --port.held;
  if (frame.source == 0) put_back(*blocks_[frame.position]);
}

bool TcpNetwork::has_frame(TcpPort& port) {
  std::lock_guard lock(lock_);
  if (port.ready.empty()) look(port, false);
  return !port.ready.empty();
}

// ---- reading; all under the lock ------------------------------------------------------------------------------------

// The system tells which links have something, unless there is one only.
void TcpNetwork::look(TcpPort& port, bool places) {
  ++port.looks;
  if (!port.gatherers.empty()) send_gathered(port);
  if (port.has_starved) feed(port);
  if (port.links.size() == 1 && !port.links.front()->watches_room && port.looks % kLooksPerEvent != 0) {
    const auto only = port.links.front();
    port.drained = read(*only, places);
    return;
  }
  constexpr int kMostEvents = 16;
  epoll_event events[kMostEvents];
  const int n = epoll_wait(port.set.get(), events, kMostEvents, 0);
  port.drained = n < kMostEvents;
  for (int i = 0; i < n; ++i) {
    const auto at = links_.find(events[i].data.u64);
    if (at == links_.end()) continue;  // a ring, or a link that has ended meanwhile
    const auto link = at->second;
    if ((events[i].events & EPOLLOUT) != 0) (void)flush(*link);
    if ((events[i].events & ~std::uint32_t{EPOLLOUT}) != 0 && link->port == &port && !read(*link, places))
      port.drained = false;
  }
}

// True when it took all that had come.
bool TcpNetwork::read(TcpLink& link, bool places) {
  if (link.is_parting) {
    drop_unread(link);
    return true;
  }
  if (!link.is_open() || link.state != hosts::Try::State::up || link.is_starved || !make_room(link)) return false;
  std::span<std::byte> place;
  if (places && link.more_left != 0 && link.waiting == 0 && !link.discards && link.port->places != nullptr) {
    place = link.port->places->place_for(link.origin);
    place = has_room_for_frame(link) ? place.first(std::min(place.size(), link.more_left)) : place.first(0);
  }
  const std::size_t room = most_to_read(link);
  const ssize_t n = receive(link, place, room);
  const bool is_interrupted = n < 0 && errno == EINTR;
  if (n == 0 || (n < 0 && errno != EAGAIN && !is_interrupted)) {
    if (n < 0) link.note_error(errno);
    if (link.is_cut) give_up(link);
    else break_link(link);
  }
  if (n <= 0) {
    let_block_go(link);
    return !is_interrupted;
  }
  const bool took_all = static_cast<std::size_t>(n) < place.size() + room;
  link.window.note_read(link.socket.get(), static_cast<std::size_t>(n), took_all);
  const std::size_t in_place = std::min(static_cast<std::size_t>(n), place.size());
  if (in_place != 0) {
    counts_.placed += in_place;
    found_more(link, place.first(in_place), nullptr);
  }
  link.filled += static_cast<std::size_t>(n) - in_place;
  parse(link);
  let_block_go(link);
  return took_all && !link.is_starved;
}

// Where a long message is likely its beginning is enough: the rest is read into its place.
std::size_t TcpNetwork::most_to_read(const TcpLink& link) const {
  const bool begins = link.filled == link.parsed && link.more_left == 0;
  return std::min(begins && link.expects_long ? FrameSizes::kGlance : sizes_.read, sizes_.block - link.filled);
}

// Into the place and then into `room` bytes of the link's block.
ssize_t TcpNetwork::receive(TcpLink& link, std::span<std::byte> place, std::size_t room) {
  std::byte* behind = bytes_of(link.block->bytes) + link.filled;
  if (place.empty()) return recv(link.socket.get(), behind, room, MSG_DONTWAIT);
  iovec pieces[] = {{place.data(), place.size()}, {behind, room}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = std::size(pieces);
  return recvmsg(link.socket.get(), &message, MSG_DONTWAIT);
}

// The block of a link, with room behind what it has read. False: there is no memory.
bool TcpNetwork::make_room(TcpLink& link) {
  Block* old = link.block;
  if (old != nullptr) {
    if (link.filled == link.parsed && old->held == 0) link.filled = link.parsed = 0;
    // What is there of a frame has to be followed by the rest of it.
    if (sizes_.block - link.filled >= sizes_.read) return true;
  }
  Block* fresh = take_block();
  if (fresh == nullptr) return false;
  const std::size_t kept = link.filled - link.parsed;
  if (old != nullptr) {
    std::memcpy(bytes_of(fresh->bytes), bytes_of(old->bytes) + link.parsed, kept);
    old->filling = nullptr;
    if (old->held == 0) free_blocks_.push_back(old);
  }
  fresh->filling = &link;
  link.block = fresh;
  link.filled = kept;
  link.parsed = 0;
  return true;
}

// Room for one more frame of it where frames are found, made before the frame is taken.
bool TcpNetwork::has_room_for_frame(const TcpLink& link) noexcept {
  return link.discards || link.port == nullptr || link.port->ready.make_room();
}

// Nothing more is read of it until what is there has been taken in, so nothing that comes tells of it.
void TcpNetwork::starve(TcpLink& link) {
  link.is_starved = true;
  if (link.port == nullptr) return;
  link.port->has_starved = true;
  ring(*link.port);
}

void TcpNetwork::feed(TcpPort& port) {
  port.has_starved = false;
  for (std::size_t i = 0; i < port.links.size();) {
    const auto link = port.links[i];
    if (std::exchange(link->is_starved, false)) {
      parse(*link);
      let_block_go(*link);
    }
    if (i < port.links.size() && port.links[i] == link) ++i;  // it may have ended
  }
}

void TcpNetwork::parse(TcpLink& link) {
  while (link.is_open() && !link.is_parting) {
    const std::byte* at = bytes_of(link.block->bytes) + link.parsed;
    const std::size_t there = link.filled - link.parsed;
    if (link.more_left != 0) {
      const std::size_t piece = std::min(there, link.more_left);
      if (piece == 0) return;
      if (!has_room_for_frame(link)) return starve(link);
      link.parsed += piece;
      found_more(link, {at, piece}, link.block);
      continue;
    }
    if (link.fill_left != 0) {
      const std::size_t piece = std::min(there, link.fill_left);
      if (piece == 0) return;
      link.parsed += piece;
      link.fill_left -= piece;
      continue;
    }
    TcpFrameHead head{};
    if (there < sizeof head) return;
    std::memcpy(&head, at, sizeof head);
    if (head.length > most_of(head, sizes_) || head.gap >= kLine) return cut_off(link);
    if (!is_stream(head)) link.expects_long = head.length > 2 * sizes_.whole;
    if (there < needed_of(head, sizes_)) return;
    // What is there of the data goes along, unless they are a stream.
    const std::size_t begun = is_stream(head) ? 0 : std::min<std::size_t>(there - data_of(head), head.length);
    const Taken how = take_frame(link, head, at, begun);
    if (how == Taken::nonsense) return cut_off(link);
    if (how == Taken::no_memory) return starve(link);
    if (!link.is_open() || link.is_parting) return;  // its end
    link.parsed += data_of(head) + begun;
    link.more_left = head.length - begun;
    link.fill_left = size_of(head) - end_of(head);
  }
}

// With the first `begun` bytes of its data.
TcpNetwork::Taken TcpNetwork::take_frame(TcpLink& link, const TcpFrameHead& head, const std::byte* at,
                                         std::size_t begun) {
  const Kind kind{head.kind};
  if (kind == Kind::first || kind == Kind::more || kind == Kind::bye) {
    if (link.in != TcpLink::Way::used && !link.discards) return Taken::nonsense;
    if (is_stream(head)) return Taken::yes;
    if (!has_room_for_frame(link)) return Taken::no_memory;
    found(link, head, at + sizeof head, {at + data_of(head), begun}, link.block);
    return Taken::yes;
  }
  if (kind == kHello && !link.discards) {
    if (link.in != TcpLink::Way::unused || head.header != 0) return Taken::nonsense;
    return begin_origin(link, {at + data_of(head), begun});
  }
  if (kind == kEnd) end_in(link);
  if (kind == kStop) {
    link.is_closed_by_word.store(true, std::memory_order_relaxed);
    link.close();
  }
  if (kind == kEnd || kind == kStop) settle(link);
  return kind == kHello || kind == kEnd || kind == kStop ? Taken::yes : Taken::nonsense;
}

TcpNetwork::Taken TcpNetwork::begin_origin(TcpLink& link, std::span<const std::byte> bytes) try {
  if (link.port == nullptr) {
    link.in = TcpLink::Way::used;
    link.discards = true;  // it was closed a moment ago, and the peer will learn of it
    return Taken::yes;
  }
  const auto introduction = hosts::read_introduction(kTransport, bytes);
  if (!introduction || introduction->process.token != link.token) return Taken::nonsense;
  unreached_.forget(link.token);
  note_reached(introduction->process.host);
  TcpPort& port = *link.port;
  TcpOrigin made{.open = true,
                 .fresh = true,
                 .ended = false,
                 .link = &link,
                 .from = link.peer_port,
                 .token = link.token,
                 .process = {.number = link.pid},
                 .card = std::string(introduction->card),
                 .hello = {introduction->hello.begin(), introduction->hello.end()}};
  if (const Ip ip = link.where.ip(); !ip.is_loopback()) made.process.host = ip;
  if (port.unused.empty()) {
    make_room_for(port.unused, port.origins.size() + 1);
    port.origins.emplace_back();
    port.unused.push_back(static_cast<std::uint32_t>(port.origins.size() - 1));
  }
  link.origin = port.unused.back();
  port.unused.pop_back();
  port.origins[link.origin] = std::move(made);
  link.in = TcpLink::Way::used;
  return Taken::yes;
} catch (const std::bad_alloc&) {
  return Taken::no_memory;
}

// `data` are as many of its data as it is handed on with.
void TcpNetwork::found(TcpLink& link, const TcpFrameHead& head, const std::byte* header,
                       std::span<const std::byte> data, Block* block) {
  if (link.discards || link.port == nullptr) {
    ++counts_.dropped;
    return;
  }
  TcpPort& port = *link.port;
  if (block != nullptr) ++block->held;
  ++link.waiting;
  port.ready.add({&link, block, header, data.data(), link.origin, static_cast<std::uint32_t>(data.size()), head.header,
                  Kind{head.kind}});
  ++counts_.received;
  port.arrivals.store(port.arrivals.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void TcpNetwork::found_more(TcpLink& link, std::span<const std::byte> data, Block* block) {
  static constexpr TcpFrameHead kMore{0, static_cast<std::uint8_t>(Kind::more), 0, 0, 0};
  link.more_left -= data.size();
  found(link, kMore, data.data(), data, block);
}

// It wrote nonsense: nothing more is read of what it says.
void TcpNetwork::cut_off(TcpLink& link) {
  ++counts_.dropped;
  if (link.in == TcpLink::Way::used && !link.discards && link.port != nullptr) {
    link.port->origins[link.origin].cut_off = true;
    ++link.port->broken;
  }
  break_link(link);
}

// None when there is no memory. All of them may become free, which must not fail.
Block* TcpNetwork::take_block() try {
  if (free_blocks_.empty()) {
    auto block = std::make_unique<Block>();
    block->index = static_cast<std::uint32_t>(blocks_.size());
    block->bytes = make_lines(sizes_.block);
    if (!block->bytes) return nullptr;
    make_room_for(free_blocks_, blocks_.size() + 1);
    blocks_.push_back(std::move(block));
    free_blocks_.push_back(blocks_.back().get());
  }
  Block* block = free_blocks_.back();
  free_blocks_.pop_back();
  return block;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// A frame in it was released.
void TcpNetwork::put_back(Block& block) {
  if (--block.held != 0) return;
  if (block.filling != nullptr) return let_block_go(*block.filling);
  free_blocks_.push_back(&block);
}

// A link on which nothing is on its way needs no room.
void TcpNetwork::let_block_go(TcpLink& link) {
  if (link.block == nullptr || link.block->held != 0 || (link.filled != link.parsed && link.is_open())) return;
  link.block->filling = nullptr;
  free_blocks_.push_back(std::exchange(link.block, nullptr));
  link.filled = link.parsed = 0;
}

// ---- sleeping -------------------------------------------------------------------------------------------------------

void TcpNetwork::ring(TcpPort& port) noexcept {
  const std::uint64_t one = 1;
  (void)!write(port.rung.get(), &one, sizeof one);
  port.is_rung.store(true, std::memory_order_release);
}

// Who sleeps at the port does not see what another thread has taken in.
void TcpNetwork::ring_for_found(TcpPort& port) noexcept {
  if (!port.ready.empty()) ring(port);
}

void TcpNetwork::forget_rings(TcpPort& port) noexcept {
  std::uint64_t count = 0;
  if (port.is_rung.load(std::memory_order_relaxed) && port.is_rung.exchange(false, std::memory_order_acquire))
    (void)!::read(port.rung.get(), &count, sizeof count);
}

bool TcpNetwork::sleep(const TcpPort& port, std::chrono::nanoseconds limit, int other) noexcept {
  pollfd sets[] = {{port.set.get(), POLLIN, 0}, {other, POLLIN, 0}};
  const timespec time = timespec_of(limit);
  return ppoll(sets, std::size(sets), &time, nullptr) > 0;
}

bool TcpNetwork::look_beside(TcpPort& port) {
  std::lock_guard lock(lock_);
  if (!port.ready.empty()) return false;
  look(port, false);
  if (TcpPort* own = ports_[kOwnPort]; own != nullptr && own != &port && own->ready.empty()) {
    look(*own, false);
    if (!own->ready.empty() && port.is_awaited.load(std::memory_order_relaxed)) ring(port);
  }
  // Of what has come for nobody who waits a ring would stay, and with it the watcher would nap.
  if (port.is_awaited.load(std::memory_order_relaxed)) ring_for_found(port);
  return true;
}

std::vector<NamedCount> TcpNetwork::counts() const {
  std::lock_guard lock(lock_);
  return {{"connections made", counts_.made},    {"accepted", counts_.accepted},
          {"refused", counts_.refused},          {"frames sent", counts_.sent},
          {"frames received", counts_.received}, {"frames dropped", counts_.dropped},
          {"bytes in place", counts_.placed},    {"frames gathered", counts_.gathered}};
}

}  // namespace ulfm::tcp
