// Speaks PMI-1 to a program, as MPICH's Hydra does, and hands what it asks to another launcher.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "launcher.hpp"

namespace pmi {

class Server {
 public:
  /// Over the socket `fd`. `program` is a pidfd of it, or -1: then its end is seen only when the socket is closed,
  /// which what it has started may hold open.
  Server(int fd, int program, Launcher& launcher) : fd_(fd), program_(program), launcher_(launcher) {}
  /// Until the program closes its end, or ends.
  void serve();
  /// The program has left the job in good order, or never joined it.
  bool is_program_done() const { return finalized_ || !joined_; }
  /// It has called MPI_Abort, and has said why.
  bool has_aborted() const { return aborted_; }

 private:
  /// Waits until the program says something, and appends it. False: it will say nothing more.
  bool hear(std::string& said) const;
  std::string answer(const std::map<std::string, std::string>& asked);
  std::string get(const std::string& key);
  void say(const std::string& line);
  /// Once for each: what the program gets is MPI's error, which does not know why.
  void explain(const char* what, const char* why);

  int fd_, program_;
  Launcher& launcher_;
  std::map<std::string, std::string> own_;  ///< what this process has put
  bool joined_ = false, finalized_ = false, aborted_ = false;
  std::set<std::string> explained_;
  std::mutex writing_;
};

}  // namespace pmi
