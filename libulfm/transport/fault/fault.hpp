// The fault interceptor: a transport around any other that loses, damages, doubles, reorders and delays frames.
//
// It does so in the outlets, before the transport sees a frame. A fate is drawn for every frame from a generator of its
// own for each connection, seeded by the plan, the process's rank and the number of the connection, so that a run is
// repeated by the same seed. A frame without room keeps its fate until there is room. Goodbyes and the making of
// connections are left alone: they belong to the transport and not to the network.
#pragma once

#include "base/clock.hpp"
#include "base/fault_plan.hpp"
#include "transport/decorator.hpp"

namespace ulfm {

/// What has happened to frames so far. All threads; only shown, so any order will do.
struct FaultCounters {
  std::atomic<std::uint64_t> frames{0};      ///< taken from above
  std::atomic<std::uint64_t> dropped{0};     ///< gone without a trace
  std::atomic<std::uint64_t> corrupted{0};   ///< 1 to 4 bits turned
  std::atomic<std::uint64_t> duplicated{0};  ///< sent twice
  std::atomic<std::uint64_t> reordered{0};   ///< held back behind 1 to 8 later ones
  std::atomic<std::uint64_t> delayed{0};     ///< held back for the plan's time
  std::atomic<std::uint64_t> forwarded{0};   ///< given to the transport; frames + duplicated - dropped - those held now
};

class FaultTransport final : public ForwardingTransport {
 public:
  /// A frame held back goes on its way after this time even if nothing follows it.
  static constexpr std::chrono::nanoseconds kReorderLimit{1'000'000};

  FaultTransport(std::unique_ptr<Transport> under, const FaultPlan& plan, int rank, Clock& clock = Clock::steady());
  ~FaultTransport() override;

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override;
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override;
  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override;
  std::vector<NamedCount> counts() const override;

  const FaultCounters& counters() const noexcept;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  int rank_;
  std::atomic<std::uint64_t> connections_{0};  // a number for each, no more
};

}  // namespace ulfm
