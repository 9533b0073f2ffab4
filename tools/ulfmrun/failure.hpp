// How ulfmrun gives up: one sentence on stderr and an exit code.
#pragma once

#include <string>
#include <utility>

namespace ulfmrun {

/// Exit codes as a shell gives them, so that scripts need not tell ulfmrun from the program's own start
/// failing.
enum ExitCode {
  kInstallation = 1,  ///< the stage around ulfmrun is incomplete
  kUsage = 2,         ///< the command line is wrong
  kCannotExecute = 126,
  kNotFound = 127,
};

/// What was needed, what was found, what to do about it.
struct Failure {
  int code;
  std::string text;
};

[[noreturn]] inline void fail(int code, std::string text) { throw Failure{code, std::move(text)}; }

}  // namespace ulfmrun
