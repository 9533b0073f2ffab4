// Hosts that the command line names, looked at before mpiexec waits for them.
#pragma once

#include "options.hpp"

namespace ulfmrun {

/// A hostfile that cannot be read, a list without hosts, a wrong number behind a host and a name without an address
/// fail with kUsage. Names are only looked up when ssh is to reach them: another launcher may know them otherwise.
void check_hosts(const CommandLine& line);

/// What mpiexec takes its hosts from when the command line names none: HYDRA_HOST_FILE, or the allocation of a resource
/// manager. `line` then says that they are elsewhere, if any is.
void take_hosts_of_environment(CommandLine& line);

/// None is named but this one.
bool only_this_host(const CommandLine& line);

}  // namespace ulfmrun
