// What the ranks of a job leave behind, in one file for all: the trace and the counters. See base/job_record.hpp.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/job_record.hpp"
#include "options.hpp"

namespace ulfmrun {

class Collector {
 public:
  /// Nothing when the job leaves nothing, or when its ranks are on other hosts too, where they cannot reach this
  /// process.
  static std::optional<Collector> for_job(const CommandLine& line, const ulfm::Config& settings);

  /// What the ranks need in their environment.
  std::pair<std::string, std::string> variable() const { return {"ULFM_RECORD", record_.address()}; }
  /// The job has ended: writes the files.
  void write() const;

 private:
  Collector(ulfm::record::JobRecord&& record, std::string trace, std::string counters)
      : record_(std::move(record)), trace_(std::move(trace)), counters_(std::move(counters)) {}

  ulfm::record::JobRecord record_;
  std::string trace_, counters_;  ///< files; empty: not wanted
};

/// The trace of all processes; each arrival is joined with its sending.
void write_trace(const ulfm::record::JobRecord& record, const std::string& file);
/// The counters of all ranks; the form goes by the file's name.
void write_counters(const ulfm::record::JobRecord& record, const std::string& file);

/// FILE of ours and nobody else's, in place of one that we made before. Fails with kInstallation.
std::FILE* make_result_file(const std::string& option, const std::string& file);

}  // namespace ulfmrun
