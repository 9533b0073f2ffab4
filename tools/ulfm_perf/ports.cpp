// Latency, bandwidth and rate of raw ports, over the public interface only.

#include <chrono>

#include <cstring>

#include "messages.hpp"
#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;
constexpr std::size_t kBatch = 100;

void ping_pong(Side& side, std::size_t size, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) {
    if (side.number == 0) {
      send(side, size);
      receive(side, size);
    } else {
      receive(side, size);
      send(side, size);
    }
  }
}

/// Side 0 says how many, and both know.
std::size_t agree(Side& side, std::size_t count) {
  std::uint64_t number = count;
  if (side.number == 0) {
    send(side, sizeof number, [&](std::byte* to) { std::memcpy(to, &number, sizeof number); });
  } else {
    receive(side, sizeof number, [&](const std::byte* from) { std::memcpy(&number, from, sizeof number); });
  }
  return number;
}

/// The iterations that fit into this size's part of the time limit; `probe(n)` runs n of them.
template <typename Probe>
std::size_t iterations_in_time(Side& side, std::size_t size, const Options& options, Probe&& probe) {
  constexpr std::size_t kProbe = 10, kLeast = 20;
  constexpr double kBesides = 1.5;  // warming up and further rounds
  const auto start = Clock::now();
  probe(kProbe);
  const double each = Microseconds(Clock::now() - start).count() / kProbe;
  const double budget = options.limit * 1e6 / static_cast<double>(options.sizes().size()) / kBesides;
  const std::size_t most = options.iterations_for(size);
  const auto fit = static_cast<std::size_t>(std::min(budget / std::max(each, 1e-3), 1e9));
  return agree(side, options.iterations != 0 ? most : std::clamp(fit, std::min(kLeast, most), most));
}

Row latency(Side& side, std::size_t size, const Options& options) {
  const std::size_t iterations =
      iterations_in_time(side, size, options, [&](std::size_t n) { ping_pong(side, size, n); });
  ping_pong(side, size, options.warmup != 0 ? options.warmup : std::max<std::size_t>(iterations / 10, 10));
  // The clock costs as much as a short message: the median is over batches with one reading each ...
  const std::size_t batch = std::min(kBatch, iterations);
  std::vector<double> means;
  for (std::size_t done = 0; done < iterations; done += batch) {
    const auto start = Clock::now();
    ping_pong(side, size, batch);
    means.push_back(Microseconds(Clock::now() - start).count() / static_cast<double>(batch) / 2);
  }
  // ... and the percentiles are over single round trips, with the clock in them.
  std::vector<double> singles;
  for (std::size_t i = 0; i < std::max<std::size_t>(iterations / 5, 10); ++i) {
    const auto start = Clock::now();
    ping_pong(side, size, 1);
    singles.push_back(Microseconds(Clock::now() - start).count() / 2);
  }
  return {{{"size", static_cast<double>(size)},
           {"one_way_us", percentile(means, 50)},
           {"min_us", percentile(means, 0)},
           {"p50_us", percentile(singles, 50)},
           {"p90_us", percentile(singles, 90)},
           {"p99_us", percentile(singles, 99)}}};
}

void window(Side& side, std::size_t size, std::size_t messages) {
  if (side.number == 0) {
    for (std::size_t i = 0; i < messages; ++i) send(side, size);
    receive(side, 0);
  } else {
    for (std::size_t i = 0; i < messages; ++i) receive(side, size);
    send(side, 0);
  }
}

Row stream(Side& side, std::size_t size, const Options& options) {
  const std::size_t iterations = iterations_in_time(side, size, options, [&](std::size_t n) { window(side, size, n); });
  const std::size_t windows = std::max<std::size_t>(iterations / options.window, options.iterations != 0 ? 10 : 3);
  for (std::size_t i = 0; i < std::max<std::size_t>(windows / 10, 2); ++i) window(side, size, options.window);
  std::vector<double> rates;
  for (std::size_t i = 0; i < windows; ++i) {
    const auto start = Clock::now();
    window(side, size, options.window);
    rates.push_back(static_cast<double>(options.window) / Microseconds(Clock::now() - start).count());
  }
  const double per_us = percentile(rates, 50);
  Row row{{{"size", static_cast<double>(size)}}};
  if (options.test == "bandwidth") row.columns.emplace_back("MB_per_s", per_us * static_cast<double>(size));
  row.columns.emplace_back("messages_per_s", per_us * 1e6);
  return row;
}

}  // namespace

ulfm::Result<Results> measure_ports(Side& side, const Options& options, Watch& watch) {
  Results results;
  results.title = options.test == "latency"     ? "port to port, one way, us"
                  : options.test == "bandwidth" ? "port to port, one direction, MB/s (1e6 bytes)"
                                                : "port to port, one direction, messages/s";
  const std::vector<std::size_t> sizes = options.sizes();
  try {
    for (const std::size_t size : sizes) {
      if (side.number == 0) watch.progress(results.rows.size(), sizes.size(), std::to_string(size) + " bytes");
      side.barrier();
      results.rows.push_back(options.test == "latency" ? latency(side, size, options) : stream(side, size, options));
    }
    need(side.port->flush());
    side.barrier();
  } catch (Failure& failure) {
    return tl::unexpected(std::move(failure.error));
  }
  return results;
}

}  // namespace perf
