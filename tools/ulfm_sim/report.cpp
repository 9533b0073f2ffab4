#include "report.hpp"

#include <fmt/core.h>
#include <ulfm/ulfm.h>
#include <nlohmann/json.hpp>

namespace sim {
namespace {

using Json = nlohmann::ordered_json;

Json row_of(const Curve& c, const Row& r, bool timing) {
  const auto us = [&](double cycles) { return cycles * c.cycle_ns / 1000; };
  const Latency& l = r.latency;
  Json row{{"series", c.label},
           {"offered", r.offered},
           {"made", r.made},
           {"accepted", r.accepted},
           {"latency_mean", l.mean},
           {"latency_p50", l.p50},
           {"latency_p99", l.p99},
           {"latency_max", l.max},
           {"latency_ci95", l.half_width},
           {"latency_mean_us", us(l.mean)},
           {"latency_p50_us", us(l.p50)},
           {"latency_p99_us", us(l.p99)},
           {"latency_max_us", us(l.max)}};
  row["network_mean"] = r.network > 0 ? Json(r.network) : Json();
  row["hops_mean"] = r.hops;
  row["messages"] = r.messages;
  row["settled"] = r.settled;
  if (!r.settled) row["why"] = r.why;
  row["inside_mean"] = r.inside;
  row["little"] = r.little;
  row["cycles"] = r.cycles;
  row["unit_hops"] = r.unit_hops;
  if (timing) {
    row["seconds"] = r.seconds;
    row["cycles_per_second"] = static_cast<double>(r.cycles) / r.seconds;
    row["unit_hops_per_second"] = static_cast<double>(r.unit_hops) / r.seconds;
  }
  return row;
}

Json series_of(const Curve& c) {
  const Setting& s = c.setting;
  Json series{{"label", c.label},
              {"transport", s.transport},
              {"topology", s.topology},
              {"nodes", c.topology.nodes()},
              {"pattern", s.pattern},
              {"senders", c.pattern.senders()},
              {"routing", s.routing},
              {"length", s.length},
              {"source", s.source},
              {"model", s.model},
              {"seed", s.seed},
              {"unit", c.subject->unit()},
              {"cycle_ns", c.cycle_ns},
              {"warmup", c.load.warmup},
              {"measure", c.load.measure},
              {"drain", c.load.drain}};
  series["bound"] = c.bound.rate > 0 ? Json(c.bound.rate) : Json();
  series["channel_load"] = c.bound.rate > 0 ? Json(c.bound.channel_load) : Json();
  if (c.saturation > 0) series["saturation"] = c.saturation;
  return series;
}

std::string head_of(const Curve& c) {
  const Setting& s = c.setting;
  std::string text = c.label.empty() ? "" : fmt::format("{}\n", c.label);
  text += fmt::format("{} over {}, {} nodes, {} traffic, messages of {} {}s, {} sources, seed {}\n", s.transport,
                      s.topology, c.topology.nodes(), s.pattern, s.length, c.subject->unit(), s.source, s.seed);
  if (c.bound.rate > 0)
    text += fmt::format("no rate above {:.4f} can settle: the busiest channel carries {:.3g} of what a node sends\n",
                        c.bound.rate, c.bound.channel_load);
  return text;
}

}  // namespace

std::string table_of(const Curves& curves, const Options& options) {
  std::string text;
  for (const auto& curve : curves) {
    const Curve& c = *curve;
    text += head_of(c);
    text += fmt::format("{:>9} {:>9} {:>11} {:>9} {:>8} {:>8} {:>9} {:>11} {:>9}{}\n", "offered", "accepted", "latency",
                        "+-95%", "p50", "p99", "max", "us", "messages", options.timing ? "   unit-hops/s" : "");
    for (const Row& r : c.rows) {
      text += fmt::format("{:9.4f} {:9.4f} {:11.2f} {:9.2f} {:8.0f} {:8.0f} {:9.0f} {:11.3f} {:9}", r.offered,
                          r.accepted, r.latency.mean, r.latency.half_width, r.latency.p50, r.latency.p99, r.latency.max,
                          r.latency.mean * c.cycle_ns / 1000, r.messages);
      if (options.timing) text += fmt::format(" {:13.4g}", static_cast<double>(r.unit_hops) / r.seconds);
      text += r.settled ? "\n" : "  not settled\n";
    }
    if (c.saturation > 0) text += fmt::format("saturation: {:.4f} units a node and cycle\n", c.saturation);
    text += "\n";
  }
  text.pop_back();
  if (options.timing) text += fmt::format("\nmost memory at one time: {:.1f} MiB\n", most_memory() / 1048576.0);
  return text;
}

std::string json_of(const Curves& curves, const Options& options) {
  Json all{{"tool", "ulfm_sim"},         {"version", ulfm_version()}, {"warmup", options.warmup},
           {"measure", options.measure}, {"drain", options.drain},    {"series", Json::array()},
           {"rows", Json::array()}};
  if (options.timing) all["memory_MiB"] = most_memory() / 1048576.0;
  for (const auto& curve : curves) {
    all["series"].push_back(series_of(*curve));
    for (const Row& row : curve->rows) all["rows"].push_back(row_of(*curve, row, options.timing));
  }
  return fmt::format("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string csv_of(const Curves& curves) {
  std::string text =
      "series,transport,topology,pattern,routing,length,source,seed,offered,made,accepted,latency_mean,latency_ci95,"
      "latency_p50,latency_p99,latency_max,latency_mean_us,latency_p50_us,latency_p99_us,network_mean,hops_mean,"
      "messages,settled\n";
  const auto quoted = [](const std::string& field) {
    std::string out = "\"";
    for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
    return fmt::format("{}\"", out);
  };
  for (const auto& curve : curves)
    for (const Row& r : curve->rows) {
      const Setting& s = curve->setting;
      for (const std::string& field : {curve->label, s.transport, s.topology, s.pattern, s.routing, s.length, s.source})
        text += fmt::format("{},", quoted(field));
      const Latency& l = r.latency;
      const double us = curve->cycle_ns / 1000;
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", s.seed, r.offered, r.made, r.accepted,
                          l.mean, l.half_width, l.p50, l.p99, l.max, l.mean * us, l.p50 * us, l.p99 * us, r.network,
                          r.hops, r.messages, r.settled ? "true" : "false");
    }
  return text;
}

}  // namespace sim
