// The three ways of a message of Zhou et al., "A fast message passing mechanism at user level for cluster computing"
// (1999), section 4.1 and figure 8, as the same ping-pong:
//
//   ulsr    user-level send, user-level receive. Two ports over `direct`; the message is read in place.
//   ulskrc  user-level send, receive in the kernel: "one copy of the data from a system kernel buffer to the space of
//           the application process". The message goes the same way as before. Where it arrives, the port's segment, is
//           a memory file, whose pages are the kernel's; a system call (pread) copies it from there to the
//           application's buffer. So what is added is what the paper's mode adds: one change into the kernel and back,
//           and one copy by the kernel out of memory that it owns. process_vm_readv from the sender's buffer would copy
//           once as well, but between two applications, with no buffer of the kernel in between; it would replace the
//           sending side too, and it pins pages, which the paper's receive has no need of.
//   ksrc2   the kernel on both sides, "a copy between kernel buffer and application space on source and destination": a
//           Unix-domain stream socket, which copies into buffers of the kernel at send and out of them at recv.
//
// All three wait by looking, at the port or by calls of recv that do not sleep: the paper explains its differences by
// changes into the kernel and by copies, and what the scheduler takes to wake a sleeper would hide both. Whoever
// receives reads each cache line of the message once, for a message read in place has not crossed over before that,
// and checks the message's number at both its ends.

#include <chrono>
#include <cstring>

#include <fmt/core.h>

#include "kernel_link.hpp"
#include "messages.hpp"
#include "port_memory.hpp"
#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kPathsBatch = 100;
constexpr std::size_t kFloorBatch = 500;
constexpr std::size_t kWarm = 3;  // trips before a batch counts: the mode before has left its own lines in the caches
constexpr std::size_t kFewestPathRounds = 5;
constexpr std::chrono::seconds kPathTime{3};  // for one size, unless the iterations were given
constexpr std::size_t kLine = 64;

/// Numbers of the messages of one mode: both sides count alike.
struct Stamps {
  std::uint64_t sent = 0, received = 0;

  void put(std::byte* bytes, std::size_t size) {
    ++sent;
    const std::size_t n = std::min(size, sizeof sent);
    std::memcpy(bytes, &sent, n);
    std::memcpy(bytes + size - n, &sent, n);
  }

  void check(const std::byte* bytes, std::size_t size) {
    ++received;
    const std::size_t n = std::min(size, sizeof received);
    unsigned sum = 0;
    for (std::size_t at = 0; at < size; at += kLine) sum += static_cast<unsigned>(bytes[at]);
    asm volatile("" : : "r"(sum));  // the lines are read although nobody wants their sum
    const bool first = size < sizeof received || std::memcmp(bytes, &received, n) == 0;
    if (!first || std::memcmp(bytes + size - n, &received, n) != 0)
      throw Failure{{ulfm::Errc::protocol, fmt::format("message {} has not the bytes that were sent", received)}};
  }
};

class UserUser {
 public:
  UserUser(Side& side, std::size_t size) : side_(side), size_(size) {}
  void send() {
    perf::send(side_, size_, [this](std::byte* buffer) { stamps_.put(buffer, size_); });
  }
  void receive() {
    look_for(side_, size_, [this](const std::byte* bytes) { stamps_.check(bytes, size_); });
  }

 private:
  Side& side_;
  std::size_t size_;
  Stamps stamps_;
};

class UserKernel {
 public:
  UserKernel(Side& side, const PortMemory& memory, std::size_t size) : side_(side), memory_(memory), buffer_(size) {}
  void send() {
    perf::send(side_, buffer_.size(), [this](std::byte* buffer) { stamps_.put(buffer, buffer_.size()); });
  }
  void receive() {
    look_for(side_, buffer_.size(),
             [this](const std::byte* bytes) { need(memory_.copy(bytes, buffer_.size(), buffer_.data())); });
    stamps_.check(buffer_.data(), buffer_.size());
  }

 private:
  Side& side_;
  const PortMemory& memory_;
  std::vector<std::byte> buffer_;
  Stamps stamps_;
};

class KernelKernel {
 public:
  KernelKernel(KernelLink& link, std::size_t size) : link_(link), buffer_(size) {}
  void send() {
    stamps_.put(buffer_.data(), buffer_.size());
    link_.send(buffer_.data(), buffer_.size());
  }
  void receive() {
    link_.receive(buffer_.data(), buffer_.size());
    stamps_.check(buffer_.data(), buffer_.size());
  }

 private:
  KernelLink& link_;
  std::vector<std::byte> buffer_;
  Stamps stamps_;
};

template <typename Mode>
void ping_pong(Mode& mode, int side, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) {
    if (side == 0) mode.send();
    mode.receive();
    if (side == 1) mode.send();
  }
}

template <typename Mode>
void batch(Mode& mode, int side, std::size_t times, std::vector<double>& samples) {
  ping_pong(mode, side, kWarm);
  const auto start = Clock::now();
  ping_pong(mode, side, times);
  samples.push_back(Microseconds(Clock::now() - start).count() / static_cast<double>(times) / 2);
}

void floor_batch(KernelLink& link, int side, std::uint64_t& turn, std::vector<double>& samples) {
  const auto patient = [&link] { link.expect_peer(); };
  hand_over(link.line(), side, turn, kWarm, patient);
  const auto start = Clock::now();
  hand_over(link.line(), side, turn, kFloorBatch, patient);
  samples.push_back(Microseconds(Clock::now() - start).count() / kFloorBatch / 2);
}

/// What section 4.1 says in words; the curves of its figure 8 give no other number.
struct PaperFigures {
  double ulsr_us = kNothing, ksrc2_ratio_above = kNothing, ulsr_MB_per_s = kNothing;
};

PaperFigures figures_for(std::size_t size) {
  if (size == 16) return {.ulsr_us = 6, .ksrc2_ratio_above = 2};
  if (size == 2048) return {.ulsr_MB_per_s = 40.26};
  return {};
}

/// The modes take turns, so that all see the same minute of the machine.
class Comparison {
 public:
  Comparison(Side& side, KernelLink& link, const PortMemory& memory) : side_(side), link_(link), memory_(memory) {}

  Row of(std::size_t size, const Options& options) {
    const std::size_t iterations = options.iterations_for(size);
    const std::size_t times = std::min(kPathsBatch, iterations);
    UserUser ulsr(side_, size);
    UserKernel ulskrc(side_, memory_, size);
    KernelKernel ksrc2(link_, size);
    // The first frames of a connection take the open ring, from which the kernel would have nothing to copy.
    ping_pong(ulsr, side_.number, std::max<std::size_t>(options.warmup, kPathsBatch));
    std::vector<double> floors, user_user, user_kernel, kernel_kernel;
    const std::size_t rounds = (iterations + times - 1) / times;
    const auto start = Clock::now();
    for (std::size_t i = 0; another_round(
             i < rounds && (i < kFewestPathRounds || options.iterations != 0 || Clock::now() - start < kPathTime));
         ++i) {
      floor_batch(link_, side_.number, turn_, floors);
      batch(ulsr, side_.number, times, user_user);
      batch(ulskrc, side_.number, times, user_kernel);
      batch(ksrc2, side_.number, times, kernel_kernel);
    }
    const PaperFigures paper = figures_for(size);
    const double base = percentile(user_user, 50);
    return {{{"size", static_cast<double>(size)},
             {"floor_us", percentile(floors, 50)},
             median_column("ulsr_us", user_user),
             median_column("ulskrc_us", user_kernel),
             median_column("ksrc2_us", kernel_kernel),
             {"ulskrc_ratio", percentile(user_kernel, 50) / base},
             {"ksrc2_ratio", percentile(kernel_kernel, 50) / base},
             {"ulsr_MB_per_s", static_cast<double>(size) / base},
             {"paper_ulsr_us", paper.ulsr_us},
             {"paper_ksrc2_ratio_above", paper.ksrc2_ratio_above},
             {"paper_ulsr_MB_per_s", paper.ulsr_MB_per_s}}};
  }

 private:
  /// Side 0 has the clock and says it to the other.
  bool another_round(bool wanted) {
    auto word = static_cast<std::byte>(wanted);
    side_.number == 0 ? link_.send(&word, 1) : link_.receive(&word, 1);
    return word != std::byte{0};
  }

  Side& side_;
  KernelLink& link_;
  const PortMemory& memory_;
  std::uint64_t turn_ = 0;  // of the floor's line
};

}  // namespace

ulfm::Result<Results> measure_paths(Side& side, const Options& options) {
  if (side.job->transport() != "direct")
    return ulfm::fail(ulfm::Errc::invalid,
                      fmt::format("paths compares a port over direct with the kernel; this job's transport is {}",
                                  side.job->transport()));
  auto link = KernelLink::make(side);
  if (!link) return tl::unexpected(link.error());
  auto memory = PortMemory::find(side.port->number());
  if (!memory) return tl::unexpected(memory.error());
  Results results;
  results.title = "one way, us: user/user, user/kernel, kernel/kernel; paper: Zhou et al. 1999, section 4.1";
  try {
    Comparison comparison(side, *link, *memory);
    for (const std::size_t size : options.sizes()) results.rows.push_back(comparison.of(size, options));
    need(side.port->flush());
    side.barrier();
  } catch (Failure& failure) {
    return tl::unexpected(std::move(failure.error));
  }
  return results;
}

}  // namespace perf
