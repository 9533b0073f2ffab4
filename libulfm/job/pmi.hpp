// Client of the PMI-1 wire protocol, as MPICH's Hydra speaks it: one request line, one response line, key=value pairs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace ulfm {

/// A line "cmd=get_result rc=0 value=a b c" as pairs. `value` and `msg` may hold blanks when they come last.
/// Fails on a line without "cmd=" or with a piece that is no pair.
Result<std::map<std::string, std::string>> parse_pmi_line(std::string_view line);

class Pmi {
 public:
  /// Connects to the launcher named by PMI_FD or PMI_PORT; nullptr when there is none (the process is alone).
  static Result<std::unique_ptr<Pmi>> join();
  ~Pmi();
  Pmi(const Pmi&) = delete;
  Pmi& operator=(const Pmi&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& job_name() const { return kvs_; }

  /// Makes a value known under a key; seen by others after the next barrier(). Keys and values have no blanks.
  Result<void> put(const std::string& key, const std::string& value);
  Result<std::string> get(const std::string& key);
  /// Returns when every process of the job has called it.
  Result<void> barrier();
  /// Leaves in good order. Without it the launcher takes the exit for a failure.
  Result<void> finalize();

 private:
  Pmi() = default;
  Result<std::map<std::string, std::string>> ask(const std::string& request, const std::string& expected);
  Result<std::string> read_line();
  Result<void> handshake();

  int fd_ = -1;
  int rank_ = 0, size_ = 1;
  std::size_t key_limit_ = 64, value_limit_ = 1024;
  std::string kvs_, buffer_;
};

}  // namespace ulfm
