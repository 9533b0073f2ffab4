#include "transport/fault/fault.hpp"

#include <algorithm>
#include <array>

#include "transport/fault/fate.hpp"
#include "transport/fault/outlet.hpp"

namespace ulfm {
namespace fault {
namespace {

/// The receiving side is the transport's own. Whoever polls it also moves the frames that the port's outlets hold.
class FaultInlet final : public ForwardingInlet {
 public:
  FaultInlet(std::unique_ptr<Inlet> under, std::shared_ptr<PortOutlets> outlets)
      : ForwardingInlet(std::move(under)), outlets_(std::move(outlets)) {}

  bool next(Frame& frame) override {
    if (under_->next(frame)) return true;
    outlets_->pump();
    return false;
  }
  std::chrono::nanoseconds next_deadline() override {
    return std::min(under_->next_deadline(), outlets_->next_deadline());
  }

 private:
  std::shared_ptr<PortOutlets> outlets_;
};

}  // namespace
}  // namespace fault

struct FaultTransport::Shared {
  Shared(const FaultPlan& p, Clock& c) : plan(p), clock(c) {
    for (auto& port : ports) port = std::make_shared<fault::PortOutlets>(clock);
  }
  const std::shared_ptr<fault::PortOutlets>& port(std::uint16_t number) {
    return ports[std::min<std::size_t>(number, kPortsPerProcess)];
  }
  FaultPlan plan;
  Clock& clock;
  FaultCounters counters;
  std::array<std::shared_ptr<fault::PortOutlets>, kPortsPerProcess + 1> ports;  // the last: senders without a port
};

FaultTransport::FaultTransport(std::unique_ptr<Transport> under, const FaultPlan& plan, int rank, Clock& clock)
    : ForwardingTransport(std::move(under)), shared_(std::make_shared<Shared>(plan, clock)), rank_(rank) {}

FaultTransport::~FaultTransport() = default;

Result<std::unique_ptr<Inlet>> FaultTransport::open(std::uint16_t number, const InletOptions& options) {
  auto inlet = under_->open(number, options);
  if (!inlet) return inlet;
  return std::unique_ptr<Inlet>(new fault::FaultInlet(std::move(*inlet), shared_->port(number)));
}

Result<std::unique_ptr<Outlet>> FaultTransport::connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                                        std::span<const std::byte> hello, PortCounters& counters) {
  auto outlet = under_->connect(card, to, from, hello, counters);
  if (!outlet) return outlet;
  const std::uint64_t ordinal = connections_.fetch_add(1, std::memory_order_relaxed);
  const fault::FateSource fates(shared_->plan, static_cast<std::uint64_t>(rank_), ordinal);
  // The counters live as long as the outlet, which may outlive the transport.
  return std::unique_ptr<Outlet>(new fault::FaultOutlet(std::move(*outlet), fates, shared_->plan,
                                                        std::shared_ptr<FaultCounters>(shared_, &shared_->counters),
                                                        shared_->port(from)));
}

std::unique_ptr<Multicast> FaultTransport::group(std::span<Outlet* const> outlets) {
  auto under = under_->group(outlets_below<fault::FaultOutlet>(outlets));
  if (!under) return nullptr;
  return std::make_unique<fault::FaultMulticast>(std::move(under), outlets);
}

std::vector<NamedCount> FaultTransport::counts() const {
  const FaultCounters& c = shared_->counters;
  std::vector<NamedCount> all = under_->counts();
  all.insert(all.end(), {{"frames past the faults", c.frames.load()},
                         {"dropped", c.dropped.load()},
                         {"corrupted", c.corrupted.load()},
                         {"duplicated", c.duplicated.load()},
                         {"reordered", c.reordered.load()},
                         {"delayed", c.delayed.load()}});
  return all;
}

const FaultCounters& FaultTransport::counters() const noexcept { return shared_->counters; }

}  // namespace ulfm
