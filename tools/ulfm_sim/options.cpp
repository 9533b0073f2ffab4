#include "options.hpp"

#include <ulfm/ulfm.h>

#include <charconv>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "../common/command_line.hpp"

namespace sim {
namespace {

void declare_setting(CLI::App& command, Setting& s) {
  command.add_option("-t,--transport", s.transport, "model and its options, such as xswitch,fifo=128; or FILE.so");
  command.add_option("-T,--topology", s.topology, "shape such as mesh:8x8, or a TOML file: see ulfm-topology(5)");
  command.add_option("--routing", s.routing,
                     "default, updown, nonminimal:N (N links more than the shortest), or FILE.so");
  command.add_option("-l,--length", s.length, "units of a message: 16, 4-64, or 4:0.9,256:0.1");
  command
      .add_option("--model", s.model,
                  "production, live (the form that carries programs), or reference: cycle by cycle, slow")
      ->check(CLI::IsMember({"production", "live", "reference"}));
}

/// CLI11 takes what does not fit for the nearest number that does.
std::string seed_problem(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc{} && end == text.data() + text.size();
  return good ? "" : "a whole number from 0 to 18446744073709551615 is needed";
}

void declare_load(CLI::App& load, Options& o) {
  Setting& s = o.setting;
  declare_setting(load, s);
  load.add_option("-p,--pattern", s.pattern,
                  "uniform, transpose, complement, reversal, shuffle, tornado, neighbour, hotspot[:NODE[:SHARE]], "
                  "incast[:NODE], permutation:FILE");
  load.add_option("-r,--rate", o.rate, "units a node and cycle: FROM:TO[:STEP], or one number");
  load.add_option("--source", s.source, "bernoulli, periodic, or burst:ON:OFF (mean cycles)");
  load.add_option("--seed", s.seed, "of all random numbers")->check(CLI::Validator(seed_problem, ""));
  load.add_option("--warmup", o.warmup, "cycles before the window")->check(CLI::Range(0ull, 1ull << 40));
  load.add_option("--measure", o.measure, "cycles of the window")->check(CLI::Range(100ull, 1ull << 40));
  load.add_option("--drain", o.drain, "cycles, at most, until its last message has come")
      ->check(CLI::Range(1ull, 1ull << 40));
  load.add_option("--compare", o.compare, "one more curve: \"topology=torus:8x8 pattern=tornado\"; again for another");
  load.add_option("--sweep", o.sweep,
                  "a curve for each value: \"fifo=32|64|128\", \"length=16|64\"; again for every combination");
  load.add_flag("--saturation", o.saturation, "search the highest rate that settles");
  load.add_flag("--json", o.json, "one JSON object");
  load.add_flag("--csv", o.csv, "comma-separated values");
  load.add_option("--svg", o.svg, "write the curves to this file");
  load.add_option("--links", o.links, "write a picture of how busy links are at the last rate to this file");
  load.add_option("--cycle-ns", o.cycle_ns, "nanoseconds of a cycle, for the columns in us")
      ->check(CLI::Range(1e-6, 1e9));
  load.add_option("-j,--threads", o.threads, "points simulated at a time; the result is the same")
      ->check(CLI::Range(1u, 1024u));
  load.add_flag("--verify", o.verify, "simulate each point by the other models, too: every figure must be the same");
  load.add_flag("--timing", o.timing, "add how long it took, and unit-hops a second");
  load.add_flag("--strict", o.strict, "exit code 3 when a point does not settle");
  load.add_flag("-q,--quiet", o.quiet, "no progress, no warnings");
}

}  // namespace

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app{"Simulates interconnects under synthetic load", "ulfm_sim"};
  app.set_version_flag("--version", fmt::format("ulfm_sim {}", ulfm_version()));
  app.require_subcommand(1);
  auto* load = app.add_subcommand("load", "latency and accepted throughput against offered load");
  auto* zero = app.add_subcommand("zero", "latency of every pair of nodes without load, beside the closed form");
  declare_load(*load, options);
  declare_setting(*zero, options.setting);
  zero->add_flag("--all", options.all_pairs, "every pair, also where there are more than 20000");
  zero->add_option("-j,--threads", options.threads, "pairs at a time")->check(CLI::Range(1u, 1024u));
  zero->add_flag("--json", options.json, "one JSON object");
  app.footer(
      "Example: ulfm_sim load -T mesh:8x8 -r 0.02:0.2:0.02 --svg mesh.svg\n"
      "Exit code: 1 when the result cannot be trusted or written, 2 for a wrong command line, 3 with --strict when a\n"
      "point does not settle. Manual: ulfm_sim(1).");
  if (const auto code = tools::parse(app, argc, argv)) return code;
  options.command = app.get_subcommands().front()->get_name();
  if (options.json && options.csv) return tools::complain(app, "--json and --csv are two forms: take one");
  return std::nullopt;
}

}  // namespace sim
