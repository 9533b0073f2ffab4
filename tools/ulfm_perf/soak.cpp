// Soak: random messages both ways at once, each checked for order, length and every byte. For long runs over networks
// that lose and damage frames: nothing lost, nothing twice, memory flat.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <fmt/core.h>

#include "tests.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kNap = 1'000'000;  // nanoseconds without anything to do before looking anew

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

/// One direction: both sides know what the n-th message is.
class Stream {
 public:
  Stream(const Options& options, int from)
      : seed_(options.seed * 2 + static_cast<std::uint64_t>(from)),
        least_(options.from),
        range_(options.to - options.from + 1) {}
  std::size_t size(std::uint64_t n) const { return least_ + mixed(seed_ ^ n * 0x9e3779b97f4a7c15ull) % range_; }
  std::uint64_t word(std::uint64_t n, std::size_t i) const { return mixed(seed_ + n) + i * 0x9e3779b97f4a7c15ull; }

  void fill(std::uint64_t n, std::byte* to, std::size_t size) const {
    for (std::size_t at = 0; at < size; at += 8) {
      const std::uint64_t w = word(n, at);
      std::memcpy(to + at, &w, std::min<std::size_t>(8, size - at));
    }
  }
  bool matches(std::uint64_t n, const std::byte* bytes, std::size_t size) const {
    for (std::size_t at = 0; at < size; at += 8) {
      const std::uint64_t w = word(n, at);
      if (std::memcmp(bytes + at, &w, std::min<std::size_t>(8, size - at)) != 0) return false;
    }
    return true;
  }

 private:
  std::uint64_t seed_;
  std::size_t least_, range_;
};

double resident_kb() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  in >> pages >> resident;
  return static_cast<double>(resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) / 1024;
}

/// What one side has done, and the sentence when something was wrong.
class Soak {
 public:
  Soak(Side& side, const Options& options)
      : port_(side.port->handle()),
        peer_(side.peer),
        out_(options, side.number),
        in_(options, 1 - side.number),
        messages_(options.iterations != 0 ? options.iterations : 1'000'000) {}

  ulfm::Result<void> run() {
    while (sent_ < messages_ || received_ < messages_) {
      bool moved = false;
      if (auto ok = send_some(moved); !ok) return ok;
      if (auto ok = receive_some(moved ? 0 : kNap); !ok) return ok;
      if (early_kb_ == 0 && received_ >= messages_ / 10) early_kb_ = resident_kb();
    }
    return {};
  }

  std::uint64_t messages() const { return messages_; }
  double bytes() const { return bytes_; }
  double early_kb() const { return early_kb_; }

 private:
  static tl::unexpected<ulfm::Error> failure(int code) {
    return ulfm::fail(static_cast<ulfm::Errc>(-code), ulfm_last_error());
  }

  ulfm::Result<void> send_some(bool& moved) {
    for (int burst = 0; burst < 16 && sent_ < messages_; ++burst) {
      void* buffer = nullptr;
      const std::size_t size = out_.size(sent_);
      const int code = ulfm_compose(port_, size, &buffer);
      if (code == ULFM_ERR_FULL) return {};
      if (code < 0) return failure(code);
      out_.fill(sent_, static_cast<std::byte*>(buffer), size);
      if (const int posted = ulfm_post(port_, peer_); posted < 0) return failure(posted);
      ++sent_;
      moved = true;
    }
    return {};
  }

  ulfm::Result<void> receive_some(std::int64_t limit) {
    ulfm_message message;
    int code = limit == 0 ? ulfm_poll(port_, &message) : ulfm_wait(port_, limit, &message);
    for (; code == 1; code = ulfm_poll(port_, &message)) {
      const auto* bytes = static_cast<const std::byte*>(message.bytes);
      if (received_ >= messages_ || message.size != in_.size(received_) || !in_.matches(received_, bytes, message.size))
        return ulfm::fail(ulfm::Errc::protocol,
                          fmt::format("message {}: {} bytes that are not what was sent ({} bytes)", received_,
                                      message.size, in_.size(received_)));
      bytes_ += static_cast<double>(message.size);
      ++received_;
      if (const int released = ulfm_release(port_, &message); released < 0) return failure(released);
    }
    if (code < 0 && code != ULFM_ERR_TIMED_OUT) return failure(code);
    return {};
  }

  ulfm_port port_;
  ulfm_address peer_;
  Stream out_, in_;
  std::uint64_t messages_, sent_ = 0, received_ = 0;
  double bytes_ = 0, early_kb_ = 0;
};

}  // namespace

ulfm::Result<Results> soak(Side& side, const Options& options) {
  side.barrier();
  const auto start = Clock::now();
  Soak run(side, options);
  if (auto ok = run.run(); !ok) return tl::unexpected(ok.error());
  if (auto ok = side.port->flush(); !ok) return tl::unexpected(ok.error());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double late_kb = resident_kb();
  side.barrier();
  Results results;
  results.title = "random messages both ways, every byte checked";
  results.rows.push_back({{{"messages", 2.0 * static_cast<double>(run.messages())},
                           {"MB_received", run.bytes() / 1e6},
                           {"messages_per_s", 2.0 * static_cast<double>(run.messages()) / seconds},
                           {"kB_at_a_tenth", run.early_kb()},
                           {"kB_at_the_end", late_kb}}});
  return results;
}

}  // namespace perf
