// Jobs in virtual time: ulfmrun stays, and says at the end where the time went.
#pragma once

#include <string>
#include <vector>

#include "fabric/engine/host.hpp"
#include "options.hpp"

namespace ulfmrun {

/// Fails with kUsage when what is asked for has no virtual time.
void check_time(const CommandLine& line, const ulfm::Config& settings);

/// Fails with kUsage when a file that time is read from, or written to, cannot be.
void check_time_files(const CommandLine& line);

/// Runs mpiexec and reports; `times` is the file for JSON, empty for none. The exit code.
int run_timed(ulfm::fabric::FabricHost& host, const std::vector<std::string>& command, const std::string& times);

}  // namespace ulfmrun
