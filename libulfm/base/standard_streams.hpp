// The descriptors 0, 1 and 2.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace ulfm {

/// Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed (`program >&-`). A segment or a socket of the
/// library that became descriptor 1 would receive what the program prints. A child finds them closed as before. Called
/// before the first descriptor is made; threads must not open or close the three meanwhile.
inline void reserve_standard_streams() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= STDIN_FILENO && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

}  // namespace ulfm
