#include "transport/trace/trace.hpp"

#include <algorithm>

#include "base/trace.hpp"

namespace ulfm {
namespace {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::first: return "message";
    case Kind::more: return "more";
    case Kind::bye: return "bye";
    default: return "frame";
  }
}

// One direction of a connection between two ports.
struct TracedPath {
  ProcessId peer;
  std::uint16_t own_port = 0, peer_port = 0;
  std::uint64_t frames = 0;  // so far
};

void note(Kind kind, trace::Direction direction, const char* transport, TracedPath& way, std::size_t bytes,
          std::uint64_t at = 0) {
  trace::note({name_of(kind), trace::Channel::data, direction, transport, static_cast<std::uint32_t>(way.peer.number),
               bytes, way.own_port, way.peer_port, way.frames++, at});
}

class TracedOutlet final : public ForwardingOutlet {
 public:
  TracedOutlet(std::unique_ptr<Outlet> under, const char* name, std::uint16_t from, std::uint16_t to)
      : ForwardingOutlet(std::move(under)), name_(name), way_{under_->peer(), from, to} {}

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    const std::uint64_t began = trace::now();  // it may have arrived when push() returns
    if (!under_->push(kind, header, data, length)) return false;
    note(kind, trace::Direction::sent, name_, way_, header.size() + length, began);
    return true;
  }
  bool bye() override {
    const std::uint64_t began = trace::now();
    if (!under_->bye()) return false;
    note(Kind::bye, trace::Direction::sent, name_, way_, 0, began);
    return true;
  }

  /// A frame of a group that goes this way.
  void note_copy(Kind kind, std::size_t bytes, std::uint64_t began) {
    note(kind, trace::Direction::sent, name_, way_, bytes, began);
  }

 private:
  const char* name_;
  TracedPath way_;
};

class TracedMulticast final : public ForwardingMulticast {
 public:
  TracedMulticast(std::unique_ptr<Multicast> under, std::vector<TracedOutlet*> outlets)
      : ForwardingMulticast(std::move(under)), outlets_(std::move(outlets)) {}

  bool push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
            std::vector<std::uint32_t>& who) override {
    before_ = who;
    const std::uint64_t began = trace::now();
    if (!under_->push(kind, headers, data, length, who)) return false;
    for (const std::uint32_t member : before_)
      if (std::find(who.begin(), who.end(), member) == who.end())
        outlets_[member]->note_copy(kind, headers.length + length, began);
    return true;
  }

 private:
  std::vector<TracedOutlet*> outlets_;
  std::vector<std::uint32_t> before_;
};

class TracedInlet final : public ForwardingInlet {
 public:
  TracedInlet(std::unique_ptr<Inlet> under, const char* name, std::uint16_t number)
      : ForwardingInlet(std::move(under)), name_(name), number_(number) {}

  bool next(Frame& frame) override {
    if (!under_->next(frame)) return false;
    if (frame.origin >= ways_.size()) ways_.resize(frame.origin + 1);
    TracedPath& way = ways_[frame.origin];
    if (frame.fresh || !way.peer) {
      const OriginInfo origin = under_->origin(frame.origin);
      way = {origin.process, number_, origin.port};
    }
    note(frame.kind, trace::Direction::arrived, name_, way, frame.header_length + frame.length);
    return true;
  }

 private:
  const char* name_;
  const std::uint16_t number_;
  std::vector<TracedPath> ways_;  // by origin
};

}  // namespace

Result<std::unique_ptr<Inlet>> TraceTransport::open(std::uint16_t number, const InletOptions& options) {
  auto inlet = under_->open(number, options);
  if (!inlet) return inlet;
  return std::make_unique<TracedInlet>(std::move(*inlet), name_, number);
}

Result<std::unique_ptr<Outlet>> TraceTransport::connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                                        std::span<const std::byte> hello, PortCounters& counters) {
  auto outlet = under_->connect(card, to, from, hello, counters);
  if (!outlet) return outlet;
  return std::make_unique<TracedOutlet>(std::move(*outlet), name_, from, to);
}

std::unique_ptr<Multicast> TraceTransport::group(std::span<Outlet* const> outlets) {
  auto under = under_->group(outlets_below<TracedOutlet>(outlets));
  if (!under) return nullptr;
  std::vector<TracedOutlet*> traced;
  for (Outlet* outlet : outlets) traced.push_back(static_cast<TracedOutlet*>(outlet));
  return std::make_unique<TracedMulticast>(std::move(under), std::move(traced));
}

}  // namespace ulfm
