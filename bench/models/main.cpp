// How fast the models are by themselves: the same messages through every form of every model in fabric/models.hpp, no
// program around them. ulfm_sim's subjects have the forms of each model behind one interface.
// Lines "model load kind what per_second".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fabric/models.hpp"
#include "network.hpp"

namespace {

using namespace ulfm::fabric;

struct Message {
  std::uint32_t from, to, units;
};

// What is sent: so many messages, all injected when the network is idle, then again.
struct Load {
  std::string model, name, topology;
  std::vector<Message> messages;
};

void must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "ulfm_bench_models: %s\n", what.c_str());
  std::exit(1);
}

Topology topology_of(const std::string& text) {
  auto topology = read_topology(text);
  must(topology.has_value(), "no topology " + text);
  return std::move(*topology);
}

std::unique_ptr<sim::Subject> subject_of(const std::string& model, const Topology& topology) {
  auto subject = sim::make_subject(model, topology);
  must(subject.has_value(), subject ? "" : subject.error().what);
  return std::move(*subject);
}

Load stream(const std::string& name, const std::string& topology, std::uint32_t to, std::uint32_t count,
            std::uint32_t units) {
  return {"xswitch", name, topology, std::vector<Message>(count, {0, to, units})};
}

// Between random nodes, with 1 to `most` units each.
Load random_traffic(const std::string& model, const std::string& topology, std::uint32_t most) {
  const std::uint32_t nodes = topology_of(topology).nodes();
  std::mt19937 random(1);
  Load load{model, "random", topology, {}};
  for (std::uint32_t i = 0; i < 512; ++i) {
    const auto from = static_cast<std::uint32_t>(random() % nodes);
    load.messages.push_back({from, static_cast<std::uint32_t>((from + 1 + random() % (nodes - 1)) % nodes),
                             static_cast<std::uint32_t>(1 + random() % most)});
  }
  return load;
}

// One form of a model under a load. A pass injects each message as soon as the network accepts it, and ends with the
// last of them.
class Run {
 public:
  Run(const Load& load, const sim::Subject& subject, const Routes* routes, sim::ModelForm form)
      : load_(load), routes_(routes) {
    auto network = subject.make(static_cast<std::uint32_t>(load.messages.size()), form);
    must(network.has_value(), network ? "" : network.error().what);
    network_ = std::move(*network);
  }

  void pass() {
    std::vector<Ending> endings;
    for (std::uint32_t next = 0; endings.size() < load_.messages.size();) {
      while (next < load_.messages.size() && inject(next)) ++next;
      network_->run(now_ += kStep, endings);
    }
    must(std::all_of(endings.begin(), endings.end(), [](const Ending& e) { return e.delivered; }),
         "a message was lost");
  }
  std::uint64_t cycles() const { return now_; }
  std::uint64_t unit_hops() { return network_->unit_hops(); }

 private:
  static constexpr std::uint64_t kStep = 64;  // cycles between two attempts to inject

  bool inject(std::uint32_t index) {
    const Message& m = load_.messages[index];
    return network_->inject(index, m.from, m.to, m.units,
                            routes_ != nullptr ? sim::Way(routes_->between(m.from, m.to)) : sim::Way());
  }

  const Load& load_;
  const Routes* routes_;
  std::unique_ptr<sim::SubjectNetwork> network_;
  std::uint64_t now_ = 1;
};

// Repeats a pass for a quarter of a second at least; passes per second.
double passes_per_second(const std::function<void()>& pass) {
  using Clock = std::chrono::steady_clock;
  pass();
  const auto start = Clock::now();
  std::uint64_t passes = 0;
  std::chrono::duration<double> spent{};
  for (; spent.count() < 0.25; spent = Clock::now() - start, ++passes) pass();
  return static_cast<double>(passes) / spent.count();
}

void measure(const Load& load) {
  constexpr std::pair<sim::ModelForm, const char*> forms[] = {{sim::ModelForm::production, "production"},
                                                              {sim::ModelForm::live, "live"},
                                                              {sim::ModelForm::reference, "reference"}};
  const Topology topology = topology_of(load.topology);
  const auto subject = subject_of(load.model, topology);
  auto routes = compute_routes(topology);
  must(!subject->routed() || routes.has_value(), "no routes in " + load.topology);
  for (const auto& form : forms) {
    Run run(load, *subject, subject->routed() ? &*routes : nullptr, form.first);
    const double passes = passes_per_second([&] { run.pass(); });
    const std::uint64_t cycles = run.cycles(), hops = run.unit_hops();
    run.pass();
    const auto say = [&](const char* what, std::uint64_t of_a_pass) {
      std::printf("%s %s %s %s %.6g\n", load.model.c_str(), load.name.c_str(), form.second, what,
                  static_cast<double>(of_a_pass) * passes);
    };
    say("unit_hops", run.unit_hops() - hops);
    say("cycles", run.cycles() - cycles);
  }
}

}  // namespace

int main() {
  std::vector<Load> loads{stream("small", "single:2", 1, 16, 16), stream("long", "chain:5", 5, 128, 8192)};
  for (const ModelKind* kind : kModels) {
    const Topology topology = topology_of(kind->default_topology);
    loads.push_back(random_traffic(kind->name, kind->default_topology,
                                   std::min(subject_of(kind->name, topology)->most_units(), 1024u)));
  }
  for (const Load& load : loads) measure(load);
  return 0;
}
