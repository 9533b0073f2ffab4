// One message to many ports: the time until all of them have it, by a group, by as many unicasts, and by a tree in
// which receivers send it on, taking turns. All processes read one clock, so a receiver says when the message was
// there, and the latest of them counts.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "messages.hpp"
#include "tests.hpp"

namespace perf {
namespace {

constexpr std::uint16_t kGroupPort = 7;
constexpr std::uint64_t kProbe = 4, kMost = 2000;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Rank 0 sends; every other rank receives and answers.
class Crowd {
 public:
  explicit Crowd(const Options& options) : options_(options) {
    job_ = std::make_unique<ulfm::Job>(need(ulfm::Job::join()));
    if (job_->size() < 3)
      throw Failure{
          {ulfm::Errc::invalid,
           fmt::format("a job of {} has one receiver or none; multicast needs 3 processes or more", job_->size())}};
    port_ = std::make_unique<ulfm::Port>(need(
        job_->open_port({.number = kGroupPort, .slot_bytes = 0, .depth = static_cast<std::uint32_t>(options.depth)})));
    need(job_->barrier());  // all ports are open
    for (int rank = 0; rank < job_->size(); ++rank)
      if (rank != job_->rank() && (job_->rank() == 0 || rank == 0))
        peers_.push_back(need(job_->address(rank, kGroupPort)));
    if (!is_root()) return;
    const int count = static_cast<int>(peers_.size());
    need(ulfm_group_open(port_->handle(), peers_.data(), count, &group_));
    need(ulfm_group_open_tree(port_->handle(), peers_.data(), count, &tree_));
  }

  bool is_root() const { return job_->rank() == 0; }
  std::size_t receivers() const { return static_cast<std::size_t>(job_->size()) - 1; }

  Row measure(std::size_t size) {
    const std::int64_t began = now_ns();
    rounds(size, kProbe);
    const double each = static_cast<double>(now_ns() - began) / kProbe;
    const double budget = options_.limit * 1e9 / static_cast<double>(options_.sizes().size());
    const auto fit = static_cast<std::uint64_t>(std::clamp(budget / std::max(each, 1.0), 10.0, double{kMost}));
    auto [many, single, tree] = rounds(size, options_.iterations != 0 ? options_.iterations : fit);
    announce(0);
    const double a = percentile(many, 50), b = percentile(single, 50);
    return {{{"size", static_cast<double>(size)},
             {"multicast_us", a},
             {"unicasts_us", b},
             {"tree_us", percentile(tree, 50)},
             {"ratio", b / a},
             {"p90_us", percentile(many, 90)},
             {"unicasts_p90", percentile(single, 90)},
             {"tree_p90", percentile(tree, 90)}}};
  }

  /// A receiver's part of measure().
  void serve(std::size_t size) {
    for (;;) {
      std::uint64_t messages = 0;
      receive(sizeof messages, &messages);
      if (messages == 0) return;
      for (messages *= 3; messages != 0; --messages) {
        receive(size, nullptr);
        const std::int64_t moment = now_ns();
        send(&moment, sizeof moment, [&] { return ulfm_post(port_->handle(), peers_.front()); });
      }
    }
  }

  void leave() {
    need(port_->flush());
    need(job_->barrier());
  }

 private:
  struct Samples {
    std::vector<double> many, single, tree;
  };

  Samples rounds(std::size_t size, std::uint64_t count) {
    announce(count);
    Samples samples;
    const auto to_group = [&] { send(nullptr, size, [&] { return ulfm_post_group(port_->handle(), group_); }); };
    const auto to_tree = [&] { send(nullptr, size, [&] { return ulfm_post_group(port_->handle(), tree_); }); };
    const auto to_each = [&] {
      for (const ulfm::Address& peer : peers_) send(nullptr, size, [&] { return ulfm_post(port_->handle(), peer); });
    };
    for (std::uint64_t i = 0; i < count; ++i) {
      samples.many.push_back(time_of(to_group));
      samples.single.push_back(time_of(to_each));
      samples.tree.push_back(time_of(to_tree));
    }
    return samples;
  }

  /// Microseconds from the call until the last receiver had it.
  template <typename Send>
  double time_of(Send&& call) {
    const std::int64_t began = now_ns();
    call();
    std::int64_t latest = 0;
    for (std::size_t i = receivers(); i != 0; --i) {
      std::int64_t moment = 0;
      receive(sizeof moment, &moment);
      latest = std::max(latest, moment);
    }
    return static_cast<double>(latest - began) / 1e3;
  }

  void announce(std::uint64_t count) {
    send(&count, sizeof count, [&] { return ulfm_post_group(port_->handle(), group_); });
  }

  template <typename Post>
  void send(const void* bytes, std::size_t size, Post&& post) {
    void* buffer = nullptr;
    int code = ulfm_compose(port_->handle(), size, &buffer);
    while (code == ULFM_ERR_FULL) {
      need(ulfm_flush(port_->handle(), -1));
      code = ulfm_compose(port_->handle(), size, &buffer);
    }
    need(code);
    if (bytes != nullptr) std::memcpy(buffer, bytes, size);
    need(post());
  }

  void receive(std::size_t size, void* into) {
    ulfm_message message;
    need(ulfm_wait(port_->handle(), -1, &message));
    if (message.size != size)
      throw Failure{{ulfm::Errc::protocol, fmt::format("a message of {} bytes arrived with {}", size, message.size)}};
    if (into != nullptr) std::memcpy(into, message.bytes, size);
    need(ulfm_release(port_->handle(), &message));
  }

  const Options& options_;
  std::unique_ptr<ulfm::Job> job_;
  std::unique_ptr<ulfm::Port> port_;
  std::vector<ulfm::Address> peers_;  ///< of the root all others, of the others the root
  ulfm_group group_{}, tree_{};
};

}  // namespace

ulfm::Result<Results> measure_multicast(const Options& options, Watch& watch) {
  Results results;
  try {
    Crowd crowd(options);
    results.title = fmt::format("one port to {}, until all have it, us", crowd.receivers());
    const std::vector<std::size_t> sizes = options.sizes();
    for (const std::size_t size : sizes) {
      if (!crowd.is_root()) {
        crowd.serve(size);
        continue;
      }
      watch.progress(results.rows.size(), sizes.size(), fmt::format("{} bytes", size));
      results.rows.push_back(crowd.measure(size));
    }
    crowd.leave();
  } catch (Failure& failure) {
    return tl::unexpected(std::move(failure.error));
  }
  return results;
}

ulfm::Error become_job(const Options& options, char** argv) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string launcher = self.parent_path() / "ulfmrun", program = self;
  const std::string count = fmt::format("{}", options.receivers + 1);
  std::vector<const char*> call{launcher.c_str(), "-n", count.c_str()};
  // The launcher makes an emulated interconnect, so it has to know.
  if (!options.transport.empty()) call.insert(call.end(), {"--transport", options.transport.c_str()});
  if (!options.topology.empty()) call.insert(call.end(), {"--topology", options.topology.c_str()});
  call.push_back(program.c_str());
  for (char** argument = argv + 1; *argument != nullptr; ++argument) call.push_back(*argument);
  call.push_back(nullptr);
  execv(launcher.c_str(), const_cast<char**>(call.data()));
  return ulfm::fail_errno(fmt::format("cannot start {}", launcher)).value();
}

}  // namespace perf
