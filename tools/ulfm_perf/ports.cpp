// Latency, bandwidth and rate of raw ports, over the public interface only.

#include <chrono>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "messages.hpp"
#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;
constexpr std::size_t kBatch = 100;
constexpr double kBatchTime = 2000;  // us

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

/// What one size may take.
struct Part {
  std::size_t size;
  double budget;  ///< microseconds: its part of what is left of the time limit
  Clock::time_point began = Clock::now();
};

/// A network may be slower than it was when it was tried: what is over its time goes no further. Both sides ask.
bool is_over(Side& side, const Part& part, const Options& options) {
  if (options.iterations != 0) return false;
  return agree(side, Microseconds(Clock::now() - part.began).count() > part.budget ? 1 : 0) != 0;
}

struct Rounds {
  std::size_t count;  ///< 0: not even one fits
  std::size_t batch;  ///< so many between two looks at the clock, which costs as much as a short message
};

/// The iterations that fit into the size's part of the time limit; `probe(n)` runs n of them.
template <typename Probe>
Rounds iterations_in_time(Side& side, const Part& part, const Options& options, Probe&& probe) {
  constexpr std::size_t kProbe = 9, kFew = 20;
  constexpr double kBesides = 1.5, kBesidesFew = 3;  // warming up and further rounds
  const auto time = [&](std::size_t n) {
    const auto start = Clock::now();
    probe(n);
    return Microseconds(Clock::now() - start).count() / static_cast<double>(n);
  };
  double each = time(1);
  if (agree(side, each * 100 < part.budget ? 1 : 0) != 0) each = time(kProbe);
  const std::size_t most = options.iterations_for(part.size);
  const auto fit = [&](double besides) {
    return static_cast<std::size_t>(std::min(part.budget / std::max(each, 1e-3) / besides, 1e9));
  };
  const std::size_t fitting = std::min(fit(kBesides) < kFew ? fit(kBesidesFew) : fit(kBesides), most);
  const auto in_batch = static_cast<std::size_t>(std::clamp(kBatchTime / std::max(each, 1e-3), 1.0, double{kBatch}));
  const std::size_t count = agree(side, options.iterations != 0 ? most : fitting);
  return {count, agree(side, std::min(in_batch, std::max<std::size_t>(count, 1)))};
}

std::optional<Row> latency(Side& side, const Part& part, const Options& options) {
  const std::size_t size = part.size;
  const auto [iterations, batch] =
      iterations_in_time(side, part, options, [&](std::size_t n) { ping_pong(side, size, n); });
  if (iterations == 0) return std::nullopt;
  ping_pong(side, size, options.warmup != 0 ? options.warmup : std::max<std::size_t>(iterations / 10, 1));
  // The median is over batches with one reading of the clock each ...
  std::vector<double> means;
  for (std::size_t done = 0; done < iterations && (done == 0 || !is_over(side, part, options)); done += batch) {
    const auto start = Clock::now();
    ping_pong(side, size, batch);
    means.push_back(Microseconds(Clock::now() - start).count() / static_cast<double>(batch) / 2);
  }
  // ... and the percentiles are over single round trips, with the clock in them.
  std::vector<double> singles;
  const std::size_t alone = std::max(iterations / 5, std::min<std::size_t>(iterations, 10));
  for (std::size_t i = 0; i < alone && (i % batch != 0 || i == 0 || !is_over(side, part, options)); ++i) {
    const auto start = Clock::now();
    ping_pong(side, size, 1);
    singles.push_back(Microseconds(Clock::now() - start).count() / 2);
  }
  return Row{{{"size", static_cast<double>(size)},
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

std::optional<Row> stream(Side& side, const Part& part, const Options& options) {
  const std::size_t size = part.size;
  const std::size_t iterations =
      iterations_in_time(side, part, options, [&](std::size_t n) { window(side, size, n); }).count;
  if (iterations == 0) return std::nullopt;
  // A window that the time has no room for is a smaller one.
  const std::size_t window_size = std::min(options.window, iterations);
  const std::size_t windows = std::max<std::size_t>(iterations / window_size, options.iterations != 0 ? 10 : 1);
  for (std::size_t i = 0; i < std::max<std::size_t>(windows / 10, 1); ++i) window(side, size, window_size);
  std::vector<double> rates;
  for (std::size_t i = 0; i < windows && (i == 0 || !is_over(side, part, options)); ++i) {
    const auto start = Clock::now();
    window(side, size, window_size);
    rates.push_back(static_cast<double>(window_size) / Microseconds(Clock::now() - start).count());
  }
  const double per_us = percentile(rates, 50);
  Row row{{{"size", static_cast<double>(size)}}};
  if (options.test == "bandwidth") row.columns.push_back({"MB_per_s", per_us * static_cast<double>(size)});
  row.columns.push_back({"messages_per_s", per_us * 1e6});
  return row;
}

}  // namespace

ulfm::Result<Results> measure_ports(Side& side, const Options& options, Watch& watch) {
  Results results;
  results.title = options.test == "latency"     ? "port to port, one way, us"
                  : options.test == "bandwidth" ? "port to port, one direction, MB/s (1e6 bytes)"
                                                : "port to port, one direction, messages/s";
  const std::vector<std::size_t> sizes = options.sizes();
  const auto began = Clock::now();
  try {
    for (const std::size_t size : sizes) {
      const std::size_t done = results.rows.size();
      if (side.number == 0) watch.progress(done, sizes.size(), fmt::format("{} bytes", size));
      side.barrier();
      const double left = options.limit * 1e6 - Microseconds(Clock::now() - began).count();
      const Part part{size, left / static_cast<double>(sizes.size() - done)};
      auto row = options.test == "latency" ? latency(side, part, options) : stream(side, part, options);
      if (!row) {
        results.left_out = fmt::format(
            "messages from {} bytes on are left out: the limit of {:g} s leaves them no time; raise it with --limit "
            "SECONDS",
            size, options.limit);
        break;
      }
      results.rows.push_back(std::move(*row));
    }
    need(side.port->flush());
    side.barrier();
  } catch (Failure& failure) {
    return tl::unexpected(std::move(failure.error));
  }
  if (results.rows.empty() && side.number == 0)
    return tl::unexpected(ulfm::Error{ulfm::Errc::timed_out, results.left_out});
  return results;
}

}  // namespace perf
