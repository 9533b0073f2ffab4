// Client of the PMI-1 wire protocol, as MPICH's Hydra speaks it: one request line, one response line, key=value pairs.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace ulfm {

/// A line "cmd=get_result rc=0 value=a b c" as pairs. `value` and `msg` may hold blanks when they come last.
/// Fails on a line without "cmd=" or with a piece that is no pair.
Result<std::map<std::string, std::string>> parse_pmi_line(std::string_view line);

/// Any thread. A question of one thread waits for that of another, but not for the others' coming to its barrier.
class Pmi {
 public:
  /// Connects to the launcher named by PMI_FD or PMI_PORT; nullptr when there is none (the process is alone).
  static Result<std::unique_ptr<Pmi>> join();
  /// The same connection where somebody else has joined, MPI for example, or is about to: for a few questions while
  /// nobody asks there. nullptr when there is none that can be shared.
  static Result<std::unique_ptr<Pmi>> borrow();
  ~Pmi();
  Pmi(const Pmi&) = delete;
  Pmi& operator=(const Pmi&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& job_name() const { return kvs_; }

  /// Makes a value known under a key; seen by others after the next barrier(). Keys and values have no blanks.
  Result<void> put(const std::string& key, const std::string& value);
  Result<std::string> get(const std::string& key);
  /// Returns when every process of the job has called it. Threads that call it at once take turns.
  Result<void> barrier();
  /// Leaves in good order. Without it the launcher takes the exit for a failure.
  Result<void> finalize();

 private:
  /// What is asked of the launcher and not answered yet: one question, and one barrier beside it.
  struct Asked {
    bool busy = false;
    bool answered = false;
    std::string line;
  };
  Pmi() = default;
  Result<std::map<std::string, std::string>> ask(const std::string& request, const std::string& expected);
  Result<std::string> exchange(Asked& mine, const std::string& request);
  Result<void> write_line(const std::string& line);
  Result<std::string> read_line();
  void read_for_all(std::unique_lock<std::mutex>& lock);
  Result<void> check(const std::string& key) const;
  static Result<std::unique_ptr<Pmi>> with(int fd, bool is_ours);
  Result<void> greet();
  Result<void> learn();

  int fd_ = -1;
  bool is_ours_ = true;  ///< the connection ends with this
  int rank_ = 0, size_ = 1;
  std::size_t key_limit_ = 64, value_limit_ = 1024;
  std::string kvs_;

  std::mutex mutex_;  // of all that follows; the buffer is that of the thread that reads
  std::condition_variable news_;
  Asked question_, barrier_;
  bool reading_ = false;
  std::string buffer_;
  Error broken_;  // the connection is of no more use
};

}  // namespace ulfm
