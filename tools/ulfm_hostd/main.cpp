// ulfm_hostd ARENA PID STARTED: the PC host of a job over boards, as a process. ulfmrun starts it; see ulfm-pcie(7).
#include <ulfm/ulfm.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/standard_streams.hpp"
#include "fabric/engine/process.hpp"

namespace {

template <typename Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

constexpr const char* kHelp =
    "usage: ulfm_hostd ARENA PID STARTED | --help | --version\n"
    "Moves the messages of an emulated interconnect as a process of its own: the PC host of boards, for example.\n"
    "ulfmrun starts it, and it ends with the job; nobody else needs to.\n"
    "Example: ULFM_ENGINE=process ulfmrun --transport pcie -n 4 ./hello\n"
    "Exit code: 0 when the job has ended, 1 when the interconnect is not there, 2 for a wrong command line.\n"
    "Manual: ulfm_hostd(1), ulfm-pcie(7).\n";

}  // namespace

int main(int argc, char** argv) {
  ulfm::hold_standard_streams();
  ulfm::fabric::KeeperTask task{"ulfm_hostd", {}, 0, 0};
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") return std::fputs(kHelp, stdout) < 0;
  if (first == "--version") return std::printf("ulfm_hostd %s\n", ulfm_version()) < 0;
  if (argc != 4 || !read(argv[2], task.job) || !read(argv[3], task.job_started)) {
    std::fputs("ulfm_hostd: ulfmrun starts it, with the arena of a job; see ulfm_hostd --help\n", stderr);
    return 2;
  }
  const auto arena = ulfm::fabric::decode_arena_address(argv[1]);
  if (!arena) {
    std::fprintf(stderr, "ulfm_hostd: %s\n", arena.error().what.c_str());
    return 2;
  }
  task.arena = *arena;
  return ulfm::fabric::keep_engine(task);
}
