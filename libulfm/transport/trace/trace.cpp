#include "transport/trace/trace.hpp"

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

void note(Kind kind, trace::Way way, const char* transport, pid_t peer, std::size_t bytes) {
  trace::note({name_of(kind), trace::Channel::data, way, transport, static_cast<std::uint32_t>(peer), bytes});
}

class TracedOutlet final : public Outlet {
 public:
  TracedOutlet(std::unique_ptr<Outlet> under, const char* name) : under_(std::move(under)), name_(name) {}

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    if (!under_->push(kind, header, data, length)) return false;
    note(kind, trace::Way::sent, name_, under_->peer_pid(), header.size() + length);
    return true;
  }
  std::size_t max_frame(std::size_t header) const override { return under_->max_frame(header); }
  bool peer_listening() const override { return under_->peer_listening(); }
  bool port_closed() const override { return under_->port_closed(); }
  pid_t peer_pid() const override { return under_->peer_pid(); }
  bool bye() override {
    if (!under_->bye()) return false;
    note(Kind::bye, trace::Way::sent, name_, under_->peer_pid(), 0);
    return true;
  }

 private:
  std::unique_ptr<Outlet> under_;
  const char* name_;
};

class TracedInlet final : public Inlet {
 public:
  TracedInlet(std::unique_ptr<Inlet> under, const char* name) : under_(std::move(under)), name_(name) {}

  bool next(Frame& frame) override {
    if (!under_->next(frame)) return false;
    if (frame.origin >= pids_.size()) pids_.resize(frame.origin + 1);
    if (frame.fresh || pids_[frame.origin] == 0) pids_[frame.origin] = under_->origin(frame.origin).pid;
    note(frame.kind, trace::Way::arrived, name_, pids_[frame.origin], frame.header_length + frame.length);
    return true;
  }
  bool linger(std::uint32_t turns) override { return under_->linger(turns); }
  void release(const Frame& frame) override { under_->release(frame); }
  bool in_shared_room(const Frame& frame) const override { return under_->in_shared_room(frame); }
  OriginInfo origin(std::uint32_t index) const override { return under_->origin(index); }
  void forget(std::uint32_t index) override { under_->forget(index); }
  bool anything() override { return under_->anything(); }
  Doorbell& doorbell() override { return under_->doorbell(); }
  std::int64_t find_dead() override { return under_->find_dead(); }
  std::int64_t take_broken() override { return under_->take_broken(); }
  std::string why_broken() override { return under_->why_broken(); }
  std::chrono::nanoseconds quiet_for() override { return under_->quiet_for(); }
  bool take_given_up(Error& error) override { return under_->take_given_up(error); }
  const PortGeometry& geometry() const override { return under_->geometry(); }
  std::uint64_t lanes_granted() const override { return under_->lanes_granted(); }

 private:
  std::unique_ptr<Inlet> under_;
  const char* name_;
  std::vector<pid_t> pids_;  // of origins
};

}  // namespace

Result<std::unique_ptr<Inlet>> TraceTransport::open(std::uint16_t number, const PortGeometry& geometry) {
  auto inlet = under_->open(number, geometry);
  if (!inlet) return inlet;
  return std::make_unique<TracedInlet>(std::move(*inlet), name_);
}

Result<std::unique_ptr<Outlet>> TraceTransport::connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                                        std::span<const std::byte> hello, PortCounters& counters) {
  auto outlet = under_->connect(card, to, from, hello, counters);
  if (!outlet) return outlet;
  return std::make_unique<TracedOutlet>(std::move(*outlet), name_);
}

}  // namespace ulfm
