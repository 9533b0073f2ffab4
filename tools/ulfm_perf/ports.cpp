// Latency, bandwidth and rate of raw ports, over the public interface only.

#include <chrono>

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

Row latency(Side& side, std::size_t size, const Options& options) {
  const std::size_t iterations = options.iterations_for(size);
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
  const std::size_t windows = std::max<std::size_t>(options.iterations_for(size) / options.window, 10);
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

ulfm::Result<Results> measure_ports(Side& side, const Options& options) {
  Results results;
  results.title = options.test == "latency"     ? "port to port, one way, us"
                  : options.test == "bandwidth" ? "port to port, one direction, MB/s (1e6 bytes)"
                                                : "port to port, one direction, messages/s";
  try {
    for (const std::size_t size : options.sizes()) {
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
