#include "job/control/registry.hpp"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "job/control/server.hpp"

namespace ulfm::control {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<Server*> servers;
};

// Never destroyed: it is looked at behind all destructors.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

// The locks are held over the fork, so that the child finds the tables whole and can close what it inherited. Without
// that a peer would not see the parent's end while the child lives.
void before_fork() {
  registry().mutex.lock();
  for (Server* server : registry().servers) server->mutex.lock();
}
void after_fork_in_parent() {
  for (Server* server : registry().servers) server->mutex.unlock();
  registry().mutex.unlock();
}
void after_fork_in_child() {
  for (Server* server : registry().servers) {
    server->disown();
    server->mutex.unlock();
  }
  registry().servers.clear();
  registry().mutex.unlock();
}

int exit_status = kUnknownCode;
void note_status(int status, void*) { exit_status = status; }

// Registered when the library is loaded, so it runs behind what the program registers; the destructor below runs behind
// all of these.
__attribute__((constructor)) void watch_exit() { (void)on_exit(note_status, nullptr); }

// Who ends in good order has closed its channel by now.
__attribute__((destructor)) void announce_exit() {
  if (!registry().mutex.try_lock()) return;
  for (Server* server : registry().servers) server->abort_at_exit(exit_status);
  registry().mutex.unlock();
}

}  // namespace

void enter(Server& server) {
  static const int hooked = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)hooked;  // without memory for the hook a fork costs what the comment above says
  std::lock_guard lock(registry().mutex);
  registry().servers.push_back(&server);
}

void leave(Server& server) {
  std::lock_guard lock(registry().mutex);
  std::erase(registry().servers, &server);
}

}  // namespace ulfm::control
