// Finds the program as a shell does and looks at its file before hundreds of processes fail on it one by one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ulfmrun {

struct Program {
  std::string name;               ///< as written on the command line
  std::string working_directory;  ///< of -wdir; "" is ulfmrun's own
};

struct Inspection {
  std::string preload;  ///< our library, when the search path built into the program would find another before it
  std::string remark;   ///< says so
};

/// Fails with kNotFound or kCannotExecute. With `elsewhere` (hosts are named), a program that is not on this
/// host is left to the others to find.
Inspection inspect(const Program& program, const std::filesystem::path& libraries, bool elsewhere);

}  // namespace ulfmrun
