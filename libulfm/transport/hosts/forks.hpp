// What a forked child has of a network: nothing. Its peers would not see the end of the parent while the child lives.
#pragma once

namespace ulfm::hosts {

/// A network that has sockets. Its lock is held over a fork, so that the child finds its tables whole.
class Forkable {
 public:
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() noexcept = 0;
  /// Closes the sockets, and says nothing by that: the parent has them, too.
  virtual void after_fork_in_child() noexcept = 0;

 protected:
  ~Forkable() = default;
};

/// From now on, until leave(). Any thread; not under the network's lock.
void enter(Forkable& network);
void leave(Forkable& network) noexcept;

}  // namespace ulfm::hosts
