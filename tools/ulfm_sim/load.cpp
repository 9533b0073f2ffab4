#include "load.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <new>
#include <tuple>

#include "due.hpp"

namespace sim {
namespace {

constexpr std::uint64_t kSampleEvery = 61;  // cycles; a prime, so that it beats with nothing
constexpr std::size_t kBatches = 20;
constexpr double kStudent = 2.093;  // 97.5 % of t with 19 degrees of freedom
constexpr std::uint64_t kSendsNever = ~std::uint64_t{0};
constexpr std::uint32_t kMostFrames = 1u << 22;

/// Of this thread.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Message that the network has, by frame.
struct Flying {
  std::uint64_t made;
  std::uint32_t units;
  std::uint32_t hops;
};

/// Message that waits because its node has as many in the network as its window takes.
struct Waiting {
  std::uint64_t made;
  std::uint32_t to, units;
};

struct Measured {
  std::uint64_t made, latency;
};

/// Ways of messages. Where a pair of nodes has one way only, and there are not too many pairs, it is found once.
class Ways {
 public:
  Ways(const Routing& routing, std::uint32_t nodes)
      : routing_(routing.clone()), nodes_(nodes), room_(std::min(routing.longest(), 255u) + 1) {
    constexpr std::size_t kMost = std::size_t{1} << 22;  // bytes
    const std::size_t bytes = std::size_t{nodes} * nodes * room_;
    if (routing.is_fixed() && routing.longest() < 256 && bytes <= kMost) found_.resize(bytes);
  }
  std::span<const std::uint8_t> way(std::uint32_t from, std::uint32_t to, Random& random) {
    if (found_.empty()) {
      routing_->way(from, to, random, way_);
      return way_;
    }
    std::uint8_t* const place = &found_[(std::size_t{from} * nodes_ + to) * room_];  // length, ports
    if (place[0] == 0) {
      routing_->way(from, to, random, way_);
      place[0] = static_cast<std::uint8_t>(way_.size());
      std::copy(way_.begin(), way_.end(), place + 1);
    }
    return {place + 1, place[0]};
  }

 private:
  std::unique_ptr<Routing> routing_;
  std::uint32_t nodes_, room_;
  Route way_;
  std::vector<std::uint8_t> found_;
};

class Run {
 public:
  Run(const Load& load, double rate)
      : l_(load), t_(*load.topology), ways_(*load.routing, t_.nodes()), due_(t_.nodes()) {
    const std::uint32_t nodes = t_.nodes();
    window_ = l_.subject->window(l_.lengths->shortest(), l_.routing->longest());
    window_ = std::max(2u, std::min(window_, kMostFrames / nodes));
    per_message_ = rate / l_.lengths->mean();
    from_ = 1 + l_.warmup;
    to_ = from_ + l_.measure;
    row_.offered = rate;
    flying_.resize(std::size_t{window_} * nodes);
    owner_.resize(flying_.size());
    outside_.resize(nodes);
    in_network_.assign(nodes, 0);
    for (std::uint32_t n = 0; n < nodes; ++n) sources_.emplace_back(*l_.timing, per_message_, l_.seed, n);
    for (std::uint32_t f = static_cast<std::uint32_t>(flying_.size()); f-- > 0;) free_.push_back(f);
  }

  Result<Row> go(bool with_use) {
    const double begin = cpu_seconds();
    auto made = l_.subject->make(static_cast<std::uint32_t>(flying_.size()), l_.form);
    if (!made) return fail(std::move(made.error()));
    network_ = std::move(*made);
    for (std::uint32_t n = 0; n < t_.nodes(); ++n)
      if (const std::uint64_t at = l_.pattern->sends(n) ? sources_[n].next() : kSendsNever; at != kSendsNever)
        due_.put(n, at);
    through(from_);
    const auto before = with_use ? network_->busy() : std::vector<std::uint64_t>{};
    through(to_);
    if (with_use) use_since(before);
    drain();
    if (auto ok = check(); !ok) return fail(std::move(ok.error()));
    sum_up();
    row_.seconds = cpu_seconds() - begin;
    return std::move(row_);
  }

 private:
  /// Everything that happens before cycle `end`.
  void through(std::uint64_t end) {
    while (wrong_.empty()) {
      const std::uint64_t next = std::min(end, due_.next());
      while (sample_at_ <= next) {
        advance(sample_at_);
        sample();
      }
      advance(next);
      if (next == end) return;
      due_.take(next, [&](std::uint32_t node) {
        std::uint64_t again = next;
        for (; again == next; again = sources_[node].next()) make(node, next);
        if (again != kSendsNever) due_.put(node, again);
      });
    }
  }

  void make(std::uint32_t node, std::uint64_t cycle) {
    Random& random = sources_[node].random();
    const Waiting message{cycle, l_.pattern->destination(node, random), l_.lengths->draw(random)};
    ++made_;
    if (in_window(cycle)) {
      ++to_measure_;
      units_made_ += message.units;
    }
    if (outside_[node].empty() && in_network_[node] < window_) return send(node, message);
    outside_[node].push_back(message);
    ++waiting_;
  }

  void send(std::uint32_t node, const Waiting& message) {
    const std::span<const std::uint8_t> way = ways_.way(node, message.to, sources_[node].random());
    const FrameId frame = free_.back();
    free_.pop_back();
    ++in_network_[node];
    owner_[frame] = node;
    flying_[frame] = {message.made, message.units, static_cast<std::uint32_t>(way.size())};
    if (!network_->inject(frame, node, message.to, message.units, way))
      wrong_ = fmt::format("the model refused a message of {} units from node {} to node {}", message.units, node,
                           message.to);
  }

  void advance(std::uint64_t until) {
    endings_.clear();
    reached_ = until;
    network_->run(until, endings_);
    left_.clear();
    for (const Ending& ending : endings_) {
      left_.push_back(owner_[ending.frame]);
      end(ending);
    }
    for (const std::uint32_t node : left_)  // what they send may have the number of a frame that has just ended
      while (!outside_[node].empty() && in_network_[node] < window_) {
        const Waiting message = outside_[node].front();
        outside_[node].pop_front();
        --waiting_;
        send(node, message);
      }
  }

  void end(const Ending& ending) {
    const Flying& message = flying_[ending.frame];
    const std::uint64_t latency = ending.cycle + 1 - message.made;
    if (!ending.delivered) wrong_ = "the network lost a message, and no fault was asked for";
    in_samples_ += samples_by(ending.cycle) - samples_by(message.made);
    ++ended_;
    --in_network_[owner_[ending.frame]];
    free_.push_back(ending.frame);
    if (in_window(ending.cycle)) {
      units_accepted_ += message.units;
      ++accepted_;
      accepted_time_ += latency;
    }
    if (!in_window(message.made)) return;
    measured_.push_back({message.made, latency});
    hops_ += message.hops;
    if (ending.begun != 0) network_time_ += ending.cycle + 1 - ending.begun;
    else knows_begin_ = false;
  }

  /// Samples in cycles up to this one.
  std::uint64_t samples_by(std::uint64_t cycle) const { return cycle == 0 ? 0 : (cycle - 1) / kSampleEvery; }
  bool in_window(std::uint64_t cycle) const { return cycle >= from_ && cycle < to_; }
  std::uint64_t inside() const { return network_->inside() + waiting_; }

  /// How many messages there are now, by the model's own count.
  void sample() {
    const std::uint64_t there = inside();
    sampled_ += there;
    ++samples_;
    if (in_window(sample_at_)) inside_sum_ += static_cast<double>(there), ++inside_samples_;
    sample_at_ += kSampleEvery;
  }

  // Sources go on, so that the last measured messages meet the same load as the first.
  void drain() {
    const std::uint64_t limit = to_ + l_.drain, step = std::max<std::uint64_t>(l_.drain / 64, 1);
    for (std::uint64_t end = to_; measured_.size() < to_measure_ && end < limit && wrong_.empty();)
      through(end = std::min(limit, end + step));
    row_.cycles = reached_ - 1;
  }

  void use_since(const std::vector<std::uint64_t>& before) {
    const auto now = network_->busy();
    for (std::size_t i = 0; i < now.size(); ++i)
      row_.use.push_back(static_cast<double>(now[i] - before[i]) / static_cast<double>(l_.measure));
  }

  // What the run itself says and what the model says must be the same, to the message. In the samples the model counted
  // messages; by the times of their making and ending they were there in so many samples.
  Result<void> check() {
    if (!wrong_.empty()) return fail(Errc::protocol, fmt::format("simulation: {}", wrong_));
    if (std::string text = network_->imbalance(); !text.empty())
      return fail(Errc::protocol, fmt::format("simulation: {}", text));
    if (made_ != ended_ + inside())
      return fail(Errc::protocol, fmt::format("simulation: {} messages were made, {} ended and {} are there: some are "
                                              "not accounted for",
                                              made_, ended_, inside()));
    const std::uint64_t last = samples_by(sample_at_ - kSampleEvery);
    std::uint64_t expected = in_samples_;
    std::vector<bool> idle(flying_.size(), false);
    for (const FrameId frame : free_) idle[frame] = true;
    for (FrameId f = 0; f < flying_.size(); ++f)
      if (!idle[f]) expected += last - std::min(last, samples_by(flying_[f].made));
    for (const auto& queue : outside_)
      for (const Waiting& message : queue) expected += last - std::min(last, samples_by(message.made));
    if (expected == sampled_) return {};
    return fail(Errc::protocol, fmt::format("simulation: Little's law does not hold: {} messages in {} samples by the "
                                            "model's count, {} by their times",
                                            sampled_, samples_, expected));
  }

  void sum_up() {
    const double nodes = l_.pattern->senders(), cycles = static_cast<double>(l_.measure);
    row_.made = static_cast<double>(units_made_) / nodes / cycles;
    row_.accepted = static_cast<double>(units_accepted_) / nodes / cycles;
    row_.messages = measured_.size();
    row_.unit_hops = network_->unit_hops();
    row_.inside = inside_samples_ == 0 ? 0 : inside_sum_ / static_cast<double>(inside_samples_);
    row_.little = static_cast<double>(accepted_time_) / cycles;
    if (!measured_.empty()) {
      const auto count = static_cast<double>(measured_.size());
      row_.hops = static_cast<double>(hops_) / count;
      if (knows_begin_) row_.network = static_cast<double>(network_time_) / count;
      latencies();
    }
    classify();
  }

  void latencies() {
    std::vector<std::uint64_t> all;
    double sum = 0, batch_sum[kBatches] = {}, batch_count[kBatches] = {};
    for (const Measured& m : measured_) {
      all.push_back(m.latency);
      sum += static_cast<double>(m.latency);
      const std::size_t batch = (m.made - from_) * kBatches / l_.measure;
      batch_sum[batch] += static_cast<double>(m.latency);
      ++batch_count[batch];
    }
    Latency& out = row_.latency;
    out.mean = sum / static_cast<double>(all.size());
    const auto quantile = [&](double q) {
      const auto place = static_cast<std::size_t>(std::ceil(q * static_cast<double>(all.size()))) - 1;
      std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(place), all.end());
      return static_cast<double>(all[place]);
    };
    out.p50 = quantile(0.5);
    out.p99 = quantile(0.99);
    out.max = static_cast<double>(*std::max_element(all.begin(), all.end()));
    double batches = 0, mean = 0, squares = 0;
    for (std::size_t i = 0; i < kBatches; ++i)
      if (batch_count[i] > 0) ++batches, mean += batch_sum[i] / batch_count[i];
    mean /= batches;
    for (std::size_t i = 0; i < kBatches; ++i)
      if (batch_count[i] > 0) squares += std::pow(batch_sum[i] / batch_count[i] - mean, 2);
    out.half_width = batches < 2 ? 0 : kStudent * std::sqrt(squares / (batches - 1) / batches);
    const auto third = [&](std::size_t first) {
      double part = 0, of = 0;
      for (std::size_t i = first; i < first + kBatches / 3; ++i) part += batch_sum[i], of += batch_count[i];
      return of == 0 ? 0 : part / of;
    };
    early_ = third(0);
    late_ = third(kBatches - kBatches / 3);
  }

  // The three rules of a point that has settled.
  void classify() {
    const double missing = row_.made - row_.accepted;
    const double noise =
        4 * l_.lengths->mean() * std::sqrt(static_cast<double>(std::max<std::uint64_t>(1, to_measure_)));
    const double slack = 0.05 * row_.made + noise / l_.pattern->senders() / static_cast<double>(l_.measure);
    if (measured_.size() < to_measure_)
      row_.why = fmt::format("{} of {} measured messages had not arrived {} cycles after the window",
                             to_measure_ - measured_.size(), to_measure_, l_.drain);
    else if (missing > slack) row_.why = "messages came faster than they were delivered";
    else if (late_ > 1.25 * early_ + 3 * row_.latency.half_width) row_.why = "latency was still rising in the window";
    row_.settled = row_.why.empty() && row_.messages > 0;
    if (row_.messages == 0 && row_.why.empty()) row_.why = "no message was made in the window";
  }

  const Load& l_;
  const Topology& t_;
  Ways ways_;
  Row row_;
  std::unique_ptr<SubjectNetwork> network_;
  std::uint32_t window_ = 0;
  double per_message_ = 0;
  std::uint64_t from_ = 0, to_ = 0, reached_ = 1;
  std::vector<Source> sources_;
  DueNodes due_;
  std::vector<Flying> flying_;
  std::vector<std::uint32_t> owner_, free_, in_network_, left_;
  std::vector<std::deque<Waiting>> outside_;
  std::vector<Ending> endings_;
  std::vector<Measured> measured_;
  std::string wrong_;
  std::uint64_t made_ = 0, ended_ = 0, waiting_ = 0, to_measure_ = 0;
  std::uint64_t units_made_ = 0, units_accepted_ = 0, accepted_ = 0, accepted_time_ = 0;
  std::uint64_t hops_ = 0, network_time_ = 0;
  bool knows_begin_ = true;
  std::uint64_t sample_at_ = 1 + kSampleEvery, samples_ = 0, sampled_ = 0, in_samples_ = 0, inside_samples_ = 0;
  double inside_sum_ = 0, early_ = 0, late_ = 0;
};

}  // namespace

Result<Row> run_point(const Load& load, double rate, bool with_use) {
  try {
    return Run(load, rate).go(with_use);
  } catch (const std::bad_alloc&) {
    return fail(Errc::no_memory,
                "the simulation has no memory; take a smaller topology, fewer --threads or a shorter "
                "--measure");
  }
}

std::string difference(const Row& a, const Row& b) {
  const std::tuple<const char*, double, double> figures[] = {
      {"made", a.made, b.made},
      {"accepted", a.accepted, b.accepted},
      {"latency_mean", a.latency.mean, b.latency.mean},
      {"latency_ci95", a.latency.half_width, b.latency.half_width},
      {"latency_p50", a.latency.p50, b.latency.p50},
      {"latency_p99", a.latency.p99, b.latency.p99},
      {"latency_max", a.latency.max, b.latency.max},
      {"network_mean", a.network, b.network},
      {"hops_mean", a.hops, b.hops},
      {"messages", static_cast<double>(a.messages), static_cast<double>(b.messages)},
      {"settled", a.settled ? 1 : 0, b.settled ? 1 : 0},
      {"cycles", static_cast<double>(a.cycles), static_cast<double>(b.cycles)},
      {"unit_hops", static_cast<double>(a.unit_hops), static_cast<double>(b.unit_hops)},
      {"inside_mean", a.inside, b.inside},
      {"little", a.little, b.little}};
  for (const auto& [name, one, other] : figures)
    if (one != other) return fmt::format("{}: {} and {}", name, one, other);
  return "";
}

Bound bound_of(const Load& load) {
  constexpr std::uint64_t kMostPairs = 1u << 22;
  const Topology& t = *load.topology;
  const std::uint32_t nodes = t.nodes();
  if (!load.pattern->is_fixed() && std::uint64_t{nodes} * nodes > kMostPairs) return {};
  std::vector<double> cycles(channels(t), 0), messages(channels(t), 0);
  Random random(1, 0);
  const auto routing = load.routing->clone();
  Route way;
  for (std::uint32_t from = 0; from < nodes; ++from)
    for (std::uint32_t to = 0; to < nodes; ++to) {
      const double share = load.pattern->share(from, to);
      if (share == 0) continue;
      routing->way(from, to, random, way);
      for (const Use& use : load.subject->uses(from, to, load.lengths->typical(), way)) {
        cycles[use.channel] += share * use.cycles;
        messages[use.channel] += share;
      }
    }
  const double most = *std::max_element(cycles.begin(), cycles.end());
  if (most == 0) return {};  // the model does not say what it uses
  return {load.lengths->mean() / most, *std::max_element(messages.begin(), messages.end())};
}

}  // namespace sim
