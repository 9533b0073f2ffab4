#include "transport/mux/mux.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "transport/direct/direct.hpp"
#include "transport/mux/ringer.hpp"
#include "transport/ofi/ofi.hpp"

namespace ulfm {

namespace mux {
namespace {

constexpr std::string_view kPrefix = "mux:";
// A look at the far transport costs a system call. After so many that found nothing it gets every eighth turn only.
constexpr std::uint32_t kQuietAfter = 256, kQuietTurns = 8;
constexpr std::uint32_t kNearBurst = 32;  // frames of the near one while the far one may have some too

struct Cards {
  std::string_view near, far;
};

Result<Cards> split(std::string_view card) {
  card = card.substr(0, card.find('+'));
  if (!card.starts_with(kPrefix))
    return fail(Errc::protocol, "\"" + std::string(card.substr(0, 60)) +
                                    "\" is no address of a job on several hosts: both sides need ULFM_TRANSPORT=mux");
  card.remove_prefix(kPrefix.size());
  const std::size_t at = card.find('&');
  return Cards{card.substr(0, at), at == card.npos ? std::string_view() : card.substr(at + 1)};
}

/// Sleeps on the near one's doorbell, which is rung for the far one.
class MuxSource final : public WakeSource {
 public:
  MuxSource(std::shared_ptr<Ringer> ringer, WakeSource& near, WakeSource& far)
      : ringer_(std::move(ringer)), near_(near), far_(far), number_(ringer_->add(far.descriptor(), near)) {}
  ~MuxSource() override { ringer_->remove(number_); }
  bool is_made() const noexcept { return number_ != 0; }

  void arm() noexcept override {
    near_.arm();
    far_.arm();
  }
  void cancel() noexcept override {
    far_.cancel();
    near_.cancel();
  }
  bool sleep(std::chrono::nanoseconds limit) noexcept override {
    ringer_->arm(number_);
    return near_.sleep(limit);
  }
  void expect_many_sleeps() noexcept override { near_.expect_many_sleeps(); }
  void watch() noexcept override {
    near_.watch();
    far_.watch();
  }
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept override {
    ringer_->arm(number_);
    return near_.watch_sleep(limit);
  }
  void end_watch() noexcept override {
    far_.end_watch();
    near_.end_watch();
  }
  void ring() noexcept override { near_.ring(); }

 private:
  std::shared_ptr<Ringer> ringer_;
  WakeSource& near_;
  WakeSource& far_;
  std::uint64_t number_;
};

/// Origins of the near one have even numbers, those of the far one odd ones.
class MuxInlet final : public Inlet {
 public:
  MuxInlet(std::unique_ptr<Inlet> near, std::unique_ptr<Inlet> far, std::shared_ptr<Ringer> ringer)
      : near_(std::move(near)),
        far_(std::move(far)),
        source_(std::move(ringer), near_->wake_source(), far_->wake_source()) {}
  bool is_made() const noexcept { return source_.is_made(); }

  bool next(Frame& frame) override {
    if (near_in_turn_ < kNearBurst && near_->next(frame)) {
      ++near_in_turn_;
      frame.origin *= 2;
      return true;
    }
    near_in_turn_ = 0;
    if (is_far_due() && far_->next(frame)) {
      far_misses_ = 0;
      frame.origin = 2 * frame.origin + 1;
      return true;
    }
    return false;
  }
  bool spin(std::uint32_t turns) override {
    if (far_misses_ < kQuietAfter) return near_->spin(turns / 4) || far_->spin(1);
    return near_->spin(turns);
  }
  void release(const Frame& frame) override {
    Frame own = frame;
    own.origin /= 2;
    of(frame.origin).release(own);
  }
  OriginInfo origin(std::uint32_t index) const override {
    if (index % 2 != 0) return far_->origin(index / 2);
    OriginInfo info = near_->origin(index / 2);
    if (info.process) info.card.insert(0, kPrefix);
    return info;
  }
  void drop_origin(std::uint32_t index) override { of(index).drop_origin(index / 2); }
  bool has_frame() override {
    const bool near = near_->has_frame();  // each makes itself ready for a sleep
    return far_->has_frame() || near;
  }
  WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override {
    return either(near_->find_dead(), [&] { return far_->find_dead(); });
  }
  std::int64_t take_broken() override {
    return either(near_->take_broken(), [&] { return far_->take_broken(); });
  }
  std::string why_broken() override {
    std::string why = near_->why_broken();
    return why.empty() ? far_->why_broken() : why;
  }
  std::chrono::nanoseconds next_deadline() override { return std::min(near_->next_deadline(), far_->next_deadline()); }
  bool take_given_up(Error& error) override { return near_->take_given_up(error) || far_->take_given_up(error); }
  std::size_t max_frame() const override { return std::max(near_->max_frame(), far_->max_frame()); }
  void use_counters(PortCounters& counters) override {
    near_->use_counters(counters);
    far_->use_counters(counters);
  }

 private:
  Inlet& of(std::uint32_t origin) { return origin % 2 == 0 ? *near_ : *far_; }
  bool is_far_due() noexcept {
    if (far_misses_ >= kQuietAfter && ++skipped_ % kQuietTurns != 0) return false;
    ++far_misses_;
    return true;
  }
  template <typename Far>
  static std::int64_t either(std::int64_t near, Far far) {
    if (near >= 0) return 2 * near;
    const std::int64_t found = far();
    return found >= 0 ? 2 * found + 1 : -1;
  }

  std::unique_ptr<Inlet> near_, far_;
  MuxSource source_;
  std::uint32_t near_in_turn_ = 0, far_misses_ = 0, skipped_ = 0;
};

class MuxTransport final : public Transport {
 public:
  MuxTransport(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far, std::shared_ptr<Ringer> ringer)
      : near_(std::move(near)),
        far_(std::move(far)),
        ringer_(std::move(ringer)),
        card_(std::string(kPrefix) + near_->card() + "&" + far_->card()) {
    far_->use_card(card_);
  }

  const std::string& card() const override { return card_; }
  bool reachable(std::string_view card) const override {
    const auto cards = split(card);
    return cards && (near_->reachable(cards->near) || far_->reachable(cards->far));
  }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override {
    auto far = far_->open(number, options);  // first: a process of this host may look as soon as the near one is open
    if (!far) return far;
    auto near = near_->open(number, options);
    if (!near) return near;
    auto inlet = std::make_unique<MuxInlet>(std::move(*near), std::move(*far), ringer_);
    if (!inlet->is_made()) return fail_errno("waiting for two transports at once");
    return std::unique_ptr<Inlet>(std::move(inlet));
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    const auto cards = split(card);
    if (!cards) return fail(cards.error());
    Transport& one = near_->reachable(cards->near) ? *near_ : *far_;
    return one.connect(&one == near_.get() ? cards->near : cards->far, to, from, hello, counters);
  }

  // The near one leaves those of the far one to themselves.
  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override { return near_->group(outlets); }

  void use_control(control::Control& control) override { near_->use_control(control); }
  control::Fd descriptor(std::uint32_t what) override { return near_->descriptor(what); }
  std::vector<NamedCount> counts() const override {
    std::vector<NamedCount> all = near_->counts();
    const std::vector<NamedCount> far = far_->counts();
    all.insert(all.end(), far.begin(), far.end());
    return all;
  }
  std::string shared_statistics() override { return near_->shared_statistics() + far_->shared_statistics(); }

 private:
  std::unique_ptr<Transport> near_, far_;
  std::shared_ptr<Ringer> ringer_;
  std::string card_;
};

Result<std::unique_ptr<Transport>> make(const Config& config) {
  auto near = direct_transport.make(config);
  if (!near) return near;
  auto far = ofi_transport.make(config);
  if (!far) return far;
  return make_mux(std::move(*near), std::move(*far));
}

std::string why_unavailable() {
  const std::string why = direct_transport.unavailable();
  return why.empty() ? ofi_transport.unavailable() : why;
}

// A number from the launcher, or -1.
int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  int number = -1;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace
}  // namespace mux

Result<std::unique_ptr<Transport>> make_mux(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far) {
  auto ringer = Ringer::create();
  if (!ringer) return fail(ringer.error());
  return std::make_unique<mux::MuxTransport>(std::move(near), std::move(far), std::move(*ringer));
}

bool spans_hosts() {
  const int here = mux::number_of("MPI_LOCALNRANKS"), all = mux::number_of("PMI_SIZE");
  if (here > 0) return all > here;
  return all > 1 && mux::number_of("SLURM_STEP_NUM_NODES") > 1;  // srun --mpi=pmi2
}

const TransportDescriptor mux_transport{
    .name = "mux",
    .summary = "jobs on several hosts: direct within a host, ofi between them",
    .reliable = true,
    .ordered = true,
    .multicast = false,
    .multi_host = true,
    .max_frame = 32 * 1024,
    .latency_us = 0.2,
    .bandwidth_MBps = 10000,
    .config_rows = "SLOT DEPTH LANES LANE_CELLS LANE_BYTES LANE_AFTER FRAME PEERS INTERFACE PORTS GIVE_UP",
    .takes_options = true,
    .links = false,
    .control = false,
    .nodes = [](int) { return std::vector<int>(); },
    .unavailable = mux::why_unavailable,
    .make = mux::make,
};

}  // namespace ulfm
