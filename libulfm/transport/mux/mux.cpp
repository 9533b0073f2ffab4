#include "transport/mux/mux.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/core.h>

#include "base/wait_word.hpp"
#include "job/launcher.hpp"
#include "transport/direct/direct.hpp"
#include "transport/hosts/settings.hpp"
#include "transport/mux/ringer.hpp"
#include "transport/ofi/ofi.hpp"
#include "transport/tcp/tcp.hpp"

namespace ulfm {

namespace mux {
namespace {

constexpr std::string_view kPrefix = "mux:";
// A check of any part but the first costs a system call. After so many that found nothing it gets only every eighth
// turn.
constexpr std::uint32_t kQuietAfter = 256, kQuietTurns = 8;
constexpr std::uint32_t kNearLooks = 16;  // to one look of the others in a wait
constexpr std::uint32_t kNearBurst = 32;  // frames of the first part while others may have some too

// The parts' cards, in their order. A card may end early: the last of these parts are not known then.
Result<std::vector<std::string_view>> split(std::string_view card) {
  card = card.substr(0, card.find('+'));
  if (!card.starts_with(kPrefix))
    return fail(Errc::protocol,
                fmt::format("\"{}\" is no address of a job on several hosts: both sides need ULFM_TRANSPORT=mux",
                            card.substr(0, 60)));
  card.remove_prefix(kPrefix.size());
  std::vector<std::string_view> cards;
  for (std::size_t at = 0; at != card.npos;) {
    at = card.find('&');
    cards.push_back(card.substr(0, at));
    if (at != card.npos) card.remove_prefix(at + 1);
  }
  return cards;
}

/// Sleeps on the first part's doorbell, which is rung for the others.
class MuxSource final : public WakeSource {
 public:
  MuxSource(std::shared_ptr<Ringer> ringer, const std::vector<std::unique_ptr<Inlet>>& parts)
      : ringer_(std::move(ringer)), near_(parts.front()->wake_source()) {
    for (std::size_t i = 1; i < parts.size(); ++i) {
      WakeSource& source = parts[i]->wake_source();
      far_.push_back({&source, ringer_->add(source.descriptor(), near_)});
    }
  }
  ~MuxSource() override {
    for (const Far& far : far_) ringer_->remove(far.number);
  }
  bool is_made() const noexcept {
    return std::all_of(far_.begin(), far_.end(), [](const Far& far) { return far.number != 0; });
  }

  void arm() noexcept override {
    near_.arm();
    for (const Far& far : far_) far.source->arm();
  }
  void cancel() noexcept override {
    cancel_far();
    near_.cancel();
  }
  bool sleep(std::chrono::nanoseconds limit) noexcept override { return sleep(limit, {}, {}); }
  bool sleep(std::chrono::nanoseconds limit, WaitWord other, const Look& look) override {
    arm_ringer();
    const bool came = near_.sleep(limit, other, look);
    cancel_far();
    return came;
  }
  WaitWord await() noexcept override {
    arm_ringer();
    return near_.await();
  }
  void expect_many_sleeps() noexcept override { near_.expect_many_sleeps(); }
  void watch() noexcept override {
    near_.watch();
    for (const Far& far : far_) far.source->watch();
  }
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept override {
    arm_ringer();
    return near_.watch_sleep(limit);
  }
  void end_watch() noexcept override {
    for (const Far& far : far_) far.source->end_watch();
    near_.end_watch();
  }
  void ring() noexcept override { near_.ring(); }

 private:
  struct Far {
    WakeSource* source;
    std::uint64_t number;  // the ringer's; 0: none
  };
  void cancel_far() noexcept {
    for (const Far& far : far_) far.source->cancel();
  }
  void arm_ringer() noexcept {
    for (const Far& far : far_) ringer_->arm(far.number);
  }

  std::shared_ptr<Ringer> ringer_;
  WakeSource& near_;
  std::vector<Far> far_;
};

/// Asks with the numbers that the origins of one part have above.
class PartPlaces final : public PlaceFinder {
 public:
  PartPlaces(PlaceFinder& finder, std::uint32_t bits, std::uint32_t part) : finder_(finder), bits_(bits), part_(part) {}
  std::span<std::byte> place_for(std::uint32_t origin) override { return finder_.place_for(origin << bits_ | part_); }

 private:
  PlaceFinder& finder_;
  std::uint32_t bits_, part_;
};

/// The low bits of an origin's number are the place of its part.
class MuxInlet final : public Inlet {
 public:
  MuxInlet(std::vector<std::unique_ptr<Inlet>> parts, std::shared_ptr<Ringer> ringer)
      : parts_(std::move(parts)),
        near_(*parts_.front()),
        bits_(static_cast<std::uint32_t>(std::bit_width(parts_.size() - 1))),
        quiet_(parts_.size()),
        source_(std::move(ringer), parts_) {}
  bool is_made() const noexcept { return source_.is_made(); }

  bool next(Frame& frame) override {
    if (next_near(frame)) return true;
    near_in_turn_ = 0;
    return next_far<&Inlet::next>(frame);
  }
  bool next_at_hand(Frame& frame) override { return next_near(frame) || next_far<&Inlet::next_at_hand>(frame); }
  bool spin(std::uint32_t turns) override {
    bool any_far = false;
    for (std::size_t i = 1; i < parts_.size(); ++i) any_far = any_far || quiet_[i].misses < kQuietAfter;
    if (!any_far) return near_.spin(turns);
    if (near_.spin(std::max(turns / kNearLooks, 1u))) return true;
    for (std::size_t i = 1; i < parts_.size(); ++i)
      if (quiet_[i].misses < kQuietAfter && parts_[i]->spin(1)) return true;
    return false;
  }
  bool look() override {
    if (near_.look()) return true;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      if (!is_due(quiet_[i]) || !parts_[i]->look()) continue;
      quiet_[i].misses = 0;  // so the next turn takes it
      return true;
    }
    return false;
  }
  void release(const Frame& frame) override {
    Frame own = frame;
    own.origin >>= bits_;
    part(frame.origin).release(own);
  }
  OriginInfo origin(std::uint32_t index) const override {
    const std::uint32_t at = index & ((1u << bits_) - 1);
    if (at >= parts_.size()) return {};
    OriginInfo info = parts_[at]->origin(index >> bits_);
    // A part that was not told the whole card, such as direct, has its own.
    if (info.process && !info.card.starts_with(kPrefix))
      info.card.insert(0, std::string(kPrefix) + std::string(at, '&'));
    return info;
  }
  void drop_origin(std::uint32_t index) override { part(index).drop_origin(index >> bits_); }
  bool has_frame() override {
    bool found = false;
    for (const auto& one : parts_) found |= one->has_frame();  // each makes itself ready for a sleep
    return found;
  }
  WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override {
    return first_of([](Inlet& one) { return one.find_dead(); });
  }
  std::int64_t take_broken() override {
    return first_of([](Inlet& one) { return one.take_broken(); });
  }
  std::string why_broken() override {
    std::string why;
    for (std::size_t i = 0; i < parts_.size() && why.empty(); ++i) why = parts_[i]->why_broken();
    return why;
  }
  std::chrono::nanoseconds next_deadline() override {
    std::chrono::nanoseconds least = kForever;
    for (const auto& one : parts_) least = std::min(least, one->next_deadline());
    return least;
  }
  bool take_given_up(Error& error) override {
    return std::any_of(parts_.begin(), parts_.end(), [&](const auto& one) { return one->take_given_up(error); });
  }
  std::size_t max_frame() const override {
    std::size_t most = 0;
    for (const auto& one : parts_) most = std::max(most, one->max_frame());
    return most;
  }
  void use_places(PlaceFinder& finder) override {
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      places_.push_back(std::make_unique<PartPlaces>(finder, bits_, i));
      parts_[i]->use_places(*places_.back());
    }
  }
  void use_counters(PortCounters& counters) override {
    for (const auto& one : parts_) one->use_counters(counters);
  }

 private:
  /// Of a part whose checks cost system calls.
  struct Quiet {
    std::uint32_t misses = 0, skipped = 0;
  };

  Inlet& part(std::uint32_t origin) { return *parts_[origin & ((1u << bits_) - 1)]; }

  bool next_near(Frame& frame) {
    if (near_in_turn_ == kNearBurst || !near_.next(frame)) return false;
    ++near_in_turn_;
    frame.origin <<= bits_;
    return true;
  }
  // Round robin over all parts but the first.
  template <bool (Inlet::*kNext)(Frame&)>
  bool next_far(Frame& frame) {
    for (std::size_t tries = 1; tries < parts_.size(); ++tries) {
      const std::size_t at = turn_;
      turn_ = at + 1 < parts_.size() ? at + 1 : 1;
      if (!is_due(quiet_[at]) || !(parts_[at].get()->*kNext)(frame)) continue;
      quiet_[at].misses = 0;
      frame.origin = frame.origin << bits_ | static_cast<std::uint32_t>(at);
      return true;
    }
    return false;
  }
  static bool is_due(Quiet& quiet) noexcept {
    if (quiet.misses >= kQuietAfter && ++quiet.skipped % kQuietTurns != 0) return false;
    ++quiet.misses;
    return true;
  }
  template <typename Ask>
  std::int64_t first_of(Ask ask) {
    for (std::size_t at = 0; at < parts_.size(); ++at)
      if (const std::int64_t found = ask(*parts_[at]); found >= 0)
        return found << bits_ | static_cast<std::int64_t>(at);
    return -1;
  }

  std::vector<std::unique_ptr<PlaceFinder>> places_;
  std::vector<std::unique_ptr<Inlet>> parts_;
  Inlet& near_;
  std::uint32_t bits_;
  std::vector<Quiet> quiet_;  // by part; of the first it is not used
  MuxSource source_;
  std::size_t turn_ = 1;
  std::uint32_t near_in_turn_ = 0;
};

class MuxTransport final : public Transport {
 public:
  MuxTransport(std::vector<std::unique_ptr<Transport>> parts, std::shared_ptr<Ringer> ringer)
      : parts_(std::move(parts)), ringer_(std::move(ringer)), card_(kPrefix) {
    for (const auto& one : parts_) card_ += (&one != &parts_.front() ? "&" : "") + one->card();
    for (const auto& one : parts_) one->use_card(card_);
  }

  const std::string& card() const override { return card_; }
  bool reachable(std::string_view card) const override {
    const auto cards = split(card);
    return cards && part_for(*cards) < parts_.size();
  }

  // The first part last: a process of this host may look as soon as that one is open.
  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override {
    std::vector<std::unique_ptr<Inlet>> inlets(parts_.size());
    for (std::size_t i = parts_.size(); i-- != 0;) {
      auto opened = parts_[i]->open(number, options);
      if (!opened) return opened;
      inlets[i] = std::move(*opened);
    }
    auto inlet = std::make_unique<MuxInlet>(std::move(inlets), ringer_);
    if (!inlet->is_made()) return fail_errno("waiting for several transports at once");
    return std::unique_ptr<Inlet>(std::move(inlet));
  }

  // When no part says that it reaches the process, the last one explains why.
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    const auto cards = split(card);
    if (!cards) return fail(cards.error());
    const std::size_t at = std::min(part_for(*cards), parts_.size() - 1);
    return parts_[at]->connect(card_at(*cards, at), to, from, hello, counters);
  }

  // The first part leaves outlets of the others to themselves.
  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override { return parts_.front()->group(outlets); }

  void use_control(control::Control& control) override { parts_.front()->use_control(control); }
  control::Fd descriptor(std::uint32_t what) override { return parts_.front()->descriptor(what); }
  std::vector<NamedCount> counts() const override {
    std::vector<NamedCount> all;
    for (const auto& one : parts_) {
      const std::vector<NamedCount> more = one->counts();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
  std::string shared_statistics() override {
    std::string all;
    for (const auto& one : parts_) all += one->shared_statistics();
    return all;
  }

 private:
  static std::string_view card_at(const std::vector<std::string_view>& cards, std::size_t at) {
    return at < cards.size() ? cards[at] : std::string_view();
  }
  // The first part that reaches that process; the number of parts when none does.
  std::size_t part_for(const std::vector<std::string_view>& cards) const {
    std::size_t at = 0;
    while (at < parts_.size() && !parts_[at]->reachable(card_at(cards, at))) ++at;
    return at;
  }

  std::vector<std::unique_ptr<Transport>> parts_;
  std::shared_ptr<Ringer> ringer_;
  std::string card_;
};

Result<std::unique_ptr<Transport>> make(const Config& config) {
  auto near = direct_transport.make(config);
  if (!near) return near;
  const auto settings = hosts::settings_from(config);
  if (!settings) return fail(settings.error());
  // A provider of libfabric is for those who ask for it (decision 0031).
  auto far = (settings->provider.empty() ? tcp_transport : ofi_transport).make(config);
  if (!far) return far;
  std::vector<std::unique_ptr<Transport>> parts;
  parts.push_back(std::move(*near));
  parts.push_back(std::move(*far));
  return make_mux(std::move(parts));
}

std::string why_unavailable() { return direct_transport.unavailable(); }

}  // namespace
}  // namespace mux

Result<std::unique_ptr<Transport>> make_mux(std::vector<std::unique_ptr<Transport>> parts) {
  auto ringer = Ringer::create();
  if (!ringer) return fail(ringer.error());
  return std::make_unique<mux::MuxTransport>(std::move(parts), std::move(*ringer));
}

bool spans_hosts() {
  const int here = number_from_launcher("MPI_LOCALNRANKS"), all = number_from_launcher("PMI_SIZE");
  if (here > 0) return all > here;
  return all > 1 && number_from_launcher("SLURM_STEP_NUM_NODES") > 1;  // srun --mpi=pmi2
}

const TransportDescriptor mux_transport{
    .name = "mux",
    .summary = "jobs on several hosts: direct within a host, tcp between them",
    .reliable = true,
    .ordered = true,
    .multicast = false,
    .multi_host = true,
    .max_frame = hosts::kLongestFrame,
    .latency_us = 0.2,
    .bandwidth_MBps = 10000,
    .config_rows =
        "SLOT DEPTH LANES LANE_CELLS LANE_BYTES LANE_AFTER EXCHANGE FRAME PEERS INTERFACE PORTS CONGESTION "
        "GIVE_UP",
    .takes_options = true,
    .links = false,
    .control = false,
    .nodes = [](int) { return std::vector<int>(); },
    .unavailable = mux::why_unavailable,
    .make = mux::make,
};

}  // namespace ulfm
