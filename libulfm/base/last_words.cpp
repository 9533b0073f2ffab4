#include "base/last_words.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include <fmt/core.h>

#include "base/wait.hpp"

namespace ulfm {

void say_before_the_end(const std::string& sentence) {
  const std::string line = fmt::format("ulfm: {}\n", sentence);
  (void)!write(STDERR_FILENO, line.data(), line.size());  // one write: lines of several processes do not mix
  struct stat about {};
  if (fstat(STDERR_FILENO, &about) != 0 || !S_ISFIFO(about.st_mode)) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (int unread = 0; ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread != 0;) {
    if (std::chrono::steady_clock::now() > until) return;
    yield_now();
  }
}

}  // namespace ulfm
