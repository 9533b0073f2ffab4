// The part of TcpNetwork that sends on links and ends them. All under the lock.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/copy.hpp"
#include "transport/hosts/silence.hpp"
#include "transport/tcp/network.hpp"

namespace ulfm::tcp {
namespace {

using Way = TcpLink::Way;

constexpr std::size_t kCopied = 2048;  // below, one piece is quicker than several
constexpr std::size_t kMostPieces = 64;
// Short frames that follow each other so soon wait for each other after the first few: a system call for each costs
// many times what they do (decision 0050). They leave together when their room is full, when the program looks at its
// port, and at the latest after kGatheredFor.
constexpr std::uint32_t kRow = 4;
constexpr std::chrono::microseconds kRowGap{50}, kGatheredFor{100};
constexpr std::size_t kShort = 16 * 1024, kGathered = 128 * 1024;

constexpr std::size_t kMostUnread = 16 * 1024 * 1024;

constexpr std::byte kFill[kLine]{};

void write_front(std::byte* to, const TcpFrameHead& head, std::span<const std::byte> header) {
  std::memcpy(to, &head, sizeof head);
  copy_bytes(to + sizeof head, header.data(), header.size());
  std::memset(to + sizeof head + header.size(), 0, head.gap);
}

bool has_sent_all(const TcpLink& link) { return link.rest_length == 0 && !link.has_end && !link.has_stop; }

}  // namespace

// ---- ends -----------------------------------------------------------------------------------------------------------

bool TcpNetwork::watch_for_reading(const Fd& set, const Fd& what, std::uint64_t number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  return epoll_ctl(set.get(), EPOLL_CTL_ADD, what.get(), &event) == 0 || errno == EEXIST;
}

bool TcpNetwork::watch(TcpLink& link, int set, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = link.number;
  if (link.watched_by == set) return epoll_ctl(set, EPOLL_CTL_MOD, link.socket.get(), &event) == 0;
  if (link.watched_by >= 0) (void)epoll_ctl(link.watched_by, EPOLL_CTL_DEL, link.socket.get(), nullptr);
  link.watched_by = set;
  return epoll_ctl(set, EPOLL_CTL_ADD, link.socket.get(), &event) == 0;
}

// Nothing more will come.
void TcpNetwork::end_in(TcpLink& link) {
  if (link.in == Way::used && !link.discards && link.port != nullptr) link.port->origins[link.origin].ended = true;
  link.in = Way::ended;
}

void TcpNetwork::break_link(TcpLink& link) {
  link.close();
  end_in(link);
  link.more_left = link.fill_left = 0;
  link.rest_length = 0;
  link.has_end = link.has_stop = false;
  forget(link);
}

// The caller has a reference to the link for as long as it uses it.
void TcpNetwork::forget(TcpLink& link) {
  // Closing alone does not take it out of the set while a forked child has it, too.
  if (link.watched_by >= 0) (void)epoll_ctl(link.watched_by, EPOLL_CTL_DEL, link.socket.get(), nullptr);
  link.socket.reset();
  link.watched_by = -1;
  leave_port(link);
  links_.erase(link.number);
}

// Its frames that were found stay.
void TcpNetwork::leave_port(TcpLink& link) {
  if (link.port != nullptr) {
    for (ReceivedFrame& one : link.port->ready)
      if (one.link == &link) one.link = nullptr;
    for (TcpOrigin& one : link.port->origins)
      if (one.link == &link) one.link = nullptr;
    std::erase_if(link.port->links, [&](const auto& one) { return one.get() == &link; });
  }
  if (link.block != nullptr) {
    Block& block = *std::exchange(link.block, nullptr);
    block.filling = nullptr;
    if (block.held == 0) free_blocks_.push_back(&block);
  }
  link.filled = link.parsed = 0;
  link.is_starved = false;
}

// A link of which neither direction is needed ends when the other host has all that was sent on it: where something
// comes in on a closed connection, or lies unread in one that is closed, the system takes back what has not arrived.
void TcpNetwork::settle(TcpLink& link) {
  if (!link.is_open() || !has_sent_all(link)) return;
  const bool sends = link.out == Way::used;
  if (sends || !(link.in == Way::ended || (link.in == Way::unused && link.closed.load(std::memory_order_relaxed))))
    return;
  if (link.is_cut) return give_up(link);
  if (!link.unproven || is_all_acknowledged(link)) return break_link(link);
  if (link.is_parting) return;
  link.close();
  end_in(link);
  leave_port(link);
  link.port = nullptr;  // it may be closed before
  link.is_parting = true;
  if (!watch(link, common_.get(), EPOLLIN)) break_link(link);
}

// Drops what comes in on a link that ends.
void TcpNetwork::drop_unread(TcpLink& link) {
  const ssize_t n = recv(link.socket.get(), nullptr, kMostUnread, MSG_DONTWAIT | MSG_TRUNC);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break_link(link);
}

// The port here takes nothing from it any more, and says so.
void TcpNetwork::stop(TcpLink& link) {
  if (!link.is_open()) return;
  link.discards = true;
  link.in = Way::ended;
  link.has_stop = link.state == hosts::Try::State::up;
  (void)flush(link);
  settle(link);
}

void TcpNetwork::retire(const std::shared_ptr<TcpLink>& link) {
  std::lock_guard lock(lock_);
  if (!link->is_open()) return;
  link->has_end = true;
  (void)flush(*link);
}

// ---- sending --------------------------------------------------------------------------------------------------------

bool TcpNetwork::push(TcpLink& to, Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) {
  std::lock_guard lock(lock_);
  ++pushes_;
  return push_locked(to, kind, header, data, length);
}

bool TcpNetwork::push_locked(TcpLink& to, Kind kind, std::span<const std::byte> header, Gather& data,
                             std::size_t length) {
  if (!to.carries()) return false;
  const TcpFrameHead head{static_cast<std::uint32_t>(length), static_cast<std::uint8_t>(kind),
                          static_cast<std::uint8_t>(header.size()), 0, 0};
  // Where no more fit, those that were gathered leave, and the next ones are gathered.
  const bool follows = length <= kShort && is_in_a_row(to);
  if (follows && gather(to, head, header, data)) return true;
  if (!has_sent_all(to) && !flush(to)) return false;
  if (!to.carries()) return false;  // as was found out
  if (follows && gather(to, head, header, data)) return true;
  const bool is_gone = length <= kCopied ? send_copied(to, head, header, data) : send_pieces(to, head, header, data);
  if (is_gone) note_sent(to, kind);
  return is_gone;
}

void TcpNetwork::note_sent(TcpLink& link, Kind kind) noexcept {
  ++counts_.sent;
  if (kind == Kind::first) link.window.note_message();
}

bool TcpNetwork::send_copied(TcpLink& link, const TcpFrameHead& head, std::span<const std::byte> header, Gather& data) {
  alignas(kLine) std::byte bytes[up_to_line(sizeof head + 255 + kCopied)];
  Gather rest = data;  // moved on only when the frame goes
  write_front(bytes, head, header);
  rest.copy(bytes + data_of(head), head.length);
  std::memset(bytes + end_of(head), 0, size_of(head) - end_of(head));
  iovec piece{bytes, size_of(head)};
  if (!send_now(link, std::span(&piece, 1), size_of(head))) return false;
  data = rest;
  return true;
}

bool TcpNetwork::send_pieces(TcpLink& link, TcpFrameHead head, std::span<const std::byte> header, Gather& data) {
  iovec pieces[1 + kMostPieces + 1];
  std::size_t count = data.pieces(std::span(pieces).subspan(1, kMostPieces), head.length);
  Lines copied;  // of more pieces than a system call takes
  Gather rest = data;
  if (count != 0) {
    rest.skip(head.length);
  } else {
    copied = make_lines(head.length);
    if (!copied) return false;
    rest.copy(bytes_of(copied), head.length);
    pieces[1] = {bytes_of(copied), head.length};
    count = 1;
  }
  if (!settings_.in_one_piece) head.gap = gap_for(head, pieces[1].iov_base);
  std::byte front[sizeof head + 255 + kLine];
  write_front(front, head, header);
  pieces[0] = {front, data_of(head)};
  if (const std::size_t fill = size_of(head) - end_of(head); fill != 0)
    pieces[++count] = {const_cast<std::byte*>(kFill), fill};
  if (!send_now(link, std::span(pieces).first(1 + count), size_of(head))) return false;
  data = rest;
  return true;
}

// Asked once for each short frame.
bool TcpNetwork::is_in_a_row(TcpLink& link) const {
  if (link.port == nullptr) return false;  // nobody looks
  const auto now = Clock::now();
  const bool goes_on = link.row.looks == link.port->looks && now - link.row.last < kRowGap;
  link.row = {goes_on ? link.row.frames + 1 : 0, link.port->looks, now};
  return link.row.frames >= kRow;
}

// False when it has to leave at once, and what was gathered before it.
bool TcpNetwork::gather(TcpLink& link, const TcpFrameHead& head, std::span<const std::byte> header, Gather& data) {
  if (link.has_end || link.has_stop) return false;
  if (link.rest_length == 0) link.rest_gone = 0;
  if (link.rest_room < kGathered) {
    if (link.rest_length != 0) return false;
    link.rest = make_lines(kGathered);
    link.rest_room = link.rest ? kGathered : 0;
  }
  const std::size_t size = size_of(head);
  if (link.rest_room - link.rest_gone - link.rest_length < size) return false;
  if (!soon_is_set_) {
    itimerspec soon{};
    soon.it_value.tv_nsec = std::chrono::nanoseconds(kGatheredFor).count();
    if (timerfd_settime(soon_.get(), 0, &soon, nullptr) != 0) return false;
    soon_is_set_ = true;
  }
  if (!link.is_listed && !make_room_for_one(link.port->gatherers)) return false;
  std::byte* to = bytes_of(link.rest) + link.rest_gone + link.rest_length;
  write_front(to, head, header);
  data.copy(to + data_of(head), head.length);
  std::memset(to + end_of(head), 0, size - end_of(head));
  link.rest_length += size;
  note_sent(link, Kind{head.kind});
  ++counts_.gathered;
  link.gathers = true;
  if (!std::exchange(link.is_listed, true)) link.port->gatherers.push_back(link.number);
  return true;
}

void TcpNetwork::send_gathered(TcpPort& port) {
  std::swap(port.gatherers, port.leaving);
  for (const std::uint64_t number : port.leaving)
    if (const auto at = links_.find(number); at != links_.end()) {
      at->second->is_listed = false;
      if (at->second->gathers) (void)flush(*std::shared_ptr(at->second));
    }
  port.leaving.clear();
}

// Sends what there is room for and keeps the rest. False, with nothing sent, when there is no room at all.
bool TcpNetwork::send_now(TcpLink& link, std::span<iovec> pieces, std::size_t total) {
  if (link.rest_room < total) {  // before anything leaves: afterwards it would be too late for want of memory
    link.rest = make_lines(total);
    link.rest_room = link.rest ? total : 0;
    if (!link.rest) return false;
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t n = pieces.size() == 1
                        ? ::send(link.socket.get(), pieces[0].iov_base, total, MSG_DONTWAIT | MSG_NOSIGNAL)
                        : sendmsg(link.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) {
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
      await_room(link);
    } else if (errno != EINTR) {
      link.note_error(errno);
      link.close();
    }
    return false;
  }
  link.unproven = true;
  std::size_t gone = static_cast<std::size_t>(n);
  if (gone == total) return true;
  link.rest_gone = 0;
  link.rest_length = total - gone;
  std::byte* to = bytes_of(link.rest);
  for (const iovec& piece : pieces) {
    const std::size_t skipped = std::min(gone, piece.iov_len);
    gone -= skipped;
    std::memcpy(to, static_cast<std::byte*>(piece.iov_base) + skipped, piece.iov_len - skipped);
    to += piece.iov_len - skipped;
  }
  await_room(link);
  return true;
}

void TcpNetwork::await_room(TcpLink& link) {
  if (link.watches_room) return;
  link.watches_room = watch(link, link.watched_by, EPOLLIN | EPOLLOUT);
}

bool TcpNetwork::say(TcpLink& link, Kind kind) {
  const TcpFrameHead head{0, static_cast<std::uint8_t>(kind), 0, 0, 0};
  std::byte bytes[size_of(TcpFrameHead{})] = {};
  std::memcpy(bytes, &head, sizeof head);
  iovec piece{bytes, sizeof bytes};
  return send_now(link, std::span(&piece, 1), sizeof bytes);
}

// Sends what is left. True when nothing is.
bool TcpNetwork::flush(TcpLink& link) {
  if (!link.is_open()) return true;
  link.gathers = false;
  if (link.rest_length != 0) {
    const ssize_t n =
        ::send(link.socket.get(), bytes_of(link.rest) + link.rest_gone, link.rest_length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ENOMEM) {
      link.note_error(errno);
      link.rest_length = 0;
      link.has_end = link.has_stop = false;
      link.out = Way::ended;
      link.close();
      if (link.in == Way::ended) settle(link);  // else what the other side has said last is read before
      return true;
    }
    if (n > 0) {
      link.rest_gone += static_cast<std::size_t>(n);
      link.rest_length -= static_cast<std::size_t>(n);
      link.unproven = true;
    }
    if (link.rest_length != 0) {
      await_room(link);
      return false;
    }
  }
  if (link.has_stop && say(link, kStop)) link.has_stop = false;
  if (link.has_end && !link.has_stop && link.rest_length == 0 && say(link, kEnd)) {
    link.has_end = false;
    link.out = Way::ended;
  }
  if (link.closed.load(std::memory_order_relaxed)) {  // nobody would read it
    if (std::exchange(link.has_end, false)) link.out = Way::ended;
    link.has_stop = false;
  }
  if (!has_sent_all(link)) return false;
  if (std::exchange(link.watches_room, false)) (void)watch(link, link.watched_by, EPOLLIN);
  settle(link);
  return true;
}

// For a program that computes. A link may end by it, and no other one.
void TcpNetwork::flush_all() {
  for (auto at = links_.begin(); at != links_.end();) {
    const auto link = (at++)->second;
    if (!has_sent_all(*link)) (void)flush(*link);
    else if (link->is_parting) settle(*link);
  }
}

// ---- silent and closed peers ----------------------------------------------------------------------------------------

// An idle link is ended by the kernel, which asks the other host by itself.
void TcpNetwork::find_silent(Clock::time_point now) {
  for (auto at = links_.begin(); at != links_.end();) {
    const auto link = (at++)->second;
    if (!link->unproven || link->state != hosts::Try::State::up) continue;
    if (is_all_acknowledged(*link)) {
      link->unproven = false;
      link->unproven_since.reset();
      continue;
    }
    if (!link->unproven_since) link->unproven_since = now;
    if (now - *link->unproven_since < settings_.give_up || !hosts::is_silent(link->socket.get(), settings_.give_up))
      continue;
    give_up(*link);
  }
}

// Without memory for the reason it is a peer that has ended.
void TcpNetwork::give_up(TcpLink& link) noexcept {
  try {
    auto why = hosts::silence_of({link.pid, link.where.ip()}, settings_.give_up);
    unreached_.note_silent(link.token, Clock::now(), why);
    if (link.port != nullptr) {
      link.port->given_up.push_back(std::move(why));
      link.is_closed_by_word.store(true, std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {
  }
  if (link.port != nullptr) ring(*link.port);
  break_link(link);
}

bool TcpNetwork::is_all_acknowledged(const TcpLink& link) const {
  int left = 0;
  return link.rest_length == 0 && (ioctl(link.socket.get(), SIOCOUTQ, &left) != 0 || left == 0);
}

bool TcpNetwork::peer_listening(TcpLink& to) {
  std::lock_guard lock(lock_);
  if (to.is_open() && to.port == nullptr) {
    read(to, false);
  } else if (to.port != nullptr && to.port->ready.empty()) {
    look(*to.port, false);
    ring_for_found(*to.port);
  }
  if (!to.closed.load(std::memory_order_relaxed)) return true;
  return Clock::now() - to.closed_at < hosts::kTrailFor && is_heard_from(to.token);
}

// A process has connections here that have not ended, or frames that nobody has taken.
bool TcpNetwork::is_heard_from(std::uint64_t token) const {
  for (const TcpPort* port : ports_) {
    if (port == nullptr) continue;
    for (const TcpOrigin& one : port->origins)
      if (one.open && one.token == token && (!one.ended || !port->ready.empty())) return true;
  }
  return false;
}

}  // namespace ulfm::tcp
