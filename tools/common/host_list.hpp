// Lists of hosts as mpiexec takes them: node1:4,node2 and the lines of a hostfile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

struct ListedHost {
  std::string name;  ///< nothing: two commas of a list have none between them
  bool has_processes = false;
  std::string processes;  ///< what stands behind the colon
  std::string user;       ///< of a line of a file: the name to log in with, where it is given
  std::string setting;    ///< of a line of a file: the first one behind it that mpiexec does not know
};

/// A word of a list, or a line of a file without its other settings; nothing for a comment and for an empty one.
/// More than one colon is an address of IPv6.
std::optional<ListedHost> listed_host(std::string_view word);

std::vector<ListedHost> hosts_of_list(std::string_view list);

/// Nothing, with errno, when the file cannot be read.
std::optional<std::vector<ListedHost>> hosts_of_file(const std::string& file);

/// What mpiexec does not take of a host or behind it, with what it would; "" when it takes all of it.
std::string what_mpiexec_refuses(const ListedHost& host);

/// Why a name has no address here, in the resolver's words; "" when it has one.
std::string why_unknown(const std::string& name);

/// What mpiexec does not take as the range of ports on which it listens for its proxies, with what it would; "" when it
/// takes the environment as it is.
std::string what_mpiexec_refuses_of_ports();

}  // namespace tools
