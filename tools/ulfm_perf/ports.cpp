// Latency, bandwidth and rate of raw ports, over the public interface only.

#include <chrono>

#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;
constexpr std::size_t kBatch = 100;

// Any failure ends the measurement; the sentence travels up as an error value.
struct Failure {
  ulfm::Error error;
};

template <typename T>
T need(ulfm::Result<T>&& result) {
  if (!result) throw Failure{std::move(result.error())};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void need(int code) {
  if (code < 0) throw Failure{{static_cast<ulfm::Errc>(-code), ulfm_last_error()}};
}

// The C interface, whose calls are what a language binding or a runtime above would make.
void send(Side& side, std::size_t size) {
  const ulfm_port port = side.port->handle();
  void* buffer = nullptr;
  int code = ulfm_compose(port, size, &buffer);
  while (code == ULFM_ERR_FULL) {
    need(ulfm_flush(port, -1));
    code = ulfm_compose(port, size, &buffer);
  }
  need(code);
  need(ulfm_post(port, side.peer));
}

void receive(Side& side, std::size_t size) {
  const ulfm_port port = side.port->handle();
  ulfm_message message;
  need(ulfm_wait(port, -1, &message));
  if (message.size != size)
    throw Failure{{ulfm::Errc::protocol, "a message of " + std::to_string(size) + " bytes arrived with " +
                                             std::to_string(message.size)}};
  need(ulfm_release(port, &message));
}

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
      side.meet();
      results.rows.push_back(options.test == "latency" ? latency(side, size, options) : stream(side, size, options));
    }
    need(side.port->flush());
    side.meet();
  } catch (Failure& failure) {
    return tl::unexpected(std::move(failure.error));
  }
  return results;
}

}  // namespace perf
