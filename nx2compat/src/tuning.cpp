#include "tuning.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "channel.hpp"

namespace nx2 {
namespace {

// A whole number from the environment, within bounds; `otherwise` when it is not set or is no number.
std::size_t setting(const char* name, std::size_t otherwise, std::size_t least, std::size_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  return *end != '\0' ? otherwise : std::clamp<std::size_t>(value, least, most);
}

// A quarter of the machine. Memory is taken as messages come; this is where a node stops taking more.
std::size_t quarter_of_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 4;
}

}  // namespace

Tuning tuning_for(const Channel& channel) {
  Tuning tuning = channel.transport() == "direct" ? kSharedMemory : kUsual;
  if (const std::size_t piece = channel.suits(ULFM_SUITS_PIECE); piece != 0) tuning.data_piece = piece;
  tuning.to_all = channel.suits(ULFM_SUITS_COPIES);
  tuning.short_limit = setting("NX2_SHORT", tuning.short_limit, 0, kFramePiece);
  tuning.buffers = static_cast<std::uint32_t>(setting("NX2_BUFFERS", tuning.buffers, 4, 128));
  tuning.data_buffers = std::min(tuning.data_buffers, tuning.buffers / 4);
  tuning.memory = setting("NX2_MEMORY", quarter_of_memory(), 0, std::size_t{1} << 40);
  return tuning;
}

}  // namespace nx2
