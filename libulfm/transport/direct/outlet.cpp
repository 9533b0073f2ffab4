#include "transport/direct/outlet.hpp"

#include <unistd.h>

#include <fmt/core.h>

#include "base/align.hpp"
#include "base/claim.hpp"
#include "base/counted.hpp"
#include "base/detour.hpp"
#include "job/liveness.hpp"

namespace ulfm::direct {
namespace {

// Bytes of a lane that have memory from the start: what a conversation uses, and small enough for a cache.
constexpr std::size_t kFirstWindow = 32 * 1024;
// Where cores are shared: a full ring costs its sender a turn of the core, and a lane its pages, as much as many turns.
constexpr std::uint32_t kTimesFull = 32;

std::string process(const DirectCard& card) { return fmt::format("process {}", card.pid); }

// What is mapped of a port at first: with the usual sizes its ring, the controls of lanes, and records of some senders.
constexpr std::size_t kFirstView = 24 * kPage;

template <typename T>
bool read_at(int fd, std::size_t offset, T& value) {
  return pread(fd, &value, sizeof value, static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof value);
}

// The beginning of the segment of a port, up to the records of senders, mapped with its pages. `geometry` gets what the
// header says once and for all: it could say something else when it is read again.
Result<Segment> map_port(const DirectCard& to, std::uint16_t port, int fd, const Opener& opener,
                         PortGeometry& geometry) {
  auto segment = opener.open(to, fd, port_segment(port), kFirstView);
  if (!segment) return segment;
  segment->prefault(0, kPage);
  const auto* header = segment->at<PortHeader>(0);
  if (segment->size() < sizeof(PortHeader) || header->magic != kMagic || header->version != kVersion ||
      header->token != to.token || header->number != port)
    return fail(Errc::stale, fmt::format("port {} of {} has just been closed", port, process(to)));
  geometry = header->geometry;
  if (!is_sane(geometry) || segment->whole_size() < Layout(geometry).end)
    return fail(Errc::protocol, fmt::format("port {} of {} has impossible sizes", port, process(to)));
  const Layout at(geometry);
  auto all = at.peers <= segment->size() ? std::move(segment) : segment->view(at.peers);
  if (all) all->prefault(at.slots, std::min(at.peers - at.slots, kMostPrefault));
  return all;
}

}  // namespace

Result<Segment> Opener::open(const DirectCard& of, int fd, std::uint32_t what, std::size_t most) const {
  if (control_ != nullptr) {
    auto passed = control_->fetch(encode(of), what);
    if (passed) return Segment::adopt(passed->release(), most);
    if (passed.error().code != Errc::unavailable) return fail(std::move(passed.error()).within(process(of)));
  }
  return Segment::attach(of.pid, fd, most);
}

// An entry names the descriptor of a port only while it is odd. It lies in one line and is read from its beginning; a
// descriptor that is no longer that port's is found out by the header of its segment.
Result<int> Opener::look_up(const DirectCard& of, std::uint16_t port) const {
  auto passed = control_ != nullptr ? control_->fetch(encode(of), kDirectory) : Result<control::Fd>(control::Fd());
  if (!passed && passed.error().code != Errc::unavailable) return fail(std::move(passed.error()).within(process(of)));
  auto fd = passed && *passed ? Result<int>(passed->release()) : Segment::open_of(of.pid, of.fd);
  if (!fd) return fail(fd.error());
  DirectoryHead head{};
  EntryCopy entry{};
  const bool has_head = read_at(*fd, 0, head);
  const bool has_port =
      port < kPortsPerProcess && read_at(*fd, offsetof(Directory, entry) + port * sizeof(DirectoryEntry), entry);
  Segment::close_of(*fd);
  if (!has_head || head.magic != kMagic || head.version != kVersion || head.token != of.token)
    return fail(Errc::peer_failed, fmt::format("{} is not the one whose address this is (it has ended and its pid was "
                                               "given to another, or it runs another version)",
                                               process(of)));
  if (!has_port || head.ports != kPortsPerProcess)
    return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", port, kPortsPerProcess - 1));
  if (entry.generation % 2 == 0)
    return fail(Errc::not_found, fmt::format("port {} of {} is not open", port, process(of)));
  return entry.fd;
}

Result<std::unique_ptr<DirectOutlet>> DirectOutlet::connect(const DirectCard& to, std::uint16_t port,
                                                            const DirectCard& from, std::uint16_t from_port,
                                                            std::span<const std::byte> hello, PortCounters& counters,
                                                            const Opener& opener) {
  auto fd = opener.look_up(to, port);
  if (!fd) return fail(fd.error());
  PortGeometry geometry;
  auto segment = map_port(to, port, *fd, opener, geometry);
  if (!segment) return fail(segment.error());
  std::unique_ptr<DirectOutlet> outlet(new DirectOutlet(std::move(*segment), geometry, to, counters));
  if (auto ok = outlet->introduce(from, from_port, hello); !ok) return fail(ok.error());
  return outlet;
}

const Segment& DirectOutlet::view_of(std::uint32_t record) const {
  const bool near = layout_.peers + (std::size_t{record} + 1) * sizeof(PeerRecord) <= segment_.size();
  return near ? segment_ : record_view_;
}

Result<void> DirectOutlet::map_record(std::uint32_t index) {
  if (view_of(index)) return {};
  auto all = segment_.view(layout_.lanes);
  if (!all) return fail(all.error());
  record_view_ = std::move(*all);
  return {};
}

Result<std::uint32_t> DirectOutlet::claim_record() {
  PortHeader& h = header();
  auto index = claim_place(
      {h.peers_used, h.peers_freed}, geometry_.peers,
      [&](std::uint32_t i) {
        if (!map_record(i)) return false;
        std::atomic<std::uint32_t>& state = peer_record(view_of(i).base(), layout_, i).state;
        std::uint32_t expected = state.load(std::memory_order_relaxed);
        const bool orphaned = peer_state(expected) == PeerState::claimed && !is_alive(peer_claimer(expected), 0);
        if (!orphaned && peer_state(expected) != PeerState::free) return false;
        // Acquire pairs with DirectInlet::forget: the old record has been read.
        return state.compare_exchange_strong(expected, peer_word(PeerState::claimed, getpid()),
                                             std::memory_order_acquire);
      },
      [&](std::uint32_t i) {
        auto mapped = map_record(i);
        if (!mapped) return mapped;
        return view_of(i).commit(layout_.peers + i * sizeof(PeerRecord), sizeof(PeerRecord));
      });
  if (!index) return fail(index.error());
  if (*index < 0)
    return fail(Errc::full, fmt::format("{} knows {} already; raise ULFM_PEERS there", process(peer_),
                                        counted(geometry_.peers, "sender")));
  return static_cast<std::uint32_t>(*index);
}

Result<void> DirectOutlet::introduce(const DirectCard& from, std::uint16_t from_port,
                                     std::span<const std::byte> hello) {
  if (hello.size() > kHelloLimit)
    return fail(Errc::too_large, fmt::format("hello of {} bytes; at most {}", hello.size(), kHelloLimit));
  auto index = claim_record();
  if (!index) return fail(index.error());
  origin_ = *index;
  PeerRecord& record = this->record();
  ++record.generation;
  record.card = from;
  record.port = from_port;
  record.hello_length = static_cast<std::uint16_t>(hello.size());
  if (!hello.empty()) std::memcpy(record.hello, hello.data(), hello.size());
  record.state.store(peer_word(PeerState::ready), std::memory_order_release);  // pairs with DirectInlet::adopt
  introduced_ = true;
  return {};
}

DirectOutlet::~DirectOutlet() {
  std::uint32_t refused = peer_word(PeerState::refused);
  if (introduced_)
    record().state.compare_exchange_strong(refused, peer_word(PeerState::left),
                                           std::memory_order_release);  // pairs with DirectInlet::settle
}

// When nothing has come since the last frame went out, more of them may follow. On the way of every message, without a
// call.
[[gnu::always_inline]] inline void DirectOutlet::sent_in_lane() {
  counters_.lane_frames.add();
  header().doorbell.ring();
  const std::uint64_t received = counters_.received_messages.get();
  if (std::exchange(received_, received) == received) lane_.own_ahead();
}

bool DirectOutlet::push(Kind kind, std::span<const std::byte> head, Gather& data, std::size_t length) {
  if (!has_lane_ || detour_ || !lane_.push_small(kind, origin_, head.data(), head.size(), data, length)) [[unlikely]]
    return push_any(kind, head, data, length);
  sent_in_lane();
  return true;
}

[[gnu::noinline]] bool DirectOutlet::push_any(Kind kind, std::span<const std::byte> head, Gather& data,
                                              std::size_t length) {
  if (!has_lane_ || (detour_ && !return_to_lane())) return push_open(kind, head, data, length);
  if (exchange_) {
    const bool is_long = length >= kLeastExchanged;
    if (is_long && push_exchanged(kind, head, data, length)) return true;
    if (exchange_->may_be_made()) announce_exchange(is_long);
  }
  if (!lane_.push(kind, origin_, head.data(), head.size(), data, length)) return push_full(kind, head, data, length);
  sent_in_lane();
  return true;
}

// Data into memory that this process has read last. False: there is none now.
bool DirectOutlet::push_exchanged(Kind kind, std::span<const std::byte> head, Gather& data, std::size_t length) {
  if (head.size() > kInline || !lane_.has_cell()) return false;
  const std::int32_t slot = exchange_->take(length);
  if (slot < 0) return false;
  data.copy(exchange_->slot(static_cast<std::uint32_t>(slot)), length);
  lane_.push_elsewhere(kind, origin_, head.data(), head.size(), static_cast<std::uint32_t>(slot), length);
  counters_.exchanged_frames.add();
  sent_in_lane();
  return true;
}

void DirectOutlet::announce_exchange(bool is_long) {
  // Where cores are shared, what counts is whose turn it is, not where a line lies.
  if (!is_long && geometry_.lane_when_full != 0) return;
  ExchangeNotice notice;
  if (exchange_->wants_notice(notice, is_long) && push_in_lane(kCellExchange, {}, &notice, sizeof notice))
    exchange_->announced();
}

// The lane had no room for it.
bool DirectOutlet::push_full(Kind kind, std::span<const std::byte> head, Gather& data, std::size_t length) {
  if (extend_lane()) return push(kind, head, data, length);
  // The next try goes by the open ring, with a frame cut to its size.
  if (may_detour()) detour_ = true;
  counters_.full.add();
  return false;
}

// The lane is full although the receiver has taken everything in it: it holds on to something. Going on by the open
// ring keeps the order. The load pairs with DirectInlet's store of what it has taken.
bool DirectOutlet::may_detour() {
  return may_go_round(lane_control(segment_.base(), layout_, lane_number_).pinned, lane_);
}

// Back into the lane when it has room: announced in the open ring, behind what went there, and marked in the lane,
// where the receiver may look first.
bool DirectOutlet::return_to_lane() {
  detour_ = !ulfm::return_to_lane(lane_, origin_, [&] { return announce(lane_number_); });
  return !detour_;
}

bool DirectOutlet::announce(std::uint32_t lane) {
  const iovec piece{&lane, sizeof lane};
  Gather data(std::span(&piece, 1));
  return open_.push(kCellLane, origin_, nullptr, 0, data, sizeof lane);
}

bool DirectOutlet::push_in_lane(Kind kind, std::span<const std::byte> header, const void* bytes, std::size_t length) {
  if (!has_lane_ && may_claim_) claim_lane();
  if (!has_lane_ || detour_) return false;
  const iovec piece{const_cast<void*>(bytes), length};
  Gather data(std::span(&piece, 1));
  if (!lane_.push(kind, origin_, header.data(), header.size(), data, length)) return false;
  sent_in_lane();
  return true;
}

bool DirectOutlet::push_open(Kind kind, std::span<const std::byte> head, Gather& data, std::size_t length) {
  // The lane is announced in the open ring: while that is full, a claim is in vain.
  const bool wants_lane = geometry_.lane_when_full == 0 || (times_full_ >= kTimesFull && open_.has_room());
  if (!has_lane_ && open_frames_ >= geometry_.lane_after && wants_lane && may_claim_) {
    claim_lane();
    // The frame was cut for the open ring, which any lane can carry too.
    if (has_lane_) return push(kind, head, data, length);
  }
  if (!open_.push(kind, origin_, head.data(), head.size(), data, length)) {
    counters_.full.add();
    ++times_full_;
    return false;
  }
  ++open_frames_;
  counters_.open_frames.add();
  header().doorbell.ring();
  return true;
}

Result<std::int64_t> DirectOutlet::claim_lane_number() {
  PortHeader& h = header();
  return claim_place(
      {h.lanes_used, h.lanes_freed}, geometry_.lanes,
      [&](std::uint32_t i) {
        std::uint32_t expected = 0;
        // Acquire pairs with DirectInlet::drop_lane: the lane is empty.
        return lane_control(segment_.base(), layout_, i)
            .owner.compare_exchange_strong(expected, origin_ + 1, std::memory_order_acquire);
      },
      [](std::uint32_t) { return Result<void>{}; });  // claim_lane() commits what the lane begins with
}

// Takes a lane and says so in the open ring, behind everything sent there. From then on only the lane is used, so
// the order is kept. Without a free lane, room or memory the open ring goes on.
void DirectOutlet::claim_lane() {
  auto number = claim_lane_number();
  if (!number || *number < 0) {
    may_claim_ = false;
    return;
  }
  const auto lane = static_cast<std::uint32_t>(*number);
  const auto give_back = [&] {
    lane_control(segment_.base(), layout_, lane).owner.store(0, std::memory_order_release);
    header().lanes_freed.fetch_add(1, std::memory_order_release);
  };
  const std::size_t cells = std::size_t{geometry_.lane_cells} * sizeof(Cell);
  const std::size_t usable = std::min<std::size_t>(kFirstWindow, geometry_.lane_bytes);
  const std::size_t start = layout_.lanes + lane * layout_.lane_size;
  // A process without address space for it does without a lane.
  auto view = segment_.view(start + layout_.lane_size);
  if (!view || !view->commit(start, cells + usable)) {
    may_claim_ = false;
    return give_back();
  }
  if (!announce(lane)) return give_back();  // full: try next time
  lane_view_ = std::move(*view);
  LaneControl& control = lane_control(segment_.base(), layout_, lane);
  lane_ = LaneProducer(lane_memory(lane_view_.base() + start, control, geometry_), usable);
  if (exchange_) lane_.use_common(exchange_->common());
  lane_number_ = lane;
  has_lane_ = true;
  counters_.lanes_opened.add();
}

// More memory for the byte ring, when that is what a frame waits for. Without memory the lane stays as large as it is.
bool DirectOutlet::extend_lane() {
  const std::size_t wanted = lane_.wanted();
  if (wanted == 0) return false;
  const std::size_t bytes =
      layout_.lanes + lane_number_ * layout_.lane_size + std::size_t{geometry_.lane_cells} * sizeof(Cell);
  if (!lane_view_.commit(bytes, wanted)) return false;
  lane_.grant(wanted);
  return true;
}

std::size_t DirectOutlet::max_frame(std::size_t head) const {
  if (!has_lane_ || detour_) return open_memory(segment_.base(), geometry_, layout_).room(head);
  return geometry_.max_frame;
}

bool DirectOutlet::port_closed() const { return header().closed.load(std::memory_order_acquire) != 0 || cut_off(); }

// Nothing is read behind this load: it says that what was sent may not have been taken.
bool DirectOutlet::cut_off() const {
  return record().state.load(std::memory_order_relaxed) == peer_word(PeerState::refused);
}

bool DirectOutlet::peer_listening() const {
  // Acquire pairs with the close: what the peer sent before it closed is visible to whoever sees it closed.
  return !port_closed() && is_alive(peer_.pid, peer_.started);
}

bool DirectOutlet::bye() {
  Gather none;
  return push(Kind::bye, {}, none, 0);
}

}  // namespace ulfm::direct
