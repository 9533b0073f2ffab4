// The protocol over a network of the test's own making: whatever the network does, everything arrives once,
// in order and intact, and nothing that was taken is held for ever.
#include "fake_network.hpp"
#include "pattern.hpp"
#include "property.hpp"
#include "proto/reliable/reliable.hpp"
#include "transport/fault/fault.hpp"

using namespace ulfm;
using namespace ulfm::reliable;

namespace {

constexpr std::uint16_t kPort = 3;

/// One process: a transport with faults and the protocol around it, and a port.
struct Side {
  Side(std::shared_ptr<test::FakeNetwork> network, test::FakeClock& clock_, int number, const FaultPlan& plan,
       ReliableSettings settings)
      : clock(clock_) {
    auto faults =
        std::make_unique<FaultTransport>(std::make_unique<test::FakeTransport>(network, number), plan, number, clock);
    fault_counters = &faults->counters();
    settings.clock = &clock;
    settings.keepalive_every = 0ms;
    settings.first_stream = 0xfffffff0u + static_cast<std::uint32_t>(number) * 100;
    transport = std::make_unique<ReliableTransport>(std::move(faults), settings);
    inlet = transport->open(kPort, InletOptions{}).value();
  }
  ~Side() { clock.set_step(10ms); }  // after a failure nobody answers any more: to the end of all patience, quickly
  void connect(const Side& other) {
    static const char kHello[] = "hello";
    outlet =
        transport->connect(other.transport->card(), kPort, kPort, std::as_bytes(std::span(kHello)), counters).value();
  }

  test::FakeClock& clock;
  const FaultCounters* fault_counters = nullptr;
  PortCounters counters;
  std::unique_ptr<ReliableTransport> transport;
  std::unique_ptr<Inlet> inlet;
  std::unique_ptr<Outlet> outlet;
  std::uint32_t sent = 0, received = 0;
  std::uint32_t origin = ~0u;
  std::uint32_t got = 0, total = 0;  ///< of the frame that is arriving
  struct Held {
    Frame frame;
    std::uint32_t seed, offset;
  };
  std::vector<Held> held;
};

std::size_t size_of(std::uint32_t seed, std::size_t most) { return seed * 2654435761u % (most + 1); }
std::size_t header_of(std::uint32_t seed) { return 8 + seed * 40503u % 248; }

/// Number and length of a frame are in its header; the rest of header and data follow from the number.
std::vector<std::byte> make_header(std::uint32_t seed, std::uint32_t length) {
  std::vector<std::byte> header(header_of(seed));
  test::fill(header, seed + 77);
  std::memcpy(header.data(), &seed, sizeof seed);
  std::memcpy(header.data() + sizeof seed, &length, sizeof length);
  return header;
}

bool send_one(Side& from) {
  const std::uint32_t seed = from.sent;
  const auto length = static_cast<std::uint32_t>(size_of(seed, from.outlet->max_frame(header_of(seed))));
  const std::vector<std::byte> data = test::pattern_bytes(seed, length);
  const iovec piece{const_cast<std::byte*>(data.data()), data.size()};
  Gather gather(std::span(&piece, 1));
  if (!from.outlet->push(Kind::first, make_header(seed, length), gather, length)) {
    test::must(gather.remaining() == data.size(), "a refused frame has been taken from");
    return false;
  }
  ++from.sent;
  return true;
}

void check_data(const Frame& frame, std::uint32_t seed, std::uint32_t offset) {
  for (std::uint32_t i = 0; i < frame.length; ++i)
    test::must(frame.data[i] == test::pattern(seed, offset + i), "data were changed");
}

/// Takes a frame, or a piece of one, and holds it.
bool receive_one(Side& at) {
  Frame frame;
  if (!at.inlet->next(frame)) return false;
  test::must(frame.fresh == (at.origin == ~0u), "fresh is the first frame and no other");
  if (frame.fresh) {
    at.origin = frame.origin;
    test::must(at.inlet->origin(frame.origin).hello.size() == 6, "the hello arrives");
  }
  test::must(frame.origin == at.origin, "one connection is one origin");
  const bool whole = at.got == at.total;
  test::must(frame.kind == (whole ? Kind::first : Kind::more), "pieces follow a beginning");
  if (whole) {
    test::must(frame.header_length >= 8, "a header is too short");
    std::memcpy(&at.total, frame.header + 4, sizeof at.total);
    at.got = 0;
    const std::vector<std::byte> wanted = make_header(at.received, at.total);
    test::must(std::equal(wanted.begin(), wanted.end(), frame.header, frame.header + frame.header_length),
               "frame " + std::to_string(at.received) + " is next, another came");
  } else {
    test::must(frame.header_length == 0 && frame.length != 0, "a piece has data alone");
  }
  check_data(frame, at.received, at.got);
  at.held.push_back({frame, at.received, at.got});
  at.got += frame.length;
  test::must(at.got <= at.total, "more came than was sent");
  if (at.got == at.total) ++at.received;
  return true;
}

void release_some(Side& at, test::Draw& draw, bool all) {
  while (!at.held.empty() && (all || at.held.size() > 100 || draw.below(3) != 0)) {
    const std::size_t i = all ? 0 : draw.below(static_cast<std::uint32_t>(at.held.size()));
    check_data(at.held[i].frame, at.held[i].seed, at.held[i].offset);
    at.inlet->release(at.held[i].frame);
    at.held.erase(at.held.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

FaultPlan drawn_plan(test::Draw& draw) {
  const auto rate = [&] { return draw.one_in(2) ? draw.below(300) / 1000.0 : 0.0; };
  FaultPlan plan;
  plan.drop = rate();
  plan.corrupt = rate();
  plan.duplicate = rate();
  plan.reorder = rate();
  plan.delay = rate();
  plan.delay_by = std::chrono::microseconds(draw.below(3000));
  plan.seed = draw.any();
  return plan;
}

void check_balance(const Side& side) {
  const FaultCounters& c = *side.fault_counters;
  test::must(c.frames + c.duplicated == c.dropped + c.forwarded,
             "frames " + std::to_string(c.frames) + " + duplicated " + std::to_string(c.duplicated) + " = dropped " +
                 std::to_string(c.dropped) + " + forwarded " + std::to_string(c.forwarded));
}

void exchange(test::Draw& draw) {
  auto network = std::make_shared<test::FakeNetwork>();
  test::FakeClock clock(std::chrono::nanoseconds(1 + draw.below(20000)));
  network->room = 8 + draw.below(100);
  network->max_frame = 620 + draw.below(2000);
  network->shared_room = draw.one_in(2);
  const std::size_t most = network->max_frame;
  ReliableSettings settings;
  settings.window = 2 + draw.below(63);
  settings.promised = 1 + draw.below(200);
  settings.give_up = 1000s;
  const FaultPlan plan = drawn_plan(draw);
  {
    Side a(network, clock, 1, plan, settings), b(network, clock, 2, plan, settings);
    a.connect(b);
    b.connect(a);
    while (draw.more()) {
      Side& side = draw.one_in(2) ? a : b;
      switch (draw.below(4)) {
        case 0:
          for (std::uint32_t n = draw.below(20); n != 0 && send_one(side); --n) {
          }
          break;
        case 1:
          for (std::uint32_t n = draw.below(20); n != 0 && receive_one(side); --n) {
          }
          break;
        case 2: release_some(side, draw, false); break;
        default:
          clock.advance(std::chrono::microseconds(draw.below(5000)));
          network->max_frame = most - draw.below(250);
      }
    }
    // Now everybody reads: all of it comes, within 100 s, which are 500 time-outs of the longest back-off.
    for (int turns = 0; a.received != b.sent || b.received != a.sent; ++turns) {
      test::must(turns < 2'000'000, "what was sent has not arrived: " + std::to_string(a.received) + " of " +
                                        std::to_string(b.sent) + ", " + std::to_string(b.received) + " of " +
                                        std::to_string(a.sent));
      for (Side* side : {&a, &b}) {
        (void)receive_one(*side);
        release_some(*side, draw, true);
      }
      clock.advance(50us);
    }
    release_some(a, draw, true);
    release_some(b, draw, true);
    for (const Side* side : {&a, &b}) {
      const Counters& c = side->transport->counters();
      test::must(c.sent == side->sent && c.delivered >= side->received, "the protocol's counters");
    }
    for (int i = 0; i < 100; ++i) {  // and the last answers
      Frame frame;
      test::must(!a.inlet->next(frame) && !b.inlet->next(frame), "something arrived twice");
      clock.advance(300ms);
    }
    a.outlet.reset();
    b.outlet.reset();
    check_balance(a);
    check_balance(b);
  }
  test::must(network->ports.empty(), "ports are closed");
}

}  // namespace

TEST_CASE("over any bad network everything arrives once, in order and intact", "[reliable]") {
  test::property("bad network", exchange, 10);
}

// A push that found no room, and found some when it had taken the acknowledgements in: the frame had no timer.
TEST_CASE("a frame for which acknowledgements made room is sent again when it is lost", "[reliable]") {
  const std::vector<std::uint32_t> found{0, 0,          0,  0, 6, 0, 0,        99, 3, 3, 3,         63,
                                         0, 4244504445, 63, 0, 8, 0, 11906557, 8,  3, 0, 1925053821};
  test::Draw draw(found);
  CHECK_NOTHROW(exchange(draw));
}
