// A proxy: a process on the arena's host that stands for one on another host. It has that one's place on the
// interconnect, so it is seen there like any process: when the far one ends without a word, so does the proxy, and the
// others see a process that died.
#pragma once

#include "fabric/engine/arena.hpp"

namespace ulfm::proxy {

struct ProxyTask {
  fabric::ArenaAddress arena;
  std::uint32_t rank = 0;   ///< of the process that it stands for
  std::uint32_t frame = 0;  ///< see DoorAddress::frame
  pid_t job = 0;            ///< process with whose end the job is over
  std::uint64_t job_started = 0;
};

/// Prints "+" and its card, or "-" and a sentence, as a line on standard output; then does its work until its process
/// has left or died, or the job is over before it has come. The exit code: 0 when it left.
int serve_proxy(const ProxyTask& task);

}  // namespace ulfm::proxy
