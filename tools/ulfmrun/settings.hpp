// The settings of a job, resolved as its ranks will resolve them, and everything about them that can be found wrong
// before a rank starts.
#pragma once

#include <string>

#include "base/config.hpp"
#include "options.hpp"

namespace ulfmrun {

/// Defaults, file, environment, command line. Fails with kUsage.
ulfm::Config resolve_settings(const CommandLine& line);

/// A setting that cannot work fails with kUsage; one from the file or the environment that has no effect on this job is
/// a line on standard error.
void check_settings(const CommandLine& line, const ulfm::Config& settings);

/// The limits of this process are those of the ranks: too few processes or descriptors fail with kUsage here, because
/// the launcher would wait for ranks that never came.
void check_limits(const CommandLine& line);

/// "ULFM_TOPOLOGY: " or the line of the file; "" for what stands on the command line, which the user sees.
std::string origin_prefix(const ulfm::Config& settings, const char* row);

/// "auto, direct".
std::string transport_list();

}  // namespace ulfmrun
