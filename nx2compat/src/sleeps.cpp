// What a program calls to do nothing for a while, where messages interrupt it: sleep(), usleep(), nanosleep(),
// clock_nanosleep(), and select() and poll() without descriptors. These last their whole time although handlers run
// meanwhile; a signal of the program's own ends them, as POSIX says. They stand in front of the C library's, and are
// those as long as no handler was ever set.
#include <dlfcn.h>
#include <poll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "interrupt.hpp"

namespace nx2 {
namespace {

constexpr long kSecond = 1'000'000'000;  // ns

/// The one that this stands in front of.
template <typename Function>
Function* behind(const char* name, Function*) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_time(const timespec* time) noexcept {
  return time != nullptr && time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < kSecond;
}

/// `time` from now on, or the end of all time.
timespec end_of(const timespec& time) noexcept {
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (time.tv_sec > std::numeric_limits<time_t>::max() - end.tv_sec - 1)
    return {std::numeric_limits<time_t>::max() - 1, 0};
  end.tv_sec += time.tv_sec;
  end.tv_nsec += time.tv_nsec;
  if (end.tv_nsec >= kSecond) ++end.tv_sec, end.tv_nsec -= kSecond;
  return end;
}

/// 0, or EINTR with what is left in `*left`.
int sleep_for(const timespec& time, timespec* left, void* caller) {
  const timespec end = end_of(time);
  const int result = Interrupt::sleep(CLOCK_MONOTONIC, end, caller);
  if (result == EINTR && left != nullptr) *left = Interrupt::time_left(CLOCK_MONOTONIC, end);
  return result;
}

int failed_with(int error) noexcept {
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

}  // namespace
}  // namespace nx2

#define CALLER __builtin_return_address(0)

extern "C" {

__attribute__((visibility("default"))) int nanosleep(const timespec* time, timespec* left) {
  static const auto real = nx2::behind("nanosleep", nanosleep);
  if (!nx2::Interrupt::sleeps_here() || !nx2::is_time(time)) return real(time, left);
  return nx2::failed_with(nx2::sleep_for(*time, left, CALLER));
}

__attribute__((visibility("default"))) int clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                                                           timespec* left) {
  static const auto real = nx2::behind("clock_nanosleep", clock_nanosleep);
  const bool until = (flags & TIMER_ABSTIME) != 0;
  if (!nx2::Interrupt::sleeps_here() || !nx2::is_time(time) || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
    return real(clock, flags, time, left);
  return until ? nx2::Interrupt::sleep(clock, *time, CALLER) : nx2::sleep_for(*time, left, CALLER);
}

__attribute__((visibility("default"))) unsigned sleep(unsigned seconds) {
  static const auto real = nx2::behind("sleep", sleep);
  if (!nx2::Interrupt::sleeps_here()) return real(seconds);
  timespec left{};
  (void)nx2::sleep_for({static_cast<time_t>(seconds), 0}, &left, CALLER);
  return static_cast<unsigned>(left.tv_sec) + (left.tv_nsec != 0 ? 1 : 0);
}

__attribute__((visibility("default"))) int usleep(useconds_t microseconds) {
  static const auto real = nx2::behind("usleep", usleep);
  if (!nx2::Interrupt::sleeps_here()) return real(microseconds);
  const timespec time{static_cast<time_t>(microseconds / 1'000'000),
                      static_cast<long>(microseconds % 1'000'000) * 1000};
  return nx2::failed_with(nx2::sleep_for(time, nullptr, CALLER));
}

__attribute__((visibility("default"))) int select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* time) {
  static const auto real = nx2::behind("select", select);
  if (count != 0 || time == nullptr || time->tv_sec < 0 || time->tv_usec < 0 || time->tv_usec >= 1'000'000 ||
      !nx2::Interrupt::sleeps_here())
    return real(count, in, out, except, time);
  timespec left{};
  const int result = nx2::failed_with(nx2::sleep_for({time->tv_sec, time->tv_usec * 1000}, &left, CALLER));
  *time = {left.tv_sec, left.tv_nsec / 1000};  // as Linux does
  return result;
}

__attribute__((visibility("default"))) int poll(pollfd* set, nfds_t count, int milliseconds) {
  static const auto real = nx2::behind("poll", poll);
  if (count != 0 || milliseconds < 0 || !nx2::Interrupt::sleeps_here()) return real(set, count, milliseconds);
  return nx2::failed_with(nx2::sleep_for({milliseconds / 1000, milliseconds % 1000 * 1'000'000L}, nullptr, CALLER));
}

}  // extern "C"
