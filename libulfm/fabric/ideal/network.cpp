#include "fabric/ideal/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "fabric/kit/heap.hpp"
#include "fabric/kit/shelf.hpp"

namespace ulfm::fabric::ideal {

Result<void> check(const Parameters& p) {
  const std::uint32_t most = std::max({p.latency, p.overhead, p.gap, p.byte});
  if (most > kMostCycles)
    return fail(Errc::invalid, fmt::format("each of L, o, g and G has at most {} cycles, not {}", kMostCycles, most));
  if (p.latency == 0)
    return fail(Errc::invalid, "a message needs at least a cycle for its way: raise latency to 1 or more");
  if (std::max(p.overhead, p.gap) == 0)
    return fail(Errc::invalid, "a node that sends needs time between messages: raise overhead or gap to 1 or more");
  return {};
}

/// Nodes | messages | heap behind it.
struct IdealHeader {
  std::uint64_t magic;
  std::uint32_t nodes, frames;
  Parameters parameters;
  std::uint64_t now, taken, ended, ended_bytes;
  std::uint32_t inside;
};
struct IdealNode {
  std::uint64_t free_at;  ///< may begin with its next message
  std::uint64_t busy, waited, bytes;
};
struct IdealMessage {
  std::uint64_t begun, end;
  std::uint32_t from, to, bytes;
  std::uint32_t used;
};

namespace {

constexpr std::uint64_t kMagic = 0x6c61'6564'692d'5048;
constexpr std::uint32_t kMost = 1u << 24;

struct IdealPlaces {
  std::size_t nodes, messages, heap, end;
  IdealPlaces(std::uint32_t node_count, std::uint32_t frames) {
    Shelf shelf;
    shelf.put<IdealHeader>(1);
    nodes = shelf.put<IdealNode>(node_count);
    messages = shelf.put<IdealMessage>(frames);
    heap = shelf.put<std::uint32_t>(frames);
    end = shelf.end();
  }
};

}  // namespace

std::size_t Network::bytes(std::uint32_t nodes, std::uint32_t frames) { return IdealPlaces(nodes, frames).end; }

Network::Network(void* memory, std::uint32_t nodes, std::uint32_t frames, const Parameters& parameters)
    : p_(parameters), nodes_(nodes), frames_(frames) {
  const IdealPlaces at(nodes, frames);
  auto* const base = static_cast<std::byte*>(memory);
  header_ = reinterpret_cast<IdealHeader*>(base);
  node_ = reinterpret_cast<IdealNode*>(base + at.nodes);
  message_ = reinterpret_cast<IdealMessage*>(base + at.messages);
  heap_ = reinterpret_cast<std::uint32_t*>(base + at.heap);
}

Result<Network> Network::create(void* memory, std::uint32_t nodes, std::uint32_t frames, const Parameters& parameters) {
  if (auto ok = check(parameters); !ok) return fail(std::move(ok.error()));
  if (nodes < 1 || nodes > kMost || frames < 1 || frames > kMost)
    return fail(Errc::invalid,
                fmt::format("a network has 1 to {} nodes and frames, not {} and {}", kMost, nodes, frames));
  Network network(memory, nodes, frames, parameters);
  *network.header_ = {kMagic, nodes, frames, parameters, 1, 0, 0, 0, 0};
  return network;
}

Result<Network> Network::attach(void* memory, std::size_t bytes) {
  if (bytes < sizeof(IdealHeader))
    return fail(Errc::protocol, fmt::format("a network needs more than {} bytes of memory", bytes));
  IdealHeader header;
  std::memcpy(&header, memory, sizeof header);
  const bool sound = header.magic == kMagic && header.nodes >= 1 && header.nodes <= kMost && header.frames >= 1 &&
                     header.frames <= kMost && check(header.parameters) &&
                     Network::bytes(header.nodes, header.frames) <= bytes;
  if (!sound) return fail(Errc::protocol, "the memory does not hold an ideal network");
  return Network(memory, header.nodes, header.frames, header.parameters);
}

bool Network::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
  if (frame >= frames_ || from >= nodes_ || to >= nodes_ || from == to || bytes > kMostBytes ||
      message_[frame].used != 0 || header_->inside >= frames_)
    return false;
  IdealNode& node = node_[from];
  const std::uint64_t begun = std::max(header_->now, node.free_at);
  message_[frame] = {begun, begun + transit(p_, bytes) - 1, from, to, bytes, 1};
  node.free_at = begun + spacing(p_, bytes);
  node.busy += spacing(p_, bytes);
  node.waited += begun - header_->now;
  node.bytes += bytes;
  ++header_->taken;
  push(frame);
  return true;
}

std::size_t Network::run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until) {
  std::size_t n = 0;
  while (n < endings.size() && n < budget && header_->inside != 0) {
    const std::uint32_t first = heap_[0] < frames_ ? heap_[0] : 0;
    if (message_[first].end >= until) break;
    const FrameId frame = pop();
    IdealMessage& message = message_[frame];
    message.used = 0;
    header_->now = std::max(header_->now, message.end + 1);
    ++header_->ended;
    header_->ended_bytes += message.bytes;
    endings[n++] = {frame, message.to < nodes_ ? message.to : 0, message.end, true, message.begun};
  }
  const bool reached = header_->inside == 0 || message_[heap_[0] < frames_ ? heap_[0] : 0].end >= until;
  // Not behind an ending that is about to be reported: what it causes may enter before that cycle.
  if (until != kNever && reached && n < endings.size()) header_->now = std::max(header_->now, until);
  return n;
}

std::uint32_t Network::inside() const noexcept { return std::min(header_->inside, frames_); }
std::uint64_t Network::now() const noexcept { return header_->now; }
std::uint64_t Network::ended() const noexcept { return header_->ended; }
std::uint64_t Network::ended_bytes() const noexcept { return header_->ended_bytes; }
std::uint64_t Network::taken() const noexcept { return header_->taken; }
std::uint64_t Network::busy(std::uint32_t node) const noexcept { return node < nodes_ ? node_[node].busy : 0; }
std::uint64_t Network::waited(std::uint32_t node) const noexcept { return node < nodes_ ? node_[node].waited : 0; }
std::uint64_t Network::sent_bytes(std::uint32_t node) const noexcept { return node < nodes_ ? node_[node].bytes : 0; }

// The heap. What others may have written into it leads to no message that is not there.

bool Network::earlier(std::uint32_t a, std::uint32_t b) const noexcept {
  // Not by their names: in virtual time these are free slots, and which those are is the host's affair.
  const IdealMessage &one = message_[a < frames_ ? a : 0], &other = message_[b < frames_ ? b : 0];
  return std::tie(one.end, one.from, one.begun, a) < std::tie(other.end, other.from, other.begun, b);
}

void Network::put_in_heap(std::uint32_t size, std::uint32_t hole, std::uint32_t frame) noexcept {
  fill_hole(
      size, hole, frame, [this](std::uint32_t i) { return heap_[i]; },
      [this](std::uint32_t i, std::uint32_t moved) { heap_[i] = moved; },
      [this](std::uint32_t a, std::uint32_t b) { return earlier(a, b); });
}

void Network::push(std::uint32_t frame) noexcept {
  const std::uint32_t hole = header_->inside++;
  put_in_heap(hole + 1, hole, frame);
}

std::uint32_t Network::pop() noexcept {
  const std::uint32_t first = heap_[0] < frames_ ? heap_[0] : 0, size = inside() - 1;
  header_->inside = size;
  put_in_heap(size, 0, heap_[size]);
  return first;
}

}  // namespace ulfm::fabric::ideal
