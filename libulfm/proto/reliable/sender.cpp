#include "proto/reliable/sender.hpp"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "base/counted.hpp"
#include "base/crc32c.hpp"

namespace ulfm::reliable {
namespace {

constexpr std::uint32_t kLaterOnes = 3;    // that have arrived, and a frame before them counts as lost (RFC 5681)
constexpr std::uint32_t kAgainAtOnce = 8;  // frames sent again by one time-out

// Frames whose own header fits beside ours carry it there.
constexpr bool fits_beside(std::size_t header) { return kWireMost + header <= kHeaderLimit; }

std::string seconds_text(nanoseconds time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return fmt::format("{}.{} s", tenths / 10, tenths % 10);
}

}  // namespace

Sender::Sender(std::unique_ptr<Outlet> under, std::uint32_t stream, std::uint16_t to, const ReliableSettings& settings,
               Counters& counters, AckSource& acks)
    : under_(std::move(under)),
      stream_(stream),
      to_(to),
      settings_(settings),
      counters_(counters),
      acks_(acks),
      round_trip_(settings),
      ring_(settings.most_bytes),
      allowed_(std::min(kFirstCredit, settings.window)) {}

std::size_t Sender::max_frame(std::size_t header) const {
  const std::size_t most =
      fits_beside(header) ? under_->max_frame(kWireMost + header) : under_->max_frame(kWireMost) - header;
  return std::min(most, settings_.most_bytes / 2 - kHeaderLimit);
}

bool Sender::has_room() const noexcept { return next_ - oldest_ < settings_.window && before(next_, allowed_); }

bool Sender::push(Payload payload, std::span<const std::byte> header, Gather& data, std::size_t length) {
  const Gather untouched = data;
  if (!stage(payload, header, data, length)) return false;
  if (!transmit_staged()) {
    unstage();
    data = untouched;
    return false;
  }
  commit();
  return true;
}

bool Sender::stage(Payload payload, std::span<const std::byte> header, Gather& data, std::size_t length) {
  if (state_ != State::open) return false;
  // A goodbye needs no room above: it would wait for a receiver that reads nothing, and a port that closes for it.
  if (payload == Payload::bye ? next_ - oldest_ >= settings_.window : !has_room()) {
    blocked_ = true;
    return false;
  }
  if (length > kLeastFrame && length > max_frame(header.size())) return false;  // cut for more room than there is now
  std::byte* bytes = ring_.take(header.size() + length);
  if (bytes == nullptr) return false;
  copy_bytes(bytes, header.data(), header.size());
  if (length != 0) data.copy(bytes + header.size(), length);
  record(next_) = {bytes, static_cast<std::uint32_t>(length), crc32c(bytes, header.size() + length),
                   static_cast<std::uint8_t>(header.size()), payload};
  return true;
}

void Sender::commit() noexcept {
  ++next_;
  count(counters_.sent);
}

void Sender::unstage() noexcept { ring_.undo(record(next_).bytes); }

WireHeader Sender::header_of(const Record& r, std::uint32_t number) const noexcept {
  WireHeader wire;
  wire.payload = r.payload;
  wire.stream = stream_;
  wire.number = number;
  wire.header = r.header;
  wire.header_in_data = !fits_beside(r.header);
  wire.probe = number - oldest_ + 1 >= settings_.window;  // nothing can follow before an answer
  return wire;
}

void Sender::write_header(std::byte* to) const noexcept {
  const Record& r = records_[next_ % kMostWindow];
  const WireHeader wire = header_of(r, next_);
  encode(wire, r.body, to);
  copy_bytes(to + wire.size(), r.bytes, r.header);
}

bool Sender::transmit(const Record& r, std::uint32_t number) {
  WireHeader wire = header_of(r, number);
  return emit(wire, r.body, {r.bytes, std::size_t{r.header} + r.length});
}

// Puts our header in front, with an acknowledgement for the other direction if one is due. `bytes` is the frame's own
// header and data.
bool Sender::emit(WireHeader& wire, std::uint32_t body, std::span<const std::byte> bytes) {
  wire.has_ack = acks_.due(wire.ack);
  std::byte header[kHeaderLimit];
  encode(wire, body, header);
  std::size_t size = wire.size();
  if (!wire.header_in_data) {
    copy_bytes(header + size, bytes.data(), wire.header);
    size += wire.header;
    bytes = bytes.subspan(wire.header);
  }
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Gather data(std::span(&piece, 1));
  // For a transport at a machine's pace, which charges its software time for a message and not for what goes on.
  const Kind kind = wire.payload == Payload::first ? Kind::first : Kind::more;
  if (!under_->push(kind, std::span(header, size), data, bytes.size())) return false;
  if (wire.has_ack) acks_.gone(wire.ack);
  return true;
}

bool Sender::send_bare(bool probe) {
  WireHeader wire;
  wire.stream = stream_;
  wire.number = next_;
  wire.probe = probe;
  return emit(wire, 0, {});
}

// ---- acknowledgements -----------------------------------------------------------------------------------------------

bool Sender::take(const Ack& ack, nanoseconds looked_at) {
  if (state_ != State::open || before(ack.next, oldest_) || before(next_, ack.next)) return false;
  const bool progress = ack.next != oldest_;
  if (progress) measure(ack.next, looked_at);
  if (ack.twice && std::exchange(impatient_, false)) round_trip_.too_short();
  for (; oldest_ != ack.next; ++oldest_) {
    const Record& r = record(oldest_);
    ring_.give_back(r.bytes, r.header + r.length);
  }
  const std::uint32_t allowed = ack.next + ack.credit;
  const bool more = before(allowed_, allowed);
  if (more) allowed_ = allowed;
  if (ack.held != 0) mark(ack);
  if (progress || more) {
    blocked_ = false;  // whoever still finds no room says so again
    expired_ = 0;
    timer_ = waiting_since_ = nanoseconds(0);
  } else if (oldest_ == next_) {
    waiting_since_ = nanoseconds(0);  // no room yet, but somebody is there
  }
  return progress || more;
}

// Until the port's last look that found nothing: what has come since then may have come at once, and our own absence is
// no time to wait for, since what has come is taken in before time-outs are looked at.
void Sender::measure(std::uint32_t acknowledged, nanoseconds looked_at) {
  if (timed_at_.count() != 0 && before(timed_, acknowledged)) {
    round_trip_.sample(std::max(looked_at - timed_at_, nanoseconds(0)));
    timed_at_ = nanoseconds(0);
  } else if (expired_ == 0 && timed_at_.count() == 0 && !record(acknowledged - 1).again) {
    round_trip_.answered_at_once();
  }
}

// Notes what has arrived out of order, and sends again at once what that shows to be lost.
void Sender::mark(const Ack& ack) {
  if (oldest_ == next_) return;  // nonsense: nothing of what it marks has been sent
  std::uint32_t above = static_cast<std::uint32_t>(std::popcount(ack.held));
  if (!record(oldest_).again && above >= kLaterOnes) resend(oldest_);
  for (std::uint32_t i = 0; above != 0; ++i) {
    const std::uint32_t number = ack.next + 1 + i;
    if (!before(number, next_)) return;
    Record& r = record(number);
    if (ack.held >> i & 1) {
      r.there = true;
      --above;
    } else if (!r.there && !r.again && above >= kLaterOnes) {
      resend(number);
    }
  }
}

// ---- time -----------------------------------------------------------------------------------------------------------

nanoseconds Sender::service(nanoseconds now) {
  if (!wants_service()) return kForever;
  if (timer_.count() == 0) timer_ = now + round_trip_.timeout(expired_);
  note_waiting(now);
  const bool sent = std::exchange(seen_, next_) != next_;
  if (sent && timed_at_.count() == 0 && oldest_ != next_ && !record(next_ - 1).again) {
    timed_ = next_ - 1;
    timed_at_ = now;
  }
  if (now >= next_service()) expire(now);
  return state_ == State::open ? next_service() : kForever;
}

// The other side is silent only as long as somebody asks it.
void Sender::note_waiting(nanoseconds now) {
  if (waiting_since_.count() == 0) {
    waiting_since_ = now;
    patience_ = settings_.give_up;
  } else {
    waiting_since_ += std::max(now - served_at_ - kLongestAbsence, nanoseconds(0));
  }
  served_at_ = now;
}

// Where very many share the cores an answer takes very long, and whoever sends it is no less alive.
bool Sender::is_silent(nanoseconds now) {
  if (now - waiting_since_ < patience_) return false;
  patience_ = std::chrono::duration_cast<nanoseconds>(settings_.give_up * settings_.crowding());
  return now - waiting_since_ >= patience_;
}

void Sender::expire(nanoseconds now) {
  // What a port that has been closed did not acknowledge it did not want, or its last word was lost.
  if (under_->port_closed()) return close();
  if (expired_ >= 1 && !under_->peer_listening()) {
    has_died_ = !under_->port_closed();
    return close();
  }
  if (is_silent(now)) return give_up(now - waiting_since_);
  std::uint32_t again = 0;
  for (std::uint32_t n = oldest_; n != next_ && again < kAgainAtOnce; ++n) {
    if (record(n).there) continue;
    record(n).again = false;
    resend(n);
    ++again;
    impatient_ = true;
  }
  if (oldest_ == next_) send_bare(true);  // it is credit that we wait for: ask
  ++expired_;
  timer_ = now + round_trip_.timeout(expired_);
}

void Sender::resend(std::uint32_t number) {
  Record& r = record(number);
  if (r.again) return;
  // Its answer could be that to the first time: no measurement.
  if (timed_at_.count() != 0 && !before(timed_, number)) timed_at_ = nanoseconds(0);
  const std::size_t header = fits_beside(r.header) ? kWireMost + r.header : kWireMost;
  const std::size_t length = r.length + (fits_beside(r.header) ? 0 : r.header);
  const bool fits = length <= kLeastFrame || length <= under_->max_frame(header);
  if (fits ? transmit(r, number) : transmit_parts(r, number)) {
    r.again = true;
    count(counters_.resent);
  }
}

// The transport carries less in a frame than when this one was cut: it goes in pieces. Only the oldest does; the others
// wait until they are, so that the receiver need keep no pieces.
bool Sender::transmit_parts(const Record& r, std::uint32_t number) {
  if (number != oldest_) return false;
  WireHeader wire;
  wire.payload = r.payload;
  wire.stream = stream_;
  wire.number = number;
  wire.part = true;
  std::size_t offset = 0;
  do {
    const std::size_t header = offset == 0 ? r.header : 0;
    const std::size_t room = max_frame(header);
    const std::size_t length = std::min<std::size_t>(room, r.length - offset);
    wire.offset = static_cast<std::uint32_t>(offset);
    wire.header = static_cast<std::uint8_t>(header);
    wire.header_in_data = !fits_beside(header);
    wire.last = offset + length == r.length;
    if (offset != 0) wire.payload = Payload::more;
    const std::byte* from = offset == 0 ? r.bytes : r.bytes + r.header + offset;
    if (!emit(wire, crc32c(from, header + length), {from, header + length})) return offset != 0;
    offset += length;
  } while (offset < r.length);
  return true;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Sender::close() {
  state_ = State::closed;
  drop_records();
}

void Sender::give_up(nanoseconds silent) {
  std::size_t bytes = 0;
  for (std::uint32_t n = oldest_; n != next_; ++n) bytes += record(n).length;
  sentence_ = fmt::format(
      "{}, port {}, has acknowledged nothing for {} and is given up, which loses {} with {} of data to it; "
      "ULFM_GIVE_UP sets the time",
      under_->peer().text(), to_, seconds_text(silent), counted(unacknowledged(), "frame"), counted(bytes, "byte"));
  state_ = State::given_up;
  count(counters_.given_up);
  drop_records();
}

void Sender::drop_records() {
  for (; oldest_ != next_; ++oldest_) {
    const Record& r = record(oldest_);
    ring_.give_back(r.bytes, r.header + r.length);
  }
  blocked_ = false;
}

std::string Sender::take_sentence() { return std::exchange(sentence_, {}); }

}  // namespace ulfm::reliable
