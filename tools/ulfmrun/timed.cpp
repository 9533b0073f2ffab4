#include "timed.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "child.hpp"
#include "fabric/durations.hpp"
#include "fabric/engine/clock.hpp"
#include "fabric/engine/time.hpp"
#include "failure.hpp"

namespace ulfmrun {
namespace {

void write_times(const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  if (file == nullptr || std::fclose(file) != 0 || !written)
    fail(kInstallation, fmt::format("--times {}: {}", path, std::strerror(errno)));
}

// Before the job, and not behind hours of it. What is in the file stays there until then.
void check_writable(const char* option, const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail(kUsage, fmt::format("{}: {} cannot be written: {}", option, path, std::strerror(errno)));
  close(file);
}

// The durations of a model mean nothing without virtual time.
void check_no_durations(std::string_view transport) {
  if (ulfm::fabric::model_of_transport(transport) == nullptr) return;
  for (std::size_t at = transport.find(','); at != std::string_view::npos; at = transport.find(',', at + 1)) {
    const std::string_view option = transport.substr(at + 1, transport.find(',', at + 1) - at - 1);
    if (ulfm::fabric::is_duration(option.substr(0, option.find('='))))
      fail(kUsage, fmt::format("{} is a duration, and has no effect in the host's time; add --time virtual", option));
  }
}

}  // namespace

void check_time_files(const CommandLine& line) {
  if (!line.time) return;
  const auto time = ulfm::fabric::parse_time(*line.time);
  if (line.times) check_writable("--times", *line.times);
  if (time->record[0] != 0) check_writable("--time record", fmt::format("{}.0", time->record));
  for (int rank = 0; time->recorded[0] != 0 && rank < line.processes; ++rank) {
    const std::string name = fmt::format("{}.{}", time->recorded, rank);
    if (access(name.c_str(), R_OK) != 0)
      fail(kUsage, fmt::format("--time compute=recorded: {} cannot be read: {}; each rank needs one, which --time "
                               "virtual,record=FILE writes with as many ranks",
                               name, std::strerror(errno)));
  }
}

void check_time(const CommandLine& line, const ulfm::Config& settings) {
  if (line.times && !line.time) fail(kUsage, "--times writes where virtual time went; add --time virtual");
  const std::string& transport = settings.text("TRANSPORT");
  if (!line.time) return check_no_durations(transport);
  if (ulfm::fabric::model_of_transport(transport) == nullptr)
    fail(kUsage, fmt::format("--time: transport {} moves messages in the host's time; virtual time goes with an "
                             "emulated interconnect, such as --transport xswitch",
                             transport.substr(0, transport.find(','))));
  if (settings.text("ENGINE") == "process")
    fail(kUsage, "ULFM_ENGINE=process moves the network in the host's time; leave it out with --time virtual");
  if (settings.number("CONTROL") != 0)
    fail(kUsage, "ULFM_CONTROL: a control channel works in the host's time; leave it out with --time virtual");
  // A rank would find it too, but in MPI_Init.
  if (const std::string trouble = ulfm::fabric::progress_thread_trouble(); !trouble.empty()) fail(kUsage, trouble);
  const auto time = ulfm::fabric::parse_time(*line.time);
  if (!time) fail(kUsage, fmt::format("--time: {}", time.error().what));
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
