#include "convert.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include <fmt/core.h>

namespace topo {
namespace {

constexpr int kNoProgram = 127;

/// A file in memory with the picture, so that neither side waits for the other.
int memory_with(const std::string& text) {
  const int fd = memfd_create("picture", MFD_CLOEXEC);
  for (std::size_t done = 0; fd >= 0 && done < text.size();) {
    const ssize_t put = write(fd, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return close(fd), -1;
    done += static_cast<std::size_t>(put);
  }
  if (fd >= 0) lseek(fd, 0, SEEK_SET);
  return fd;
}

[[noreturn]] void become_converter(int in, int out, const std::string& form) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  const std::string option = fmt::format("--format={}", form);
  // Twice the size of a screen's pixels: labels stay legible in print.
  execlp("rsvg-convert", "rsvg-convert", option.c_str(), "--zoom=2", static_cast<char*>(nullptr));
  _exit(errno == ENOENT ? kNoProgram : 126);
}

std::string read_all(int fd) {
  std::string all;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return all;
    all.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

ulfm::Result<std::string> convert_picture(const std::string& svg, const std::string& form) {
  std::array<int, 2> ends;
  const int in = memory_with(svg);
  if (in < 0 || pipe2(ends.data(), O_CLOEXEC) != 0) return ulfm::fail_errno("making a picture");
  const pid_t child = fork();
  if (child < 0) return ulfm::fail_errno("fork");
  if (child == 0) become_converter(in, ends[1], form);
  close(in);
  close(ends[1]);
  std::string picture = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram)
    return ulfm::fail(ulfm::Errc::unavailable,
                      fmt::format("{} needs the program rsvg-convert, which is in no directory of PATH; apt-get "
                                  "install librsvg2-bin, or use svg",
                                  form));
  if (status != 0 || picture.empty())
    return ulfm::fail(ulfm::Errc::system, "rsvg-convert could not make the picture; svg makes it without that program");
  return picture;
}

}  // namespace topo
