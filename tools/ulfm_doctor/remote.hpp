// The doctor's agent on a host, started as Hydra starts its proxies.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "job/control/socket.hpp"

namespace doctor {

/// How commands get to other hosts.
struct Launcher {
  std::string program = "ssh";
  bool is_ssh = true;  ///< takes ssh's options
};

class Remote {
 public:
  /// Starts the agent; `local` does so without a launcher.
  Remote(std::string host, bool local, const Launcher& launcher);
  ~Remote();
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  const std::string& host() const { return host_; }
  bool is_local() const { return local_; }
  /// A question and its answer. Errc::unavailable with what was said on standard error when the agent has ended;
  /// Errc::protocol when it is of another version; Errc::timed_out, and an answer that comes later is ignored.
  ulfm::Result<nlohmann::json> ask(const nlohmann::json& question, std::chrono::milliseconds patience);
  /// What came of the start when the agent has ended: the exit status of ssh; -1: it runs.
  int status() const { return status_; }
  /// The launcher, or the agent, has said these words on standard error.
  bool has_said(std::string_view words) const { return complaints_.find(words) != complaints_.npos; }

 private:
  void start(const std::vector<std::string>& command);
  ulfm::Error ended();
  std::optional<nlohmann::json> next_answer();

  std::string host_;
  bool local_;
  pid_t pid_ = -1;
  int status_ = -1;
  ulfm::control::Fd in_, out_, errors_;
  std::uint64_t questions_ = 0;
  std::string buffer_, complaints_;
};

}  // namespace doctor
