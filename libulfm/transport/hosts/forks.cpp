#include "transport/hosts/forks.hpp"

#include <pthread.h>

#include <mutex>
#include <vector>

namespace ulfm::hosts {
namespace {

struct Networks {
  std::mutex mutex;
  std::vector<Forkable*> all;
};

// Never destroyed: a process may fork behind all destructors.
Networks& networks() {
  static auto* const one = new Networks;
  return *one;
}

void before_fork() {
  networks().mutex.lock();
  for (Forkable* network : networks().all) network->before_fork();
}
void after_fork_in_parent() {
  for (Forkable* network : networks().all) network->after_fork_in_parent();
  networks().mutex.unlock();
}
void after_fork_in_child() {
  for (Forkable* network : networks().all) network->after_fork_in_child();
  networks().mutex.unlock();
}

}  // namespace

void enter(Forkable& network) {
  static const int hooked = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)hooked;  // without memory for the hook a child keeps the connections up
  std::lock_guard lock(networks().mutex);
  networks().all.push_back(&network);
}

void leave(Forkable& network) noexcept {
  std::lock_guard lock(networks().mutex);
  std::erase(networks().all, &network);
}

}  // namespace ulfm::hosts
