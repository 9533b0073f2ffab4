// Nodes of a cube on other hosts: which of them are, and the command that starts a program there. nxhost(1) has the
// options; a job's ranks are placed the same way.
#pragma once

#include <string>
#include <vector>

namespace nx2 {

class FarHosts {
 public:
  /// From NX2_HOSTS ("h1:2,me@h2,[fd00::2]:3": names, with how many nodes in a row each takes) and NX2_LAUNCHER (ssh
  /// without it).
  /// Without NX2_HOSTS all nodes are here.
  FarHosts();

  bool any() const noexcept { return !places_.empty(); }
  /// The host of a node, with its user if one is named (USER@HOST); "" when that is this one.
  const std::string& of(int node) const noexcept;
  const std::string& launcher() const noexcept { return launcher_; }
  /// The command that runs a shell on the host of a node, which reads its commands from standard input.
  std::vector<std::string> shell_on(int node) const;

 private:
  std::vector<std::string> places_;  ///< the nodes have them in turn; "": here. Empty: all nodes are here
  std::string launcher_ = "ssh";
};

/// What that shell reads: goes to this process's folder, takes its environment, with `cube` as NX2_CUBE, and runs the
/// program, which is killed when the other end of the shell's standard input is closed. Its exit status is the
/// program's. With an `environment` of the program's own only the settings of ULFM are taken from this process's.
std::string script_for(const std::vector<std::string>& command, const std::string& cube, char** environment);

}  // namespace nx2
