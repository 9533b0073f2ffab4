// The library's thread-local data.
#pragma once

namespace ulfm {

/// Has the C library allocate this thread's share of them, which it does at the first access of any, and for which it
/// ends the process when there is no memory. A process begins with it, so that it does not come to that later.
inline void reserve_thread_data() noexcept {
  static thread_local volatile bool is_there = false;
  if (!is_there) is_there = true;
}

}  // namespace ulfm
