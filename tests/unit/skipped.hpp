// Tests that need something of the kernel which a user-mode emulator, an old kernel or a container may lack.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "job/peer_memory.hpp"

namespace test {

/// Unless `there`, says what is lacking, and CTest counts the test as skipped (tests/CMakeLists.txt).
inline bool skipped_without(bool there, const char* what) {
  if (!there) std::printf("SKIPPED: %s\n", what);
  return !there;
}

inline constexpr const char* kPeerMemory = "this kernel, or the emulator on it, has no process_vm_readv(2)";

inline bool has_peer_memory() {
  char from = 1, to = 0;
  return ulfm::read_process(getpid(), &to, reinterpret_cast<std::uintptr_t>(&from), 1) == 1;
}

}  // namespace test
