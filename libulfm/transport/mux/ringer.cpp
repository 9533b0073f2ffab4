#include "transport/mux/ringer.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/own_thread.hpp"

namespace ulfm {

Result<std::shared_ptr<Ringer>> Ringer::create() {
  std::shared_ptr<Ringer> ringer(new Ringer);
  ringer->set_ = control::Fd(epoll_create1(EPOLL_CLOEXEC));
  ringer->stop_ = control::Fd(eventfd(0, EFD_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  if (ringer->set_.get() < 0 || ringer->stop_.get() < 0 ||
      epoll_ctl(ringer->set_.get(), EPOLL_CTL_ADD, ringer->stop_.get(), &event) != 0)
    return fail_errno("making what waits for two transports at once");
  auto started = start_own_thread("that waits for two transports", [r = ringer.get()] { r->serve(); });
  if (!started) return fail(started.error());
  ringer->thread_ = std::move(*started);
  return ringer;
}

Ringer::~Ringer() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Ringer::add(int descriptor, WakeSource& source) {
  control::Fd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (copy.get() < 0) return 0;
  std::lock_guard lock(lock_);
  epoll_event event{};
  event.events = 0;  // until it is armed
  event.data.u64 = next_;
  if (epoll_ctl(set_.get(), EPOLL_CTL_ADD, copy.get(), &event) != 0) return 0;
  entries_.emplace(next_, Entry{std::move(copy), &source});
  return next_++;
}

void Ringer::remove(std::uint64_t number) {
  std::lock_guard lock(lock_);
  const auto it = entries_.find(number);
  if (it == entries_.end()) return;
  (void)epoll_ctl(set_.get(), EPOLL_CTL_DEL, it->second.descriptor.get(), nullptr);
  entries_.erase(it);
}

void Ringer::arm(std::uint64_t number) noexcept {
  std::lock_guard lock(lock_);
  const auto it = entries_.find(number);
  if (it == entries_.end()) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = number;
  (void)epoll_ctl(set_.get(), EPOLL_CTL_MOD, it->second.descriptor.get(), &event);
}

void Ringer::serve() {
  for (;;) {
    epoll_event events[8];
    const int n = epoll_wait(set_.get(), events, 8, -1);
    std::lock_guard lock(lock_);
    for (int i = 0; i < n; ++i) {
      if (events[i].data.u64 == 0) return;
      if (const auto it = entries_.find(events[i].data.u64); it != entries_.end()) it->second.source->ring();
    }
  }
}

}  // namespace ulfm
