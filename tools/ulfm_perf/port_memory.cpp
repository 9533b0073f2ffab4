#include "port_memory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/core.h>

namespace perf {
namespace {

namespace fs = std::filesystem;

// The descriptor of this process whose link reads like that, or -1.
int descriptor_of(const std::string& link) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", ignored))
    if (fs::read_symlink(entry.path(), ignored) == link) return std::stoi(entry.path().filename().string());
  return -1;
}

}  // namespace

ulfm::Result<PortMemory> PortMemory::find(int number) {
  const std::string name = fmt::format("/memfd:ulfm-port-{} (deleted)", number);
  PortMemory memory;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0;
    if (!line.ends_with(name) || std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) != 3) continue;
    if (memory.begin_ == 0) memory.begin_ = begin - offset;  // one mapping, which the kernel may show in pieces
    memory.end_ = end;
  }
  memory.fd_ = descriptor_of(name);
  if (memory.begin_ == 0 || memory.fd_ < 0)
    return ulfm::fail(
        ulfm::Errc::not_found,
        fmt::format("/proc/self does not show the memory of port {}; needs transport direct and /proc", number));
  return memory;
}

ulfm::Result<void> PortMemory::copy(const std::byte* message, std::size_t size, std::byte* to) const {
  const auto at = reinterpret_cast<std::uintptr_t>(message);
  if (at < begin_ || at + size > end_)
    return ulfm::fail(ulfm::Errc::invalid,
                      fmt::format("a message of {} bytes is not in its port's memory: it must come in one frame and by "
                                  "a lane (see ULFM_FRAME, ULFM_LANES and ULFM_EXCHANGE)",
                                  size));
  const ssize_t n = pread(fd_, to, size, static_cast<off_t>(at - begin_));
  if (n < 0) return ulfm::fail_errno("reading from the port's memory file");
  if (static_cast<std::size_t>(n) != size)
    return ulfm::fail(ulfm::Errc::system, fmt::format("the port's memory file gave {} of {} bytes", n, size));
  return {};
}

}  // namespace perf
