#include <fmt/core.h>
#include <sys/mman.h>
#include <fstream>

#include "network.hpp"

namespace sim {

Memory::Memory(std::size_t bytes) : bytes_(bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) at_ = static_cast<std::byte*>(at);
}

Memory::~Memory() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

// Not getrusage(): its figure is that of who called fork() when that had more.
double most_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  return 0;
}

tl::unexpected<ulfm::Error> no_memory(std::size_t bytes) {
  return fail(Errc::no_memory,
              fmt::format("the network needs {} MiB of memory, and the system does not give them; take "
                          "a smaller topology or fewer --threads",
                          (bytes >> 20) + 1));
}

}  // namespace sim
