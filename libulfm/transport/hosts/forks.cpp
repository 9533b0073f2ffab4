#include "transport/hosts/forks.hpp"

#include <pthread.h>

#include <mutex>
#include <vector>

namespace ulfm::hosts {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<Forkable*> networks;
};

// Never destroyed: a process may fork behind all destructors.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

void before_fork() {
  registry().mutex.lock();
  for (Forkable* network : registry().networks) network->before_fork();
}
void after_fork_in_parent() {
  for (Forkable* network : registry().networks) network->after_fork_in_parent();
  registry().mutex.unlock();
}
void after_fork_in_child() {
  for (Forkable* network : registry().networks) network->after_fork_in_child();
  registry().mutex.unlock();
}

}  // namespace

void enter(Forkable& network) {
  static const int hooked = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)hooked;  // without memory for the hook a child keeps the connections up
  std::lock_guard lock(registry().mutex);
  registry().networks.push_back(&network);
}

void leave(Forkable& network) noexcept {
  std::lock_guard lock(registry().mutex);
  std::erase(registry().networks, &network);
}

}  // namespace ulfm::hosts
