#include "timed.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "child.hpp"
#include "fabric/engine/clock.hpp"
#include "fabric/engine/time.hpp"
#include "failure.hpp"

namespace ulfmrun {
namespace {

void write_times(const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  if (file == nullptr || std::fclose(file) != 0 || !written)
    fail(kInstallation, "--times " + path + ": " + std::strerror(errno));
}

}  // namespace

void check_time(const CommandLine& line, const ulfm::Config& settings) {
  if (line.times && !line.time) fail(kUsage, "--times writes where virtual time went; add --time virtual");
  if (!line.time) return;
  const std::string& transport = settings.text("TRANSPORT");
  if (ulfm::fabric::model_of_transport(transport) == nullptr)
    fail(kUsage, "--time: transport " + transport.substr(0, transport.find(',')) +
                     " moves messages in the host's time; virtual time goes with an emulated interconnect, such as "
                     "--transport xswitch");
  if (settings.text("ENGINE") == "process")
    fail(kUsage, "ULFM_ENGINE=process moves the network in the host's time; leave it out with --time virtual");
  if (settings.number("CONTROL") != 0)
    fail(kUsage, "ULFM_CONTROL: a control channel works in the host's time; leave it out with --time virtual");
  const auto time = ulfm::fabric::parse_time(*line.time);
  if (!time) fail(kUsage, "--time: " + time.error().what);
}

int run_timed(ulfm::fabric::FabricHost& host, const std::vector<std::string>& command, const std::string& times) {
  const auto began = std::chrono::steady_clock::now();
  const int code = run_child(command);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::fputs(ulfm::fabric::time_report(host.arena(), seconds).c_str(), stderr);
  if (times.empty()) return code;
  auto model = host.kind().attach(host.arena().model(), host.arena().sizes().model_bytes);
  if (!model) fail(kInstallation, model.error().what);
  write_times(times, ulfm::fabric::time_json(host.arena(), **model, seconds));
  return code;
}

}  // namespace ulfmrun
