// The end of what a tool prints.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace tools {

/// `code`; but 1, after a sentence, when something of what was printed could not be written.
inline int written(const char* tool, int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "%s: standard output cannot be written%s%s\n", tool, errno == 0 ? "" : ": ",
               errno == 0 ? "" : std::strerror(errno));
  std::clearerr(stdout);  // it has been said
  return code == 0 ? 1 : code;
}

/// Prints the text, in one piece. 0, or 1 as above.
inline int print(const char* tool, const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  return written(tool, 0);
}

}  // namespace tools
