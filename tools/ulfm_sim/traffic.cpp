#include "traffic.hpp"

#include <fmt/core.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>

#include "base/config.hpp"
#include "fabric/topology/topology.hpp"

namespace sim {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return parts;
}

template <typename Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Sizes of the dimensions, the fastest first: of a grid its own, of anything else one ring of all nodes.
std::vector<std::uint32_t> dimensions(const Topology& t) {
  std::vector<std::uint32_t> sizes;
  if ((t.shape == Shape::mesh || t.shape == Shape::torus) && t.nodes() == t.switches) {
    if (t.columns > 1) sizes.push_back(t.columns);
    if (t.rows > 1) sizes.push_back(t.rows);
  }
  if (t.shape == Shape::cube) sizes.assign(t.dimension, 2);
  if (sizes.empty()) sizes.push_back(t.nodes());
  return sizes;
}

/// Moves each coordinate of a node by a part of its ring.
template <typename Step>
std::uint32_t shifted(const std::vector<std::uint32_t>& sizes, std::uint32_t node, Step step) {
  std::uint32_t to = 0, weight = 1;
  for (const std::uint32_t size : sizes) {
    to += (node % size + step(size)) % size * weight;
    weight *= size;
    node /= size;
  }
  return to;
}

std::uint32_t reversed(std::uint32_t node, std::uint32_t bits) {
  std::uint32_t to = 0;
  for (std::uint32_t bit = 0; bit < bits; ++bit) to |= (node >> bit & 1) << (bits - 1 - bit);
  return to;
}

Result<std::vector<std::uint32_t>> read_permutation(const std::string& path, std::uint32_t nodes) {
  std::ifstream in(path);
  if (!in) return fail(Errc::not_found, fmt::format("permutation file {} cannot be opened", path));
  std::vector<std::uint32_t> to;
  for (std::string word; in >> word;) {
    std::uint32_t node = 0;
    if (!read(std::string_view(word), node) || node >= nodes)
      return fail(Errc::invalid, fmt::format("permutation file {}: \"{}\" is no node; the topology has 0 to {}", path,
                                             word.substr(0, 40), nodes - 1));
    to.push_back(node);
  }
  if (to.size() == nodes) return to;
  return fail(Errc::invalid, fmt::format("permutation file {} has {} numbers; it needs the destination of each of the "
                                         "{} nodes, in order (a node's own number: it does not send)",
                                         path, to.size(), nodes));
}

/// The name that a pattern has here: "bit-complement", "bit_reversal", "hot-spot", "neighbor" are used, too.
std::string usual_name(std::string_view name) {
  std::string usual;
  for (const char c : name)
    if (c != '-' && c != '_') usual += c;
  if (usual.starts_with("bit")) usual.erase(0, 3);
  return usual == "neighbor" ? "neighbour" : usual;
}

tl::unexpected<ulfm::Error> refuse(std::string_view text, const std::string& why) {
  return fail(Errc::invalid, fmt::format("pattern \"{}\": {}", text.substr(0, 80), why));
}

/// The permutations that are formulas. Empty: `name` is none of them.
Result<std::vector<std::uint32_t>> permutation(std::string_view name, std::string_view text, const Topology& t) {
  const std::uint32_t n = t.nodes(), bits = static_cast<std::uint32_t>(std::bit_width(n) - 1);
  const bool by_bits = name == "complement" || name == "reversal" || name == "shuffle";
  if (by_bits && !std::has_single_bit(n))
    return refuse(text, fmt::format("needs a power of two of nodes, and there are {}", n));
  const auto side = static_cast<std::uint32_t>(std::lround(std::sqrt(n)));
  if (name == "transpose" && side * side != n)
    return refuse(text, fmt::format("needs a square number of nodes, and there are {}", n));
  const auto sizes = dimensions(t);
  std::vector<std::uint32_t> to(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (name == "transpose") to[i] = i % side * side + i / side;
    else if (name == "complement") to[i] = n - 1 - i;
    else if (name == "reversal") to[i] = reversed(i, bits);
    else if (name == "shuffle") to[i] = n == 1 ? 0 : (i << 1 | i >> (bits - 1)) & (n - 1);
    else if (name == "tornado") to[i] = shifted(sizes, i, [](std::uint32_t k) { return (k + 1) / 2 - 1; });
    else if (name == "neighbour") to[i] = shifted(sizes, i, [](std::uint32_t) { return 1u; });
    else return std::vector<std::uint32_t>{};
  }
  return to;
}

constexpr const char* kPatterns =
    "uniform, transpose, complement, reversal, shuffle, tornado, neighbour, hotspot[:NODE[:SHARE]], incast[:NODE], "
    "permutation:FILE";

}  // namespace

Result<Pattern> Pattern::make(std::string_view text, const Topology& t) {
  Pattern made;
  made.text_ = text;
  made.nodes_ = made.senders_ = t.nodes();
  if (t.nodes() < 2) return refuse(text, "a topology with one node has nobody to send to");
  if (text == "uniform") return made;
  const auto parts = split(text, ':');
  const std::string name = usual_name(parts[0]);
  if (name == "hotspot" || name == "incast") {
    const bool all = name == "incast";
    made.hot_share_ = all ? 1 : 0.1;
    const bool good = parts.size() <= (all ? 2 : 3) && (parts.size() < 2 || read(parts[1], made.hot_)) &&
                      (parts.size() < 3 || read(parts[2], made.hot_share_));
    if (!good || made.hot_ >= t.nodes() || !(made.hot_share_ >= 0 && made.hot_share_ <= 1))
      return refuse(text,
                    fmt::format("write {}, with a node from 0 to {}{}", all ? "incast:NODE" : "hotspot:NODE:SHARE",
                                t.nodes() - 1, all ? "" : " and a share from 0 to 1"));
    if (!all) return made;
    made.to_.assign(t.nodes(), made.hot_);
  } else if (name == "permutation") {
    if (parts.size() < 2) return refuse(text, "write permutation:FILE");
    auto to = read_permutation(std::string(text.substr(text.find(':') + 1)), t.nodes());
    if (!to) return fail(std::move(to.error()));
    made.to_ = std::move(*to);
  } else {
    auto to = permutation(parts.size() == 1 ? name : std::string(text), text, t);
    if (!to) return fail(std::move(to.error()));
    if (to->empty()) return refuse(text, fmt::format("is none of {}", kPatterns));
    made.to_ = std::move(*to);
  }
  made.fixed_ = true;
  made.senders_ = 0;
  for (std::uint32_t i = 0; i < t.nodes(); ++i) made.senders_ += made.sends(i) ? 1 : 0;
  if (made.senders_ == 0) return refuse(text, "makes every node send to itself here, which is nothing");
  return made;
}

std::uint32_t Pattern::destination(std::uint32_t node, Random& random) const {
  if (fixed_) return to_[node];
  if (hot_share_ > 0 && random.unit() <= hot_share_ && node != hot_) return hot_;
  const std::uint32_t other = random.below(nodes_ - 1);
  return other < node ? other : other + 1;
}

double Pattern::share(std::uint32_t node, std::uint32_t to) const {
  if (node == to) return 0;
  if (fixed_) return to_[node] == to ? 1 : 0;
  const double hot = node == hot_ ? 0 : hot_share_;
  return (1 - hot) / (nodes_ - 1) + (to == hot_ ? hot : 0);
}

Result<Lengths> Lengths::make(std::string_view text, std::uint32_t most) {
  Lengths made;
  made.text_ = text;
  double shares = 0;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    const std::string_view range = part.substr(0, colon);
    const std::size_t dash = range.find('-');
    Range r{0, 0, 1};
    bool good = read(range.substr(0, dash), r.least);
    r.most = r.least;
    if (dash != std::string_view::npos) good = good && read(range.substr(dash + 1), r.most);
    if (colon != std::string_view::npos) good = good && read(part.substr(colon + 1), r.up_to);
    if (!good || r.least < 1 || r.most < r.least || r.most > most || !(r.up_to > 0 && r.up_to <= 1e9))
      return fail(Errc::invalid, fmt::format("length \"{}\": write 16, 4-64, or 4:0.9,256:0.1; a message has 1 to {} "
                                             "units, a share is above 0",
                                             text.substr(0, 80), most));
    made.mean_ += r.up_to * (r.least + r.most) / 2.0;
    r.up_to = shares += r.up_to;
    made.shortest_ = made.ranges_.empty() ? r.least : std::min(made.shortest_, r.least);
    made.ranges_.push_back(r);
  }
  for (Range& r : made.ranges_) r.up_to /= shares;
  made.mean_ /= shares;
  return made;
}

std::uint32_t Lengths::draw(Random& random) const {
  std::size_t i = 0;
  if (ranges_.size() > 1)
    for (const double u = random.unit(); i + 1 < ranges_.size() && u > ranges_[i].up_to;) ++i;
  const Range& r = ranges_[i];
  return r.least == r.most ? r.least : r.least + random.below(r.most - r.least + 1);
}

Result<Timing> Timing::make(std::string_view text) {
  Timing made;
  made.text_ = text;
  const auto parts = split(text, ':');
  if (text == "bernoulli") return made;
  made.periodic_ = text == "periodic";
  if (made.periodic_) return made;
  if (parts.size() == 3 && parts[0] == "burst" && read(parts[1], made.on_) && read(parts[2], made.off_) &&
      made.on_ >= 1 && made.off_ >= 0 && made.on_ <= 1e9 && made.off_ <= 1e9)
    return made;
  return fail(Errc::invalid,
              fmt::format("source \"{}\": write bernoulli, periodic, or burst:ON:OFF with mean cycles of "
                          "1 to 1e9 for ON and 0 to 1e9 for OFF",
                          text.substr(0, 80)));
}

Source::Source(const Timing& timing, double rate, std::uint64_t seed, std::uint32_t node)
    : timing_(&timing), random_(seed, node), rate_(timing.while_on(rate)), miss_(std::log1p(-std::min(rate_, 1.0))) {
  if (timing.periodic_) exact_ = random_.unit() / rate;
  if (timing.off_ > 0 && random_.unit() * (timing.on_ + timing.off_) <= timing.on_)
    on_until_ = random_.geometric(1 / timing.on_);
}

std::uint64_t Source::next() {
  constexpr std::uint64_t kNever = ~std::uint64_t{0}, kEnd = std::uint64_t{1} << 61;
  if (rate_ <= 0 || cycle_ >= kEnd) return kNever;
  if (timing_->periodic_) {
    cycle_ = static_cast<std::uint64_t>(exact_) + 1;
    exact_ += 1 / rate_;
    return cycle_;
  }
  cycle_ += random_.geometric_by(miss_);
  // What falls behind the end of a burst comes in the next one: the geometric distribution has no memory.
  while (timing_->off_ > 0 && cycle_ > on_until_ && cycle_ < kEnd) {
    const std::uint64_t begins = on_until_ + random_.geometric(1 / timing_->off_);
    on_until_ = begins + random_.geometric(1 / timing_->on_);
    cycle_ = begins + random_.geometric_by(miss_);
  }
  return cycle_;
}

}  // namespace sim
