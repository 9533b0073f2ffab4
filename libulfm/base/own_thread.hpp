// A thread of the library's own.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/thread_data.hpp"

namespace ulfm {

/// Runs `body` in a thread that takes no signals: those are for the program's own threads. Errc::system when there can
/// be no thread more; `what` says what it was to do.
template <typename Body>
Result<std::thread> start_own_thread(const char* what, Body body) {
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  Result<std::thread> started = [&]() -> Result<std::thread> {
    try {
      return std::thread([body = std::move(body)]() mutable {
        reserve_thread_data();
        body();
      });
    } catch (const std::system_error& error) {
      return fail_errno(std::string("starting the thread ") + what, error.code().value());
    }
  }();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace ulfm
