// Stress of every lock-free structure: lane, open ring, send queue, tag, doorbell. Between threads, where the
// thread sanitizer can see races, and between processes, as they are used.
//
//   ulfm_stress [--threads|--processes] [--count N]
//
// Every payload carries a checksum; a consumer that finds nothing parks at the doorbell for up to ten
// seconds, and a sleep that ends by its limit although something was there is a lost wake. Linux itself loses one in
// some 100,000 (decision 0074), which the second look of a sleep finds; more than one in 100 is wrong. Exit code 0
// when nothing was wrong.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include "base/doorbell.hpp"
#include "base/ring.hpp"
#include "port/send_queue.hpp"
#include "port/tag.hpp"

using namespace ulfm;

namespace {

bool g_processes = false;
bool g_fenced = false;  // the ways of a doorbell: the sleeper makes a barrier, or those who ring fence
std::uint32_t g_count = 20000;
constexpr auto kPatience = std::chrono::seconds(10);

[[noreturn]] void wrong(const char* where, const char* what, std::uint64_t number) {
  std::fprintf(stderr, "ulfm_stress: %s: %s (%llu)\n", where, what, static_cast<unsigned long long>(number));
  std::_Exit(1);  // ends all threads; in process mode the parent sees it
}

/// Memory that parent and children share.
template <typename T>
T* shared(std::size_t n = 1) {
  void* p = mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) wrong("mmap", "no memory", n);
  T* first = static_cast<T*>(p);
  for (std::size_t i = 0; i < n; ++i) new (first + i) T();
  return first;
}

/// Runs each role in a thread or process of its own and waits for all.
void run(const char* what, const std::vector<std::function<void()>>& roles) {
  std::fprintf(stderr, "%s: %s\n", g_processes ? "processes" : "threads", what);
  if (!g_processes) {
    std::vector<std::thread> threads;
    for (const auto& role : roles) threads.emplace_back(role);
    for (std::thread& t : threads) t.join();
    return;
  }
  std::vector<pid_t> children;
  for (const auto& role : roles) {
    const pid_t pid = fork();
    if (pid < 0) wrong(what, "no fork", 0);
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      role();
      _exit(0);
    }
    children.push_back(pid);
  }
  bool good = true;
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) {
      good = false;
      for (const pid_t pid : children) kill(pid, SIGKILL);  // the others would wait for ever
    }
  }
  if (!good) wrong(what, "a process failed", 0);
}

std::uint32_t next_random(std::uint64_t& state) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return static_cast<std::uint32_t>(state >> 16);
}

std::uint32_t checksum(const std::byte* bytes, std::size_t n, std::uint32_t h = 2166136261u) {
  for (std::size_t i = 0; i < n; ++i) h = (h ^ std::to_integer<std::uint32_t>(bytes[i])) * 16777619u;
  return h;
}

/// Header: sequence number and checksum of header and data; the rest is filler of a random length.
struct Payload {
  static constexpr std::size_t kFront = 8;
  std::byte header[255];
  std::byte data[2048];
  std::size_t header_length, length;

  void make(std::uint64_t& random, std::uint32_t sequence, std::size_t most) {
    header_length = kFront + (next_random(random) % 8 == 0 ? next_random(random) % 200 : next_random(random) % 8);
    length = next_random(random) % 2 == 0 ? next_random(random) % 40 : next_random(random) % most;
    for (std::size_t i = kFront; i < header_length; ++i) header[i] = static_cast<std::byte>(next_random(random));
    for (std::size_t i = 0; i < length; ++i) data[i] = static_cast<std::byte>(sequence * 31 + i);
    std::uint32_t sum = checksum(header + kFront, header_length - kFront, sequence * 2654435761u);
    sum = checksum(data, length, sum);
    std::memcpy(header, &sequence, 4);
    std::memcpy(header + 4, &sum, 4);
  }
  static std::uint32_t check(const char* where, const Frame& frame) {
    std::uint32_t sequence = 0, sum = 0;
    if (frame.header_length < kFront) wrong(where, "header too short", frame.header_length);
    std::memcpy(&sequence, frame.header, 4);
    std::memcpy(&sum, frame.header + 4, 4);
    const std::uint32_t front = checksum(frame.header + kFront, frame.header_length - kFront, sequence * 2654435761u);
    if (checksum(frame.data, frame.length, front) != sum) wrong(where, "checksum differs", sequence);
    return sequence;
  }
};

/// Looks for frames; looks some turns, then parks. Ends when `take()` has returned true `total` times.
template <typename Take, typename HasFrame>
void consume(const char* where, Doorbell& bell, std::uint64_t total, Take take, HasFrame has_frame) {
  std::uint64_t idle = 0, sleeps = 0, missed = 0;
  const auto look = [&] { return has_frame() && ++missed > 0; };
  for (std::uint64_t got = 0; got < total;) {
    if (take()) {
      ++got;
      idle = 0;
      continue;
    }
    if (++idle % 8 != 0) continue;  // a short look, then sleep: the wake is what is under test
    bell.arm();
    if (has_frame()) {
      bell.cancel();
      continue;
    }
    ++sleeps;
    const auto before = std::chrono::steady_clock::now();
    const bool rung = bell.sleep(kPatience, {}, look);
    if (!rung && has_frame() && std::chrono::steady_clock::now() - before >= kPatience) wrong(where, "lost wake", got);
  }
  if (missed > 2 + sleeps / 100) wrong(where, "sleeps that no ring ended", missed);
  std::fprintf(stderr, "  %s: %llu sleeps, of which %llu ended by a second look\n", where,
               static_cast<unsigned long long>(sleeps), static_cast<unsigned long long>(missed));
}

/// Frames held and released out of order, as an application does.
class Holder {
 public:
  explicit Holder(std::size_t most) : most_(most) {}
  template <typename Consumer>
  void hold(const char* where, Consumer& consumer, const Frame& frame) {
    held_.push_back(frame);
    while (held_.size() > most_ || (!held_.empty() && next_random(random_) % 2 == 0)) {
      const std::size_t i = next_random(random_) % held_.size();
      Payload::check(where, held_[i]);
      consumer.release(held_[i]);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  template <typename Consumer>
  void release_all(Consumer& consumer) {
    for (const Frame& f : held_) consumer.release(f);
    held_.clear();
  }

 private:
  std::size_t most_;
  std::vector<Frame> held_;
  std::uint64_t random_ = 4711;
};

void lane() {
  constexpr std::uint32_t kCells = 16, kBytes = 16384;
  Cell* cells = shared<Cell>(kCells);
  std::byte* bytes = shared<std::byte>(kBytes);
  auto* consumed = shared<std::atomic<std::uint64_t>>();
  auto* bell = shared<Doorbell>();
  if (g_fenced) bell->expect_many_sleeps();
  const LaneMemory memory{cells, bytes, consumed, kCells, kBytes};

  const auto produce = [&] {
    LaneProducer producer(memory);
    auto payload = std::make_unique<Payload>();
    std::uint64_t random = 88172645463325252ull;
    for (std::uint32_t i = 0; i < g_count; ++i) {
      payload->make(random, i, sizeof payload->data);
      for (;;) {
        const iovec piece{payload->data, payload->length};
        Gather data(std::span(&piece, 1));
        if (producer.push(Kind::first, 1, payload->header, payload->header_length, data, payload->length)) {
          producer.own_ahead();
          break;
        }
        std::this_thread::yield();
      }
      bell->ring();
    }
  };
  const auto take_all = [&] {
    LaneConsumer consumer(memory);
    Holder holder(4);
    std::uint32_t expected = 0;
    consume(
        "lane", *bell, g_count,
        [&] {
          Frame frame;
          switch (consumer.next(frame)) {
            case Peek::elsewhere:
            case Peek::broken: wrong("lane", "broken frame", expected);
            case Peek::nothing:
              holder.release_all(consumer);
              consumer.publish();
              return false;
            case Peek::frame: break;
          }
          if (Payload::check("lane", frame) != expected++) wrong("lane", "out of order", expected);
          holder.hold("lane", consumer, frame);
          return true;
        },
        [&] { return consumer.ready(); });
  };
  run("lane", {produce, take_all});
}

void open_ring() {
  constexpr std::uint32_t kSlots = 8, kStride = 1024, kSenders = 4;
  std::byte* slots = shared<std::byte>(std::size_t{kSlots} * kStride);
  auto* tail = shared<std::atomic<std::uint64_t>>();
  auto* bell = shared<Doorbell>();
  if (g_fenced) bell->expect_many_sleeps();
  const OpenMemory memory{slots, tail, kSlots, kStride};
  OpenConsumer::initialise(memory);

  std::vector<std::function<void()>> roles;
  for (std::uint32_t who = 0; who < kSenders; ++who)
    roles.push_back([&, who] {
      const OpenProducer producer(memory);
      auto payload = std::make_unique<Payload>();
      std::uint64_t random = 88172645463325252ull + who;
      for (std::uint32_t i = 0; i < g_count / kSenders; ++i) {
        payload->make(random, i, 700);
        for (;;) {
          const iovec piece{payload->data, payload->length};
          Gather data(std::span(&piece, 1));
          if (producer.push(Kind::first, who, payload->header, payload->header_length, data, payload->length)) break;
          std::this_thread::yield();
        }
        bell->ring();
      }
    });
  roles.push_back([&] {
    OpenConsumer consumer(memory);
    Holder holder(3);
    std::uint32_t expected[kSenders] = {};
    consume(
        "open ring", *bell, std::uint64_t{g_count / kSenders} * kSenders,
        [&] {
          Frame frame;
          switch (consumer.next(frame)) {
            case Peek::elsewhere:
            case Peek::broken: wrong("open ring", "broken frame", frame.position);
            case Peek::nothing: holder.release_all(consumer); return false;
            case Peek::frame: break;
          }
          if (frame.origin >= kSenders) wrong("open ring", "unknown origin", frame.origin);
          if (Payload::check("open ring", frame) != expected[frame.origin]++)
            wrong("open ring", "out of order", frame.origin);
          holder.hold("open ring", consumer, frame);
          return true;
        },
        [&] { return consumer.ready(); });
  });
  run("open ring", roles);
}

/// Its cells are on the heap of one process, so threads only.
void send_queue() {
  if (g_processes) return;
  constexpr std::uint32_t kPorts = 4;
  SendQueue queue(32);
  std::vector<std::function<void()>> roles;
  for (std::uint16_t port = 0; port < kPorts; ++port)
    roles.push_back([&, port] {
      for (std::uint32_t i = 0; i < g_count / kPorts; ++i)
        while (!queue.push(port)) std::this_thread::yield();
    });
  roles.push_back([&] {
    std::uint32_t seen[kPorts] = {};
    for (std::uint32_t got = 0; got < g_count / kPorts * kPorts;) {
      std::uint16_t port = 0;
      if (!queue.pop(port)) {
        std::this_thread::yield();
        continue;
      }
      if (port >= kPorts) wrong("send queue", "a number nobody pushed", port);
      ++seen[port];
      ++got;
    }
    for (const std::uint32_t n : seen)
      if (n != g_count / kPorts) wrong("send queue", "numbers lost", n);
    if (!queue.empty()) wrong("send queue", "not empty at the end", 0);
  });
  run("send queue", roles);
}

/// A buffer between one writer and one reader, guarded by its tag alone.
void tag() {
  struct Buffer {
    Tag tag;
    std::uint32_t sequence = 0;
    std::byte bytes[256]{};
  };
  auto* buffer = shared<Buffer>();
  const auto write = [&] {
    for (std::uint32_t i = 0; i < g_count; ++i) {
      while (buffer->tag.valid()) std::this_thread::yield();
      buffer->sequence = i;
      std::memset(buffer->bytes, static_cast<int>(i & 0xff), sizeof buffer->bytes);
      if (!buffer->tag.set()) wrong("tag", "set by someone else", i);
    }
  };
  const auto read = [&] {
    for (std::uint32_t i = 0; i < g_count; ++i) {
      while (!buffer->tag.valid()) std::this_thread::yield();
      if (buffer->sequence != i) wrong("tag", "out of order", i);
      for (const std::byte b : buffer->bytes)
        if (b != static_cast<std::byte>(i & 0xff)) wrong("tag", "overwritten while valid", i);
      if (!buffer->tag.clear()) wrong("tag", "cleared by someone else", i);
    }
  };
  run("tag", {write, read});
}

/// Every round sleeps: the ringer publishes only after the sleeper has taken the last publication, at a
/// moment that varies from before its arm() to after its futex call.
void doorbell() {
  struct Lines {
    Doorbell bell;
    alignas(64) std::atomic<std::uint32_t> published{0};
    alignas(64) std::atomic<std::uint32_t> taken{0};
  };
  auto* lines = shared<Lines>();
  if (g_fenced) lines->bell.expect_many_sleeps();
  const std::uint32_t rounds = g_count;
  const auto ringer = [&] {
    std::uint64_t random = 99;
    for (std::uint32_t i = 1; i <= rounds; ++i) {
      while (lines->taken.load(std::memory_order_acquire) != i - 1) std::this_thread::yield();
      for (std::uint32_t n = next_random(random) % 400; n > 0; --n) std::atomic_signal_fence(std::memory_order_seq_cst);
      lines->published.store(i, std::memory_order_release);
      lines->bell.ring();
    }
  };
  const auto sleeper = [&] {
    std::uint32_t last = 0;
    consume(
        "doorbell", lines->bell, rounds,
        [&] {
          const std::uint32_t now = lines->published.load(std::memory_order_acquire);
          if (now == last) return false;
          if (now != last + 1) wrong("doorbell", "a round was skipped", now);
          last = now;
          lines->taken.store(now, std::memory_order_release);
          return true;
        },
        [&] { return lines->published.load(std::memory_order_acquire) != last; });
  };
  run("doorbell", {ringer, sleeper});
}

int usage() {
  std::fprintf(stderr, "usage: ulfm_stress [--threads|--processes] [--count N]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--threads") g_processes = false;
    else if (argument == "--processes") g_processes = true;
    else if (argument == "--count" && i + 1 < argc)
      g_count = static_cast<std::uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    else return usage();
  }
  if (g_count < 4) return usage();
  send_queue();
  tag();
  for (const bool fenced : {false, true}) {
    g_fenced = fenced;
    lane();
    open_ring();
    doorbell();
  }
  std::puts("ulfm_stress: nothing was lost, torn or out of order");
  return 0;
}
