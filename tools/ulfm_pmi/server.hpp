// Speaks PMI-1 to a program, as MPICH's Hydra does, and hands what it asks to another launcher.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "launcher.hpp"

namespace pmi {

class Server {
 public:
  Server(int fd, Launcher& launcher) : fd_(fd), launcher_(launcher) {}
  /// Until the program closes its end.
  void serve();
  /// The program has left the job in good order, or never joined it.
  bool is_program_done() const { return finalized_ || !joined_; }

 private:
  std::string answer(const std::map<std::string, std::string>& asked);
  std::string get(const std::string& key);
  void say(const std::string& line);

  int fd_;
  Launcher& launcher_;
  std::map<std::string, std::string> own_;  ///< what this process has put
  bool joined_ = false, finalized_ = false;
  std::mutex writing_;
};

}  // namespace pmi
