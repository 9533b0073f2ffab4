// The parameters of LogP (Culler et al., "LogP: towards a realistic model of parallel computation", PPoPP 1993) and
// LogGP (Alexandrov, Ionescu, Schauser, Scheiman, "LogGP: incorporating long messages into the LogP model", SPAA 1995)
// of ports over a transport.
//
// Measured after Culler, Liu, Martin, Yoshikawa, "Assessing fast network interfaces" (IEEE Micro 16(1), 1996), who
// send bursts of messages and look at the time for each: a short burst into an idle network takes o_s a message, a long
// one g. Their o_r comes out of the time that a burst of requests takes with a delay between them, because replies are
// handled inside of their sends. A port has a call of its own for what arrives, so here the delay is put before it, as
// Kielmann, Bal and Verstoep do ("Fast measurement of LogP parameters for message passing platforms", RTSPP 2000): when
// it ends the messages are there, and o_r is what taking one costs.
//
//   o_s   compose and post, in a short burst into an idle network
//   o_r   poll and release, in a short burst after a delay in which the messages came
//   g     what one more message adds to a long burst: (T(2W) - T(W)) / W, so that the way of the first one cancels
//   L     RTT / 2 - o_s - o_r
//   G     what one more byte adds to a few long messages: (T(k, large) - T(k, small)) / (k (large - small))
//
// Every round measures all of them once, so that they belong to the same minute of the machine.

#include <algorithm>
#include <chrono>
#include <cstring>

#include "logp.hpp"
#include "look.hpp"
#include "messages.hpp"
#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kShortBurst = 8;   // far below what any transport has room for
constexpr std::size_t kLongBurst = 512;  // far above: two lanes of default size
constexpr std::size_t kLongMessages = 4;
constexpr std::size_t kTrips = 20;
constexpr std::size_t kRounds = 200;  // unless time is up first
constexpr std::size_t kFewestRounds = 5;
constexpr std::chrono::seconds kTime{3};
constexpr double kLongestDelay = 1e6;  // us

/// What side 0 asks of side 1, as a message.
struct Order {
  enum class What : std::uint32_t {
    echo,    ///< return `count` messages, one by one
    sink,    ///< take `count` messages, then answer with an empty one
    source,  ///< send `count` messages
    stop,
  } what;
  std::uint32_t count;
  std::uint64_t size;
};

double since(Clock::time_point start) { return Microseconds(Clock::now() - start).count(); }

/// Computes, and neither sends nor looks for messages. Without a core of its own it makes room: the others have work.
void delay(double us) {
  for (const auto start = Clock::now(); since(start) < us;)
    look_policy().has_own_core() ? ulfm::cpu_pause() : ulfm::yield_now();
}

/// Side 1.
void serve(Side& side) {
  for (;;) {
    Order order{};
    look_for(side, sizeof order, [&](const std::byte* bytes) { std::memcpy(&order, bytes, sizeof order); });
    for (std::uint32_t i = 0; i < order.count; ++i) {
      if (order.what != Order::What::source) look_for(side, order.size);
      if (order.what != Order::What::sink) send(side, order.size);
    }
    if (order.what == Order::What::sink) send(side, 0);
    if (order.what == Order::What::stop) return;
  }
}

/// Side 0.
class Signature {
 public:
  Signature(Side& side, const Options& options)
      : side_(side),
        size_(options.from),
        burst_(options.depth == 0 ? kShortBurst : std::min(kShortBurst, options.depth)),
        rounds_(options.iterations != 0 ? options.iterations : kRounds),
        least_rounds_(options.iterations != 0 ? options.iterations : kFewestRounds),
        warmup_(options.warmup != 0 ? options.warmup : 200) {}

  LogGP measure() {
    calibrate();
    const auto start = Clock::now();
    for (std::size_t i = 0; i < rounds_ && (i < least_rounds_ || Clock::now() - start < kTime); ++i) round();
    order(Order::What::stop, 0, 0);
    LogGP result;
    result.o_s_us = Spread::of(send_);
    result.o_r_us = Spread::of(receive_);
    result.g_us = Spread::of(gap_);
    result.G_ns_per_byte = Spread::of(byte_gap_);
    result.half_rtt_us = Spread::of(half_trip_);
    const double overheads = result.o_s_us.median + result.o_r_us.median;
    result.L_us = result.half_rtt_us.less(overheads);
    return result;
  }

 private:
  void order(Order::What what, std::size_t count, std::size_t size) {
    const Order o{what, static_cast<std::uint32_t>(count), size};
    send(side_, sizeof o, [&](std::byte* buffer) { std::memcpy(buffer, &o, sizeof o); });
  }

  // What a reading of the clock costs, how long a delay must be, and how long "long" may be on this transport.
  void calibrate() {
    std::vector<double> readings(1000);
    for (double& reading : readings) reading = since(Clock::now());
    clock_ = percentile(readings, 50);
    echo(warmup_, size_);
    delay_ = std::max(5.0, 4 * median_trip(kTrips, size_));
    large_ = median_trip(5, kSmallest) < 2000 ? 16 * kSmallest : 4 * kSmallest;
  }

  /// Not the mean: a trip during which a side has lost its core would make all delays long.
  double median_trip(std::size_t times, std::size_t size) {
    std::vector<double> trips(times);
    for (double& trip : trips) trip = echo(1, size);
    return percentile(trips, 50);
  }

  void round() {
    send_.push_back(send_overhead());
    receive_.push_back(receive_overhead());
    half_trip_.push_back(echo(kTrips, size_) / 2);
    const double few = completion(kLongBurst, size_);
    gap_.push_back((completion(2 * kLongBurst, size_) - few) / kLongBurst);
    const double small = completion(kLongMessages, kSmallest);
    byte_gap_.push_back((completion(kLongMessages, large_) - small) * 1e3 /
                        static_cast<double>(kLongMessages * (large_ - kSmallest)));
  }

  /// Mean round trip, after one that brings the order.
  double echo(std::size_t times, std::size_t size) {
    order(Order::What::echo, times + 1, size);
    Clock::time_point start;
    for (std::size_t i = 0; i <= times; ++i) {
      if (i == 1) start = Clock::now();
      send(side_, size);
      look_for(side_, size);
    }
    return since(start) / static_cast<double>(times);
  }

  double send_overhead() {
    order(Order::What::sink, burst_, size_);
    delay(delay_);
    const auto start = Clock::now();
    for (std::size_t i = 0; i < burst_; ++i) send(side_, size_);
    const double took = since(start) - clock_;
    look_for(side_, 0);
    return took / static_cast<double>(burst_);
  }

  /// The delay grows until the messages are there when it looks; each time anew, for one says little of the next.
  double receive_overhead() {
    for (double us = delay_; us < kLongestDelay; us *= 2) {
      order(Order::What::source, burst_, size_);
      delay(us);
      std::size_t there = 0;
      const auto start = Clock::now();
      while (there < burst_ && receive_now(side_, size_)) ++there;
      const double took = since(start) - clock_;
      if (there == burst_) return took / static_cast<double>(burst_);
      for (; there < burst_; ++there) look_for(side_, size_);
    }
    throw Failure{
        {ulfm::Errc::timed_out, "o_r: messages do not arrive within a second in which their receiver computes"}};
  }

  /// From the first send until the answer to the last message is here.
  double completion(std::size_t messages, std::size_t size) {
    order(Order::What::sink, messages, size);
    delay(delay_);
    const auto start = Clock::now();
    for (std::size_t i = 0; i < messages; ++i) send(side_, size);
    look_for(side_, 0);
    return since(start);
  }

  static constexpr std::size_t kSmallest = 64 * 1024;  // of long messages

  Side& side_;
  const std::size_t size_, burst_, rounds_, least_rounds_, warmup_;
  double clock_ = 0, delay_ = 0;  // us
  std::size_t large_ = 0;         // bytes of the largest long message
  std::vector<double> send_, receive_, half_trip_, gap_, byte_gap_;
};

}  // namespace

Spread Spread::of(std::vector<double>& samples) {
  return {percentile(samples, 50), percentile(samples, 25), percentile(samples, 75)};
}

ulfm::Result<LogGP> run_logp(Side& side, const Options& options) {
  LogGP result;
  try {
    side.barrier();
    if (side.number == 0) result = Signature(side, options).measure();
    else serve(side);
    need(side.port->flush());
    side.barrier();
  } catch (Failure& failure) {
    return tl::unexpected(std::move(failure.error));
  }
  return result;
}

}  // namespace perf
