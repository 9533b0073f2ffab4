// ulfm_hostd ARENA PID STARTED: the PC host of a job over boards, as a process. ulfmrun starts it; see ulfm-pcie(7).
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "fabric/engine/process.hpp"

namespace {

template <typename Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::fabric::KeeperTask task{"ulfm_hostd", {}, 0, 0};
  if (argc != 4 || !read(argv[2], task.job) || !read(argv[3], task.job_started)) {
    std::fputs(
        "usage: ulfm_hostd ARENA PID STARTED\nStarted by ulfmrun --transport pcie with ULFM_ENGINE=process; see "
        "ulfm-pcie(7).\n",
        stderr);
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
