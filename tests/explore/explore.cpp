// The protocols in shared memory, explored: open ring, lane, doorbell, claims. What is explored is the code of the
// library itself, compiled with atomics that ask the explorer what to read and who goes next.
//
//   ulfm_explore [PREEMPTIONS STALE_READS]
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <set>
#include <span>
#include <string>
#include <type_traits>

#include "base/copy.hpp"
#include "base/error.hpp"
#include "base/frame.hpp"
#include "model.hpp"

namespace std {
template <typename T>
using explored_atomic = explore::Atomic<T>;
inline void explored_thread_fence(memory_order order) { explore::Explorer::active->fence(order); }
}  // namespace std

namespace {

using explore::Explorer;

// Who sleeps on a futex. A sleep has no end of its own here, so that a lost wake-up is found.
std::set<std::size_t> g_asleep;

template <typename Address, typename... Others>
long explored_syscall([[maybe_unused]] long number, Address at, long what, long value = 0, Others...) {
  Explorer* const explorer = Explorer::active;
  if (explorer == nullptr) return 0;  // before main(): registration for barriers
  if constexpr (!std::is_pointer_v<Address>) {
    (void)at, (void)what, (void)value;
    explorer->barrier();
  } else if constexpr (!requires { at->fetch_add(0, std::memory_order_relaxed); }) {
    std::abort();  // futex_waitv: no protocol explored here sleeps on two words
  } else if (what == FUTEX_WAKE) {
    g_asleep.clear();
  } else if (static_cast<long>(at->fetch_add(0, std::memory_order_relaxed)) == value) {  // the kernel reads the newest
    g_asleep.insert(explorer->current());
    while (g_asleep.contains(explorer->current())) explorer->wait();
  }
  return 0;
}

}  // namespace

namespace ulfm {
/// Copies into shared memory, watched for races: by cache line.
inline void explored_copy_bytes(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  if (n == 0) return;
  explore::Explorer::active->wrote(to);
  copy_bytes(to, from, n);
}
}  // namespace ulfm

#define atomic explored_atomic
#define atomic_thread_fence explored_thread_fence
#define syscall explored_syscall
#define copy_bytes explored_copy_bytes
#include "base/claim.hpp"
#include "base/detour.hpp"
#include "base/doorbell.cpp"
#include "base/doorbell.hpp"
#include "base/ring.hpp"
#undef atomic
#undef atomic_thread_fence
#undef syscall
#undef copy_bytes

namespace {

using namespace ulfm;

struct alignas(64) Memory {
  std::byte bytes[4096];
};

/// A frame of that number from `origin`; its bytes say both.
bool send(auto& ring, std::uint32_t origin, std::uint32_t number, std::size_t size) {
  std::vector<std::byte> bytes(size, static_cast<std::byte>(origin * 16 + number));
  const iovec piece{bytes.data(), size};
  Gather data(std::span(&piece, 1));
  return ring.push(Kind::first, origin, nullptr, 0, data, size);
}

/// What a receiver has seen: each origin's frames in order, whole.
struct Received {
  std::map<std::uint32_t, std::uint32_t> next;
  std::uint32_t all = 0;

  void take(const Frame& frame, std::size_t size) {
    Explorer& explorer = *Explorer::active;
    explorer.reads(frame.data);
    const auto wanted = static_cast<std::byte>(frame.origin * 16 + next[frame.origin]++);
    if (frame.length != size) return explorer.violation("a frame of another length");
    for (std::size_t i = 0; i < size; ++i)
      if (frame.data[i] != wanted) return explorer.violation("a frame of another sender, or out of order");
    ++all;
  }
};

struct OpenRing {
  OpenRing() : memory(std::make_unique<Memory>()) {
    std::memset(memory->bytes, 0, sizeof memory->bytes);
    layout = {memory->bytes, &tail, 2, 256};
    OpenConsumer::initialise(layout);
    producer = OpenProducer(layout);
    consumer = OpenConsumer(layout);
  }
  explore::Atomic<std::uint64_t> tail{0};
  std::unique_ptr<Memory> memory;
  OpenMemory layout;
  OpenProducer producer;
  OpenConsumer consumer;
  Received received;
};

void send_all(OpenRing& ring, std::uint32_t origin, std::uint32_t frames, std::size_t size) {
  for (std::uint32_t i = 0; i < frames; ++i)
    while (!send(ring.producer, origin, i, size)) Explorer::active->wait();
}

void receive_all(OpenRing& ring, std::uint32_t frames, std::size_t size) {
  while (ring.received.all < frames) {
    Frame frame;
    const Peek peek = ring.consumer.next(frame);
    if (peek == Peek::broken) return Explorer::active->violation("what was sent well is nonsense");
    if (peek == Peek::nothing) {
      Explorer::active->wait();
      continue;
    }
    if (frame.kind != kCellSkip) ring.received.take(frame, size);
    ring.consumer.release(frame);
  }
}

struct Case {
  const char* name;
  std::function<void(Explorer&)> setup;
  std::function<void(Explorer&)> check;
};

std::unique_ptr<OpenRing> g_ring;

void expect(Explorer& explorer, std::uint32_t got, std::uint32_t wanted) {
  if (got != wanted)
    explorer.violation("everybody waits: " + std::to_string(got) + " of " + std::to_string(wanted) + " frames came");
}

// Two senders, two slots: they are full, and go round.
Case open_ring(std::size_t size) {
  return {size <= kInline ? "open ring, frames in cells" : "open ring, frames in slots",
          [size](Explorer& explorer) {
            g_ring = std::make_unique<OpenRing>();
            explorer.thread([size] { send_all(*g_ring, 0, 2, size); });
            explorer.thread([size] { send_all(*g_ring, 1, 2, size); });
            explorer.thread([size] { receive_all(*g_ring, 4, size); });
          },
          [](Explorer& explorer) { expect(explorer, g_ring->received.all, 4); }};
}

bool g_dead;

// A sender ends between its claim and its frame; the receiver learns of the end and skips the claim.
Case dead_claim() {
  return {"open ring, a claimer that dies",
          [](Explorer& explorer) {
            g_ring = std::make_unique<OpenRing>();
            g_dead = false;
            explorer.thread([] {
              std::uint64_t position = 0;
              while (!g_ring->producer.claim(7, position)) Explorer::active->wait();
              g_dead = true;
            });
            explorer.thread([] { send_all(*g_ring, 1, 3, 20); });
            explorer.thread([] {
              while (g_ring->received.all < 3) {
                Frame frame;
                const Peek peek = g_ring->consumer.next(frame);
                if (peek == Peek::frame) {
                  if (frame.kind != kCellSkip) g_ring->received.take(frame, 20);
                  g_ring->consumer.release(frame);
                  continue;
                }
                std::uint32_t stuck = 0;
                if (g_dead) Explorer::active->saw_end_of(1);
                if (g_dead && g_ring->consumer.stuck_on(stuck)) {
                  if (stuck == 7) g_ring->consumer.skip_claim(stuck);
                  else Explorer::active->wait();
                } else {
                  Explorer::active->wait();
                }
              }
            });
          },
          [](Explorer& explorer) { expect(explorer, g_ring->received.all, 3); }};
}

// The receiver sees a sender's end and asks whether something of it is left, while another one's claim is pending.
Case death_behind_a_claim() {
  return {"open ring, a death behind a pending claim",
          [](Explorer& explorer) {
            g_ring = std::make_unique<OpenRing>();
            g_dead = false;
            explorer.thread([] {
              send_all(*g_ring, 0, 1, 20);
              g_dead = true;
            });
            explorer.thread([] { send_all(*g_ring, 1, 1, 20); });
            explorer.thread([] {
              bool told = false;
              while (g_ring->received.all < 2 || !told) {
                Frame frame;
                if (g_ring->consumer.next(frame) == Peek::frame) {
                  if (told && frame.origin == 0) Explorer::active->violation("a frame of one who was said to be dead");
                  g_ring->received.take(frame, 20);
                  g_ring->consumer.release(frame);
                  continue;
                }
                if (g_dead && !told) {
                  Explorer::active->saw_end_of(1);
                  if (!g_ring->consumer.has_frames_of(0)) {
                    told = true;
                    continue;
                  }
                }
                Explorer::active->wait();
              }
            });
          },
          [](Explorer& explorer) { expect(explorer, g_ring->received.all, 2); }};
}

struct Lane {
  Lane() : memory(std::make_unique<Memory>()) {
    std::memset(memory->bytes, 0, sizeof memory->bytes);
    layout = {reinterpret_cast<Cell*>(memory->bytes), memory->bytes + 1024, &consumed, 4, 512};
    producer = LaneProducer(layout);
    consumer = LaneConsumer(layout);
  }
  explore::Atomic<std::uint64_t> consumed{0};
  Doorbell bell;
  std::unique_ptr<Memory> memory;
  LaneMemory layout;
  LaneProducer producer;
  LaneConsumer consumer;
  Received received;
};
std::unique_ptr<Lane> g_lane;

void lane_sends(std::uint32_t frames, std::size_t size, bool rings) {
  for (std::uint32_t i = 0; i < frames; ++i) {
    while (!send(g_lane->producer, 3, i, size)) Explorer::active->wait();
    if (rings) g_lane->bell.ring();
  }
}

// Until so many have come in all.
void receive(Lane& lane, std::uint32_t frames, std::size_t size) {
  while (lane.received.all < frames) {
    Frame frame;
    const Peek peek = lane.consumer.next(frame);
    if (peek == Peek::broken) return Explorer::active->violation("what was sent well is nonsense");
    if (peek == Peek::nothing) {
      lane.consumer.publish();
      Explorer::active->wait();
      continue;
    }
    lane.received.take(frame, size);
    lane.consumer.release(frame);
  }
}

// The same, of 8 bytes, by a receiver that sleeps.
void receive_asleep(Lane& lane, std::uint32_t frames) {
  while (lane.received.all < frames) {
    Frame frame;
    if (lane.consumer.next(frame) == Peek::frame) {
      lane.received.take(frame, 8);
      lane.consumer.release(frame);
      continue;
    }
    lane.bell.arm();
    if (lane.consumer.ready()) lane.bell.cancel();
    else (void)lane.bell.sleep(std::chrono::seconds(1));
  }
}

// One sender; more frames than cells, or more bytes than the byte ring has, so that both go round.
Case lane(std::size_t size, bool weaker = false) {
  return {weaker            ? "lane, cells given back without release"
          : size <= kInline ? "lane, frames in cells"
                            : "lane, frames in the byte ring",
          [size, weaker](Explorer& explorer) {
            g_lane = std::make_unique<Lane>();
            if (weaker) explorer.weaken(&g_lane->consumed, sizeof g_lane->consumed);
            explorer.thread([size] { lane_sends(6, size, false); });
            explorer.thread([size] { receive(*g_lane, 6, size); });
          },
          [](Explorer& explorer) { expect(explorer, g_lane->received.all, 6); }};
}

// Two processes with a lane each way and a common cell.
struct Talk {
  Talk() : memory(std::make_unique<Memory>()), commons{CommonCell(true), CommonCell(false)} {
    std::memset(memory->bytes, 0, sizeof memory->bytes);
    for (int i = 0; i < 2; ++i) {
      lanes[i].producer.use_common(commons[i]);
      lanes[1 - i].consumer.use_common(commons[i], 3);
      commons[i].open(reinterpret_cast<Cell*>(memory->bytes));
    }
  }
  std::unique_ptr<Memory> memory;
  CommonCell commons[2];
  Lane lanes[2];
};
std::unique_ptr<Talk> g_talk;

void send_in_talk(int from, std::uint32_t number, std::size_t size) {
  while (!send(g_talk->lanes[from].producer, 3, number, size)) Explorer::active->wait();
}

// Question and answer, with a second question on the way: in the cell, beside it, and in the ring.
Case talk(std::size_t size, bool weaker = false) {
  return {weaker            ? "a common cell that is read without acquire"
          : size <= kInline ? "a common cell, frames in it"
                            : "a common cell, frames beside it",
          [size, weaker](Explorer& explorer) {
            g_talk = std::make_unique<Talk>();
            if (weaker) explorer.weaken(g_talk->memory.get(), sizeof(Memory));
            explorer.thread([size] {
              send_in_talk(0, 0, size);
              receive(g_talk->lanes[1], 1, size);
              send_in_talk(0, 1, size);
              send_in_talk(0, 2, size);
              receive(g_talk->lanes[1], 2, size);
            });
            explorer.thread([size] {
              for (std::uint32_t i = 0; i < 2; ++i) {
                receive(g_talk->lanes[0], i + 1, size);
                send_in_talk(1, i, size);
              }
              receive(g_talk->lanes[0], 3, size);
            });
          },
          [](Explorer& explorer) {
            expect(explorer, g_talk->lanes[0].received.all, 3);
            expect(explorer, g_talk->lanes[1].received.all, 2);
            if (g_talk->commons[0].turns() < 2) explorer.violation("the cell was not used, so this shows nothing");
          }};
}

// One process asks in one thread and sleeps for the answer in another; the other process answers in the same cell.
Case sleeping_talk() {
  return {"a common cell, asked in one thread and awaited in another",
          [](Explorer& explorer) {
            g_talk = std::make_unique<Talk>();
            g_asleep.clear();
            explorer.thread([] { send_in_talk(0, 0, 8); });
            explorer.thread([] {
              receive(g_talk->lanes[0], 1, 8);
              send_in_talk(1, 0, 8);
              g_talk->lanes[1].bell.ring();
            });
            explorer.thread([] { receive_asleep(g_talk->lanes[1], 1); });
          },
          [](Explorer& explorer) { expect(explorer, g_talk->lanes[1].received.all, 1); }};
}

// A lane and the open ring beside it. The receiver holds the first frame until it has seen some more, so that the lane
// stops; the sender goes round by the open ring, and comes back.
struct Road {
  OpenRing open;
  Lane lane;
  explore::Atomic<std::uint64_t> pinned{0};
  bool round = false;
  std::uint32_t times_round = 0;
  LaneTurns turns;
};
std::unique_ptr<Road> g_road;
enum class Weaker { nothing, cells, slots, no_mark };

bool send_on_road(std::uint32_t number, bool marks) {
  Road& road = *g_road;
  const auto announce = [&] {
    Gather none;
    return road.open.producer.push(kCellLane, 3, nullptr, 0, none, 0);
  };
  if (road.round && marks) road.round = !return_to_lane(road.lane.producer, 3, announce);
  else if (road.round && road.lane.producer.relieved()) road.round = false;
  if (road.round) return send(road.open.producer, 3, number, 20);
  if (send(road.lane.producer, 3, number, 20)) return true;
  if (may_go_round(road.pinned, road.lane.producer)) road.round = true, ++road.times_round;
  return false;
}

// One look as DirectInlet::next has it: the lane first. True when something was there.
bool look_on_road(Frame& frame, bool& of_lane, bool holds) {
  Road& road = *g_road;
  while (road.turns.is_read()) {
    const Peek peek = road.lane.consumer.next(frame);
    if (peek == Peek::nothing) {
      road.lane.consumer.publish();
      if (holds) pin_lane(road.pinned, road.lane.consumer);
      break;
    }
    of_lane = true;
    if (frame.kind != kCellLane) return true;
    road.turns.marked();
    road.lane.consumer.release(frame);
    road.lane.consumer.publish();
  }
  of_lane = false;
  if (road.open.consumer.next(frame) != Peek::frame) return false;
  if (frame.kind == kCellLane) road.turns.returned();
  else road.turns.went_round();
  return true;
}

void receive_on_road(std::uint32_t frames, std::uint32_t held_until) {
  Road& road = *g_road;
  Frame held{}, frame;
  bool holds = false, of_lane = false;
  while (road.lane.received.all < frames) {
    if (holds && road.lane.received.all >= held_until) {
      Explorer::active->reads(held.data);
      road.lane.consumer.release(held);
      if (!road.turns.is_read()) road.lane.consumer.publish();
      holds = false;
    }
    if (!look_on_road(frame, of_lane, holds)) {
      Explorer::active->wait();
      continue;
    }
    if (frame.kind != kCellLane) road.lane.received.take(frame, 20);
    if (of_lane && road.lane.received.all == 1) held = frame, holds = true;
    else if (of_lane) road.lane.consumer.release(frame);
    else road.open.consumer.release(frame);
  }
}

Case lane_with_return(Weaker weaker) {
  static const std::map<Weaker, const char*> names{
      {Weaker::nothing, "lane with pin and return"},
      {Weaker::cells, "lane with pin and return, cells published without release"},
      {Weaker::slots, "lane with pin and return, slots of the open ring without release"},
      {Weaker::no_mark, "lane with pin and return, without mark and announcement"}};
  return {names.at(weaker),
          [weaker](Explorer& explorer) {
            g_road = std::make_unique<Road>();
            Road& road = *g_road;
            if (weaker == Weaker::cells) explorer.weaken(road.lane.memory.get(), sizeof(Memory));
            if (weaker == Weaker::slots) explorer.weaken(road.open.memory.get(), sizeof(Memory));
            explorer.thread([weaker] {
              for (std::uint32_t i = 0; i < 8; ++i)
                while (!send_on_road(i, weaker != Weaker::no_mark)) Explorer::active->wait();
            });
            explorer.thread([] { receive_on_road(8, 5); });
          },
          [](Explorer& explorer) {
            expect(explorer, g_road->lane.received.all, 8);
            if (g_road->times_round == 0) explorer.violation("the sender did not go round, so this shows nothing");
          }};
}

// A receiver that sleeps. With a barrier of its own, or with senders that fence.
Case doorbell(bool fenced) {
  return {fenced ? "doorbell, senders that fence" : "doorbell, a process-wide barrier",
          [fenced](Explorer& explorer) {
            g_lane = std::make_unique<Lane>();
            g_asleep.clear();
            if (fenced) g_lane->bell.expect_many_sleeps();
            explorer.thread([] { lane_sends(2, 8, true); });
            explorer.thread([] { receive_asleep(*g_lane, 2); });
          },
          [](Explorer& explorer) { expect(explorer, g_lane->received.all, 2); }};
}

struct Places {
  explore::Atomic<std::uint32_t> used{0}, freed{0}, taken[2];
  int content[2] = {};
  int got = 0;
};
std::unique_ptr<Places> g_places;

// Three want one of two places; each is given back once, and what its user wrote is there for the next.
Case claims() {
  return {"places claimed and given back",
          [](Explorer& explorer) {
            g_places = std::make_unique<Places>();
            for (int t = 0; t < 3; ++t)
              explorer.thread([] {
                Places& p = *g_places;
                for (;;) {
                  const auto place = claim_place(
                      {p.used, p.freed}, 2,
                      [&](std::uint32_t i) {
                        std::uint32_t free = 0;
                        return p.taken[i].compare_exchange_strong(free, 1, std::memory_order_acquire);
                      },
                      [](std::uint32_t) { return Result<void>{}; });
                  if (*place < 0) {
                    Explorer::active->wait();
                    continue;
                  }
                  Explorer::active->wrote(&p.content[*place]);
                  ++p.got;
                  p.taken[*place].store(0, std::memory_order_release);
                  p.freed.fetch_add(1, std::memory_order_release);
                  return;
                }
              });
          },
          [](Explorer& explorer) { expect(explorer, static_cast<std::uint32_t>(g_places->got), 3); }};
}

// The explorer itself: it must find these.
explore::Atomic<std::uint32_t>*g_x, *g_y;
std::uint32_t g_seen[2];

Case message_passing(std::memory_order order) {
  return {order == std::memory_order_release ? "message passing" : "message passing without release",
          [order](Explorer& explorer) {
            static std::unique_ptr<explore::Atomic<std::uint32_t>> flag;
            static int data;
            flag = std::make_unique<explore::Atomic<std::uint32_t>>(0u);
            explorer.thread([order] {
              Explorer::active->wrote(&data);
              flag->store(1, order);
            });
            explorer.thread([] {
              while (flag->load(std::memory_order_acquire) == 0) Explorer::active->wait();
              Explorer::active->reads(&data);
            });
          },
          [](Explorer&) {}};
}

Case store_buffering(bool fenced) {
  return {fenced ? "store buffering with fences" : "store buffering",
          [fenced](Explorer& explorer) {
            static std::unique_ptr<explore::Atomic<std::uint32_t>> x, y;
            x = std::make_unique<explore::Atomic<std::uint32_t>>(0u);
            y = std::make_unique<explore::Atomic<std::uint32_t>>(0u);
            g_x = x.get(), g_y = y.get();
            for (int t = 0; t < 2; ++t)
              explorer.thread([t, fenced] {
                (t == 0 ? g_x : g_y)->store(1, std::memory_order_relaxed);
                if (fenced) Explorer::active->fence(std::memory_order_seq_cst);
                g_seen[t] = (t == 0 ? g_y : g_x)->load(std::memory_order_relaxed);
              });
          },
          [](Explorer& explorer) {
            if (g_seen[0] == 0 && g_seen[1] == 0) explorer.violation("neither saw the other");
          }};
}

explore::Limits g_limits;

bool run(const Case& one, bool should_fail = false) {
  Explorer explorer(g_limits);
  const explore::Outcome outcome = explorer.explore(one.setup, one.check);
  const bool good = outcome.violation.empty() != should_fail;
  std::printf("%s  %s: %llu interleavings, %llu steps%s%s%s\n", good ? "ok  " : "FAIL", one.name,
              static_cast<unsigned long long>(outcome.runs), static_cast<unsigned long long>(outcome.steps),
              outcome.complete || should_fail ? "" : " (not all: the limit of runs)",
              outcome.violation.empty() ? ""
              : should_fail             ? ", found: "
                                        : ": ",
              outcome.violation.c_str());
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    g_limits.preemptions = std::atoi(argv[1]);
    g_limits.stale_reads = std::atoi(argv[2]);
  }
  std::printf("at most %d preemptions and %d stale reads in a run\n", g_limits.preemptions, g_limits.stale_reads);
  bool good = run(message_passing(std::memory_order_release));
  good &= run(message_passing(std::memory_order_relaxed), true);
  good &= run(store_buffering(true));
  good &= run(store_buffering(false), true);
  for (const std::size_t size : {std::size_t{20}, std::size_t{100}}) good &= run(open_ring(size));
  good &= run(dead_claim());
  good &= run(death_behind_a_claim());
  for (const std::size_t size : {std::size_t{20}, std::size_t{200}}) good &= run(lane(size));
  good &= run(lane(20, true), true);
  for (const std::size_t size : {std::size_t{20}, std::size_t{100}}) good &= run(talk(size));
  good &= run(talk(100, true), true);
  good &= run(sleeping_talk());
  good &= run(lane_with_return(Weaker::nothing));
  for (const Weaker weaker : {Weaker::cells, Weaker::slots, Weaker::no_mark})
    good &= run(lane_with_return(weaker), true);
  good &= run(doorbell(false));
  good &= run(doorbell(true));
  good &= run(claims());
  std::puts(good ? "no violation" : "VIOLATIONS");
  return good ? 0 : 1;
}
