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

/// `fd`, or a descriptor above 2 in its place: a program that has closed descriptor 1 since and prints would write into
/// whatever of the library had become that one. -1 and its errno stay; so does a descriptor when there is no other.
inline int above_standard_streams(int fd) noexcept {
  if (fd < STDIN_FILENO || fd > STDERR_FILENO) [[likely]]
    return fd;
  const int other = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (other < 0) return fd;
  ::close(fd);
  return other;
}

}  // namespace ulfm
