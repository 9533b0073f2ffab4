// A proxy's port: what it says to its process besides frames.
#include "transport/proxy/proxy_port.hpp"

#include <catch2/catch.hpp>

#include "fake_network.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

bool eventually(const auto& what) {
  for (const auto until = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < until;) {
    if (what()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

/// What an outlet has been asked to send.
struct Said {
  std::atomic<bool> has_room{false};
  std::atomic<int> refused{0}, broken{0};
  std::atomic<std::uint32_t> origin{0};
};

class TightOutlet final : public Outlet {
 public:
  explicit TightOutlet(Said& said) : said_(said) {}
  bool push(Kind, std::span<const std::byte> header, Gather&, std::size_t) override {
    proxy::ProxyHead head;
    if (!said_.has_room.load()) return ++said_.refused, false;
    if (proxy::take(header, head) && head.what == proxy::ProxyCall::broken) {
      said_.origin = head.id;
      ++said_.broken;
    }
    return true;
  }
  std::size_t max_frame(std::size_t) const override { return 1000; }
  bool peer_listening() const override { return true; }
  bool port_closed() const override { return false; }
  ProcessId peer() const override { return {.number = 4711}; }
  bool bye() override { return true; }

 private:
  Said& said_;
};

}  // namespace

TEST_CASE("proxy: that a sender was cut off is said when there is room again", "[proxy]") {
  Said said;
  WaitPolicy policy;
  policy.spins = 1;
  policy.pauses = 0;
  policy.yield_for = 0ns;
  auto inlet = std::make_unique<test::FakeInlet>(std::make_shared<test::FakeNetwork>(), "fake:1", 3);
  inlet->broken = 5;
  const auto port = proxy::ProxyPort::begin(3, std::move(inlet), std::make_unique<TightOutlet>(said), policy).value();
  REQUIRE(eventually([&] { return said.refused.load() != 0; }));
  CHECK(said.broken.load() == 0);
  said.has_room = true;
  REQUIRE(eventually([&] { return said.broken.load() != 0; }));
  CHECK(said.origin.load() == 5);
  CHECK(said.broken.load() == 1);
}
