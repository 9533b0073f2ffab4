#include "curves.hpp"

#include <fmt/core.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <optional>
#include <thread>

#include "base/config.hpp"

namespace sim {
namespace {

constexpr std::size_t kMostPoints = 10000;
constexpr int kSaturationRounds = 5, kSaturationPoints = 3;

std::vector<std::string> words_of(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(at);
    if (end != 0 && !text.empty()) parts.emplace_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return parts;
}

tl::unexpected<ulfm::Error> refuse_rate(const std::string& text) {
  return fail(Errc::invalid, fmt::format("--rate \"{}\": write FROM:TO:STEP, FROM:TO or one number, all above 0 and "
                                         "FROM not above TO, such as 0.05:0.5:0.05",
                                         text.substr(0, 80)));
}

Result<std::vector<double>> read_rates(const std::string& text) {
  std::vector<double> parts;
  for (const std::string& word : words_of(text, ':')) {
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size() || !(number > 0 && number < 1e9))
      return refuse_rate(text);
    parts.push_back(number);
  }
  if (parts.size() == 1) return parts;
  if (parts.size() == 2) parts.push_back((parts[1] - parts[0]) / 10);
  if (parts.size() != 3 || parts[0] > parts[1]) return refuse_rate(text);
  if (parts[0] == parts[1]) return std::vector<double>{parts[0]};
  const double steps = (parts[1] - parts[0]) / parts[2];
  if (steps > kMostPoints)
    return fail(Errc::too_large, fmt::format("--rate \"{}\" has more than {} points", text, kMostPoints));
  std::vector<double> rates;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(steps + 1e-9); ++i) {
    const double rate = parts[0] + static_cast<double>(i) * parts[2];
    rates.push_back(std::round(rate * 1e9) / 1e9);
  }
  return rates;
}

Result<ModelForm> form_of(const std::string& model) {
  if (model == "production") return ModelForm::production;
  if (model == "live") return ModelForm::live;
  if (model == "reference") return ModelForm::reference;
  return fail(Errc::invalid, fmt::format("model \"{}\": take production, live or reference", model.substr(0, 80)));
}

/// Changes one thing of a setting. A name that is no part of it is an option of the model.
Result<void> apply(Setting& s, const std::string& key, const std::string& value) {
  const std::pair<const char*, std::string Setting::*> texts[] = {
      {"transport", &Setting::transport}, {"topology", &Setting::topology}, {"pattern", &Setting::pattern},
      {"routing", &Setting::routing},     {"length", &Setting::length},     {"source", &Setting::source},
      {"model", &Setting::model},         {"rate", &Setting::rate}};
  for (const auto& [name, member] : texts)
    if (key == name) {
      s.*member = value;
      return {};
    }
  if (key == "seed" || key == "warmup" || key == "measure" || key == "drain") {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    const std::uint64_t least = key == "measure" ? 100 : key == "drain" ? 1 : 0;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool good = error == std::errc{} && end == value.data() + value.size();
    if (!good || (key != "seed" && (number < least || number > kMost)))
      return fail(Errc::invalid, fmt::format("{} \"{}\" is no whole number{}", key, value.substr(0, 80),
                                             key == "seed" ? "" : fmt::format(" from {} to {}", least, kMost)));
    if (key == "warmup") s.warmup = number;
    else (key == "seed" ? s.seed : key == "measure" ? s.measure : s.drain) = number;
    return {};
  }
  // The model says what is wrong with an option that it does not have; the same option again takes the place of the
  // old.
  std::string transport;
  for (const std::string& part : words_of(s.transport, ','))
    if (part.rfind(fmt::format("{}=", key), 0) != 0) transport += (transport.empty() ? "" : ",") + part;
  s.transport = fmt::format("{},{}={}", transport, key, value);
  return {};
}

struct Labelled {
  std::string label;
  Setting setting;
};

Result<std::pair<std::string, std::string>> pair_of(const std::string& word, const char* option) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
    return fail(Errc::invalid, fmt::format("{} \"{}\": write key=value, such as topology=torus:8x8 or fifo=128", option,
                                           word.substr(0, 80)));
  return std::pair{word.substr(0, equals), word.substr(equals + 1)};
}

Result<std::vector<Labelled>> swept(const std::vector<Labelled>& all, const std::string& text) {
  auto pair = pair_of(text, "--sweep");
  if (!pair) return fail(std::move(pair.error()));
  std::vector<Labelled> next;
  for (const Labelled& one : all)
    for (const std::string& value : words_of(pair->second, '|')) {
      Labelled made = one;
      if (auto ok = apply(made.setting, pair->first, value); !ok) return fail(std::move(ok.error()));
      made.label += fmt::format("{}{}={}", made.label.empty() ? "" : " ", pair->first, value);
      next.push_back(std::move(made));
    }
  return next;
}

Result<std::vector<Labelled>> settings_of(const Options& o) {
  std::vector<Labelled> all{{"", o.setting}};
  for (const std::string& text : o.sweep) {
    auto next = swept(all, text);
    if (!next) return fail(std::move(next.error()));
    all = std::move(*next);
  }
  for (const std::string& text : o.compare) {
    Labelled made{text, o.setting};
    for (const std::string& word : words_of(text, ' ')) {
      auto pair = pair_of(word, "--compare");
      if (!pair) return fail(std::move(pair.error()));
      if (auto ok = apply(made.setting, pair->first, pair->second); !ok) return fail(std::move(ok.error()));
    }
    all.push_back(std::move(made));
  }
  if (all.size() > 1 && all[0].label.empty())
    all[0].label = fmt::format("{} {} {}", o.setting.transport, o.setting.topology, o.setting.pattern);
  return all;
}

template <typename T>
bool take(T& to, Result<T>&& from, std::optional<ulfm::Error>& error) {
  if (from) to = std::move(*from);
  else error = std::move(from.error());
  return !error;
}

Result<void> fill(Curve& c, const Options& o) {
  Setting& s = c.setting;
  std::optional<ulfm::Error> error;
  bool made = take(c.topology, ulfm::fabric::read_topology(s.topology), error) &&
              take(c.subject, make_subject(s.transport, c.topology), error);
  if (made && s.length.empty()) s.length = fmt::format("{}", c.subject->usual_units());
  made = made && take(c.routing, make_routing(c.subject->routed() ? s.routing : "none", c.topology), error) &&
         take(c.pattern, Pattern::make(s.pattern, c.topology), error) &&
         take(c.lengths, Lengths::make(s.length, c.subject->most_units()), error) &&
         take(c.timing, Timing::make(s.source), error) &&
         take(c.rates, read_rates(s.rate.empty() ? o.rate : s.rate), error);
  if (!made) return fail(std::move(*error));
  for (const double rate : c.rates)
    if (c.timing.while_on(rate / c.lengths.mean()) > 1)
      return fail(Errc::invalid,
                  fmt::format("rate {}: a source makes at most one message a cycle, and this needs {:.3g} "
                              "of {:.4g} units",
                              rate, c.timing.while_on(rate / c.lengths.mean()), c.lengths.mean()));
  const auto form = form_of(s.model);
  if (!form) return fail(form.error());
  const std::uint64_t warmup = s.warmup.value_or(o.warmup), measure = s.measure != 0 ? s.measure : o.measure;
  c.load = {&c.topology,
            c.subject.get(),
            c.routing.get(),
            &c.pattern,
            &c.lengths,
            &c.timing,
            warmup,
            measure,
            s.drain != 0 ? s.drain : o.drain,
            s.seed,
            *form};
  c.cycle_ns = o.cycle_ns > 0 ? o.cycle_ns : c.subject->cycle_ns();
  c.bound = bound_of(c.load);
  return {};
}

/// A point by one form of the model, and, when asked for, by the others, which must say the same.
Result<Row> verified_point(const Load& load, double rate, bool with_use, bool verify) {
  auto row = run_point(load, rate, with_use);
  if (!row || !verify) return row;
  for (const ModelForm form : {ModelForm::production, ModelForm::live, ModelForm::reference}) {
    if (form == load.form) continue;
    Load other = load;
    other.form = form;
    const auto again = run_point(other, rate);
    if (!again) return fail(again.error());
    if (const std::string what = difference(*row, *again); !what.empty())
      return fail(Errc::protocol, fmt::format("simulation: at a rate of {} the models differ in {}", rate, what));
  }
  return row;
}

/// The first error of several points, by their order and not by who came first.
class Errors {
 public:
  explicit Errors(std::size_t count) : errors_(count) {}
  void set(std::size_t i, ulfm::Error error) { errors_[i] = std::move(error); }
  Result<void> first() {
    for (auto& error : errors_)
      if (error) return fail(std::move(*error));
    return {};
  }

 private:
  std::vector<std::optional<ulfm::Error>> errors_;
};

// Each round divides what is left into four; three points at a time whatever the number of threads, so that the result
// does not depend on it.
Result<void> find_saturation(Curve& c, unsigned threads, const std::function<void()>& progress) {
  const double most_made = c.lengths.mean() / c.timing.while_on(1);
  double low = 0, high = std::min(most_made, c.bound.rate > 0 ? c.bound.rate : 1.0);
  for (int round = 0; round < kSaturationRounds; ++round) {
    const double step = (high - low) / (kSaturationPoints + 1);
    bool settled[kSaturationPoints] = {};
    Errors errors(kSaturationPoints);
    in_parallel(kSaturationPoints, threads, [&](std::size_t i) {
      auto row = run_point(c.load, low + step * static_cast<double>(i + 1));
      if (row) settled[i] = row->settled;
      else errors.set(i, std::move(row.error()));
      progress();
    });
    if (auto ok = errors.first(); !ok) return ok;
    int good = 0;
    while (good < kSaturationPoints && settled[good]) ++good;
    low += step * good;
    high = low + step;
  }
  c.saturation = low;
  return {};
}

}  // namespace

Result<Curves> make_curves(const Options& options) {
  auto settings = settings_of(options);
  if (!settings) return fail(std::move(settings.error()));
  Curves curves;
  for (Labelled& one : *settings) {
    auto curve = std::make_unique<Curve>();
    curve->label = std::move(one.label);
    curve->setting = std::move(one.setting);
    if (auto ok = fill(*curve, options); !ok) return fail(std::move(ok.error()));
    curves.push_back(std::move(curve));
  }
  return curves;
}

unsigned threads_of(const Options& options) {
  return options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
}

// The last first: a curve's highest rates take longest, and nobody should wait for one of them at the end.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto loop = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(count - 1 - i);
  };
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) helpers.emplace_back(loop);
  loop();
  for (std::thread& helper : helpers) helper.join();
}

Result<void> simulate(Curves& curves, const Options& options,
                      const std::function<void(std::size_t, std::size_t)>& progress) {
  const unsigned threads = threads_of(options);
  struct Point {
    std::size_t curve, row;
  };
  std::vector<Point> points;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    curves[c]->rows.resize(curves[c]->rates.size());
    for (std::size_t r = 0; r < curves[c]->rates.size(); ++r) points.push_back({c, r});
  }
  Errors errors(points.size());
  std::atomic<std::size_t> done = 0;
  const std::size_t to_do =
      points.size() + (options.saturation ? curves.size() * kSaturationRounds * kSaturationPoints : 0);
  const auto report = [&] { progress(done.fetch_add(1) + 1, to_do); };
  // The last points of a curve take longest: they are begun first.
  in_parallel(points.size(), threads, [&](std::size_t i) {
    const std::size_t place = points.size() - 1 - i;
    Curve& c = *curves[points[place].curve];
    const std::size_t r = points[place].row;
    const bool with_use = !options.links.empty() && place + 1 == points.size();
    auto row = verified_point(c.load, c.rates[r], with_use, options.verify);
    if (row) c.rows[r] = std::move(*row);
    else errors.set(place, std::move(row.error()));
    report();
  });
  if (auto ok = errors.first(); !ok) return ok;
  for (auto& curve : curves)
    if (options.saturation)
      if (auto ok = find_saturation(*curve, threads, report); !ok) return ok;
  return {};
}

}  // namespace sim
