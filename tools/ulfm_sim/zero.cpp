// Without load: every pair of nodes, each alone in a new network, beside the closed form.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "report.hpp"

namespace sim {
namespace {

/// Pairs that are taken when nobody asks for all: each has a network of its own, which takes time by its size.
std::uint64_t most_pairs(const Topology& t) { return std::clamp<std::uint64_t>(100'000'000 / channels(t), 100, 20000); }

/// Cycles of one message that has the network to itself.
Result<std::uint64_t> alone(const Curve& c, std::uint32_t from, std::uint32_t to, std::uint32_t units,
                            const Route& way) {
  auto network = c.subject->make(1, c.load.form);
  if (!network) return fail(std::move(network.error()));
  std::vector<Ending> endings;
  constexpr std::uint64_t kPatience = 1u << 26;
  if ((*network)->inject(0, from, to, units, way))
    for (std::uint64_t until = 64; endings.empty() && until <= kPatience; until *= 2) (*network)->run(until, endings);
  if (endings.size() == 1 && endings[0].delivered && endings[0].node == to) return endings[0].cycle;
  return fail(Errc::protocol,
              fmt::format("a message alone in the network did not get from node {} to node {}", from, to));
}

struct Found {
  std::uint64_t pairs = 0, differ = 0, least = ~std::uint64_t{0}, most = 0, sum = 0;
  std::string first;  ///< difference
  bool closed_form = true;
  std::optional<ulfm::Error> error;
};

/// The pairs whose number is a multiple of `stride`, among those from one node.
Found pairs_from(const Curve& c, std::uint32_t from, std::uint64_t stride) {
  const std::uint64_t nodes = c.topology.nodes(), begin = from * nodes;
  const std::uint32_t units = c.lengths.typical();
  const auto routing = c.routing->clone();
  Random random(c.setting.seed, from);
  Found found;
  Route way;
  for (std::uint64_t pair = (begin + stride - 1) / stride * stride; pair < begin + nodes; pair += stride) {
    const auto to = static_cast<std::uint32_t>(pair - begin);
    if (from == to) continue;
    routing->way(from, to, random, way);
    const auto cycles = alone(c, from, to, units, way);
    if (!cycles) {
      found.error = cycles.error();
      return found;
    }
    const std::uint64_t expected = c.subject->zero_load(from, to, units, way, 1);
    ++found.pairs;
    found.sum += *cycles;
    found.least = std::min(found.least, *cycles);
    found.most = std::max(found.most, *cycles);
    if (expected == 0) found.closed_form = false;
    if (*cycles == expected || expected == 0) continue;
    if (found.differ++ == 0)
      found.first = fmt::format("n{} to n{}: {} cycles, and {} by the closed form", from, to, *cycles, expected);
  }
  return found;
}

Result<Found> find_pairs(const Curve& c, const Options& o) {
  const std::uint64_t nodes = c.topology.nodes();
  const std::uint64_t stride = o.all_pairs ? 1 : nodes * nodes / most_pairs(c.topology) + 1;
  std::vector<Found> parts(nodes);
  in_parallel(nodes, threads_of(o),
              [&](std::size_t from) { parts[from] = pairs_from(c, static_cast<std::uint32_t>(from), stride); });
  Found all;
  for (Found& part : parts) {
    if (part.error) return fail(std::move(*part.error));
    all.pairs += part.pairs;
    all.differ += part.differ;
    all.sum += part.sum;
    all.least = std::min(all.least, part.least);
    all.most = std::max(all.most, part.most);
    all.closed_form = all.closed_form && part.closed_form;
    if (all.first.empty()) all.first = std::move(part.first);
  }
  return all;
}

}  // namespace

Result<Zero> run_zero(const Options& options) {
  Options asked = options;
  asked.rate = "0.001";
  auto curves = make_curves(asked);
  if (!curves) return fail(std::move(curves.error()));
  const Curve& c = *curves->front();
  auto found = find_pairs(c, options);
  if (!found) return fail(std::move(found.error()));
  const double mean = static_cast<double>(found->sum) / static_cast<double>(std::max<std::uint64_t>(1, found->pairs));
  Zero zero{"", found->pairs, found->differ};
  if (options.json) {
    const nlohmann::ordered_json json{{"transport", c.setting.transport}, {"topology", c.setting.topology},
                                      {"units", c.lengths.typical()},     {"pairs", found->pairs},
                                      {"latency_min", found->least},      {"latency_mean", mean},
                                      {"latency_max", found->most},       {"closed_form", found->closed_form},
                                      {"differ", found->differ}};
    zero.text = fmt::format("{}\n", json.dump(2));
    return zero;
  }
  zero.text = fmt::format("{} over {}, {} {}s: {} pairs of nodes, each alone: {} to {} cycles, {:.2f} on average\n",
                          c.setting.transport, c.setting.topology, c.lengths.typical(), c.subject->unit(), found->pairs,
                          found->least, found->most, mean);
  zero.text += !found->closed_form ? "the model has no closed form\n"
               : found->differ == 0
                   ? "all as the closed form says\n"
                   : fmt::format("{} differ from the closed form; the first: {}\n", found->differ, found->first);
  return zero;
}

}  // namespace sim
