// A mutex that costs no locked operation while the process has one thread.
//
// Most ranks have one thread, and a locked instruction costs as much as everything else a short message needs. glibc
// says in __libc_single_threaded whether there is a second thread; it cannot appear while the first is in here.
#pragma once

#include <sys/single_threaded.h>

#include <mutex>

namespace ulfm {

/// Lockable like std::mutex. Not recursive: try_lock() by the thread that holds it fails when it is the only one.
class SoloMutex {
 public:
  void lock() {
    if (__libc_single_threaded) solo_ = true;
    else many_.lock();
  }
  bool try_lock() {
    if (!__libc_single_threaded) return many_.try_lock();
    if (solo_) return false;
    solo_ = true;
    return true;
  }
  /// A full barrier when there are several threads: what others stored before they failed to lock is visible after it.
  void unlock() {
    if (solo_) solo_ = false;
    else many_.unlock();
  }

 private:
  std::mutex many_;
  bool solo_ = false;  // taken while there was one thread; several threads only read it, holding `many_`
};

}  // namespace ulfm
