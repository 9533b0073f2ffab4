#include "transport/emulated/transport.hpp"

#include <mutex>

#include "transport/emulated/card.hpp"
#include "transport/emulated/inlet.hpp"
#include "transport/emulated/outlet.hpp"

namespace ulfm::emulated {
namespace {

class EmulatedTransport final : public Transport {
 public:
  explicit EmulatedTransport(std::unique_ptr<fabric::Engine> engine)
      : engine_(std::move(engine)),
        card_(encode(Card{engine_->arena().header().token, engine_->self(),
                          engine_->arena().endpoint(engine_->self()).token})) {}

  const std::string& card() const override { return card_; }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const PortGeometry&) override {
    if (number >= kPortsPerProcess)
      return fail(Errc::invalid, "port " + std::to_string(number) + ": there are ports 0 to " +
                                     std::to_string(kPortsPerProcess - 1));
    std::lock_guard lock(mutex_);
    fabric::Arena& arena = engine_->arena();
    if (arena.endpoint(engine_->self()).generation[number].load(std::memory_order_relaxed) % 2 == 1)
      return fail(Errc::busy, "port " + std::to_string(number) + " is open already");
    if (auto ok = arena.commit_box(engine_->self(), number); !ok) return fail(ok.error());
    return std::make_unique<EmulatedInlet>(*engine_, number);
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    auto peer = decode(control::identity_of(card));
    if (!peer) return fail(peer.error());
    auto outlet = EmulatedOutlet::connect(*engine_, *peer, to, from, hello, counters);
    if (!outlet) return fail(outlet.error());
    return std::unique_ptr<Outlet>(std::move(*outlet));
  }

  std::string shared_statistics() override { return engine_->statistics(); }

 private:
  std::unique_ptr<fabric::Engine> engine_;
  std::string card_;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Transport> on(std::unique_ptr<fabric::Engine> engine) {
  return std::make_unique<EmulatedTransport>(std::move(engine));
}

Result<std::unique_ptr<Transport>> make(const char* model) {
  auto engine = fabric::Engine::join();
  if (!engine) return fail(engine.error());
  const std::string_view found((*engine)->arena().header().model);
  if (found != model)
    return fail(Errc::invalid, "this job was set up for the interconnect " + std::string(found) + ", not for " + model +
                                   "; ulfmrun --transport sets both");
  return on(std::move(*engine));
}

}  // namespace ulfm::emulated
