// A small explorer of interleavings for code that is written with std::atomic, in the manner of CDSChecker (Norris and
// Demsky 2013) and of Relacy: threads are fibres of one thread, every operation on an atomic is a point where another
// may go on, and a load may read any store that the C++ memory model (without reads from the future) still allows:
//
//   * each location has its stores in the order of their execution, which is taken for its modification order
//   * each thread has a view: for each location the oldest store it may still read
//   * a release store carries its thread's view, which an acquire load joins; a read-modify-write reads the newest
// store
//     and carries on what that one carried (release sequence)
//   * seq_cst operations and fences, and the process-wide barrier, exchange views with a global one
//
// Plain memory is not simulated but watched: an access that is not ordered behind the last write (or before the next)
// by what the atomics carried is a data race, and reported.
//
// Exploration is exhaustive up to a number of preemptions for each run and of stale reads for each run (Musuvathi and
// Qadeer 2007: few preemptions find most errors); both bounds are printed with what was explored.
#pragma once

#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace explore {

inline constexpr int kThreads = 4;
using Clock = std::array<std::uint32_t, kThreads + 1>;

/// What a thread, or a store that releases, knows: how far it has seen each location, and each thread's past.
struct View {
  std::vector<std::uint32_t> seen;  // by location
  Clock clock{};

  void join(const View& other) {
    if (seen.size() < other.seen.size()) seen.resize(other.seen.size());
    for (std::size_t i = 0; i < other.seen.size(); ++i) seen[i] = std::max(seen[i], other.seen[i]);
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
  std::uint32_t& at(std::size_t location) {
    if (seen.size() <= location) seen.resize(location + 1);
    return seen[location];
  }
};

struct Limits {
  int preemptions = 2;
  int stale_reads = 1;
  std::uint64_t runs = 3'000'000;
};

struct Outcome {
  std::uint64_t runs = 0, steps = 0;
  bool complete = false;
  std::string violation;
};

class Explorer {
 public:
  explicit Explorer(Limits limits) : limits_(limits) {}

  /// Runs `setup` anew for each run; it makes the state and adds the threads. `check` looks at the end.
  Outcome explore(const std::function<void(Explorer&)>& setup, const std::function<void(Explorer&)>& check);
  /// In setup.
  void thread(std::function<void()> body) { bodies_.push_back(std::move(body)); }
  /// From setup, a thread or the check: that must not be.
  void violation(const std::string& what) {
    if (outcome_.violation.empty()) outcome_.violation = what + " (choices " + choices() + ")";
  }
  /// In setup: stores there release nothing, whatever the library asks for. For proving that a violation is found.
  void weaken(const void* at, std::size_t bytes) { weak_ = {static_cast<const char*>(at), bytes}; }
  /// In a thread: waits until something changes; the run ends when all wait.
  void wait() {
    waiting_[current_] = true;
    yield_to_others();
  }

  /// The thread that runs has been told by the kernel that another has ended: all that it did is visible.
  void saw_end_of(std::size_t thread) { view().join(View(views_[thread])); }
  std::size_t current() const { return current_; }

  static Explorer* active;

  // ---- for the atomics
  // -------------------------------------------------------------------------------------------------
  std::uint64_t load(const void* at, std::uint64_t initial, std::memory_order order);
  void store(const void* at, std::uint64_t initial, std::uint64_t value, std::memory_order order);
  /// `change` has the old value and says whether and what to store.
  std::uint64_t update(const void* at, std::uint64_t initial, std::memory_order order, std::memory_order otherwise,
                       const std::function<bool(std::uint64_t, std::uint64_t&)>& change);
  void fence(std::memory_order order);
  /// membarrier: a full fence in every thread.
  void barrier();

  // ---- plain memory ----------------------------------------------------------------------------------------------
  void wrote(const void* at);
  void reads(const void* at);

 private:
  struct Store {
    std::uint64_t value;
    View carried;
    std::uint32_t thread;
  };
  struct Location {
    std::size_t number;
    std::vector<Store> stores;
  };
  struct Plain {
    std::uint32_t writer = 0, at = 0;
    Clock readers{};
  };
  struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = true;
  };
  static constexpr std::size_t kStack = 256 * 1024;

  static void enter(int index);
  Location& location(const void* at, std::uint64_t initial);
  View& view() { return views_[current_]; }
  void tick() { ++view().clock[current_]; }
  void before_step();
  void yield_to_others();
  void switch_to(std::size_t next);
  std::size_t choose(std::size_t options);
  bool next_run();
  std::string choices() const;
  static bool acquires(std::memory_order o) {
    return o == std::memory_order_acquire || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
  }
  static bool releases(std::memory_order o) {
    return o == std::memory_order_release || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
  }
  void sequential();
  void changed() {
    waiting_.fill(false);
    settled_ = false;
  }
  std::vector<std::size_t> runnable() const;

  Limits limits_;
  Outcome outcome_;
  std::vector<std::function<void()>> bodies_;
  std::array<Fibre, kThreads + 1> fibres_;  // 0 is the explorer itself, and what setup and check do
  std::array<View, kThreads + 1> views_;
  std::array<bool, kThreads + 1> waiting_{};
  std::size_t current_ = 0;
  View global_;
  std::unordered_map<const void*, Location> locations_;
  std::unordered_map<const void*, Plain> plain_;
  std::pair<const char*, std::size_t> weak_{nullptr, 0};
  int preemptions_ = 0, stale_ = 0;
  bool settled_ = false;                                   // all waited, and all have looked again since
  std::vector<std::pair<std::size_t, std::size_t>> path_;  // taken, of
  std::size_t depth_ = 0;
};

inline Explorer* Explorer::active = nullptr;

inline std::string Explorer::choices() const {
  std::string text;
  for (const auto& [taken, of] : path_) text += std::to_string(taken);
  return text;
}

// ---- choices: depth first, each run from the beginning
// ------------------------------------------------------------------

inline std::size_t Explorer::choose(std::size_t options) {
  if (options <= 1) return 0;
  if (depth_ == path_.size()) path_.push_back({0, options});
  return path_[depth_++].first;
}

inline bool Explorer::next_run() {
  while (!path_.empty() && path_.back().first + 1 == path_.back().second) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().first;
  return true;
}

inline void Explorer::enter(int index) {
  Explorer& self = *active;
  self.bodies_[static_cast<std::size_t>(index) - 1]();
  self.fibres_[static_cast<std::size_t>(index)].done = true;
  self.changed();
  self.yield_to_others();
}

inline void Explorer::switch_to(std::size_t next) {
  if (next == current_) return;
  const std::size_t from = std::exchange(current_, next);
  swapcontext(&fibres_[from].context, &fibres_[next].context);
}

inline std::vector<std::size_t> Explorer::runnable() const {
  std::vector<std::size_t> ready;
  for (std::size_t t = 1; t <= bodies_.size(); ++t)
    if (!fibres_[t].done && !waiting_[t]) ready.push_back(t);
  return ready;
}

/// The current thread cannot go on. Nobody can: back to the explorer.
inline void Explorer::yield_to_others() {
  std::vector<std::size_t> ready = runnable();
  if (ready.empty() && !settled_) {
    // A store is seen in the end: those who wait look once more, and see what is newest.
    settled_ = true;
    for (auto& [at, l] : locations_)
      for (View& v : views_) v.at(l.number) = static_cast<std::uint32_t>(l.stores.size() - 1);
    waiting_.fill(false);
    ready = runnable();
  }
  switch_to(ready.empty() ? 0 : ready[choose(ready.size())]);
}

/// Before an operation on an atomic: another thread may go first.
inline void Explorer::before_step() {
  ++outcome_.steps;
  if (current_ == 0) return;
  tick();
  if (preemptions_ >= limits_.preemptions) return;
  std::vector<std::size_t> others{current_};
  for (std::size_t t = 1; t <= bodies_.size(); ++t)
    if (t != current_ && !fibres_[t].done && !waiting_[t]) others.push_back(t);
  const std::size_t next = others[choose(others.size())];
  if (next == current_) return;
  ++preemptions_;
  switch_to(next);
}

inline Outcome Explorer::explore(const std::function<void(Explorer&)>& setup,
                                 const std::function<void(Explorer&)>& check) {
  active = this;
  do {
    bodies_.clear();
    locations_.clear();
    plain_.clear();
    views_ = {};
    global_ = {};
    waiting_.fill(false);
    preemptions_ = stale_ = 0;
    weak_ = {nullptr, 0};
    settled_ = false;
    depth_ = 0;
    current_ = 0;
    setup(*this);
    for (std::size_t t = 1; t <= bodies_.size(); ++t) {
      Fibre& fibre = fibres_[t];
      if (!fibre.stack) fibre.stack = std::make_unique<char[]>(kStack);
      fibre.done = false;
      views_[t] = views_[0];  // what setup did was before
      getcontext(&fibre.context);
      fibre.context.uc_stack = {fibre.stack.get(), 0, kStack};
      fibre.context.uc_link = nullptr;
      makecontext(&fibre.context, reinterpret_cast<void (*)()>(&Explorer::enter), 1, static_cast<int>(t));
    }
    yield_to_others();
    for (const View& v : views_) views_[0].join(v);
    check(*this);
    ++outcome_.runs;
    if (!outcome_.violation.empty() || outcome_.runs >= limits_.runs) return outcome_;
  } while (next_run());
  outcome_.complete = true;
  return outcome_;
}

// ---- atomics ----------------------------------------------------------------------------------------------------

inline Explorer::Location& Explorer::location(const void* at, std::uint64_t initial) {
  const auto [it, added] = locations_.try_emplace(at, Location{locations_.size(), {}});
  if (added) it->second.stores.push_back({initial, {}, 0});
  return it->second;
}

inline void Explorer::sequential() {
  view().join(global_);
  global_.join(view());
}

inline std::uint64_t Explorer::load(const void* at, std::uint64_t initial, std::memory_order order) {
  before_step();
  if (order == std::memory_order_seq_cst) sequential();
  Location& l = location(at, initial);
  const std::size_t newest = l.stores.size() - 1, oldest = view().at(l.number);
  std::size_t back = 0;
  if (current_ != 0 && stale_ < limits_.stale_reads && newest > oldest) back = choose(newest - oldest + 1);
  if (back != 0) ++stale_;
  const Store& read = l.stores[newest - back];
  view().at(l.number) = static_cast<std::uint32_t>(newest - back);
  if (acquires(order)) view().join(View(read.carried));
  return read.value;
}

inline void Explorer::store(const void* at, std::uint64_t initial, std::uint64_t value, std::memory_order order) {
  before_step();
  if (at >= weak_.first && at < weak_.first + weak_.second) order = std::memory_order_relaxed;
  Location& l = location(at, initial);
  if (order == std::memory_order_seq_cst) sequential();
  view().at(l.number) = static_cast<std::uint32_t>(l.stores.size());
  l.stores.push_back({value, releases(order) ? view() : View{}, static_cast<std::uint32_t>(current_)});
  if (order == std::memory_order_seq_cst) sequential();
  changed();
}

inline std::uint64_t Explorer::update(const void* at, std::uint64_t initial, std::memory_order order,
                                      std::memory_order otherwise,
                                      const std::function<bool(std::uint64_t, std::uint64_t&)>& change) {
  before_step();
  Location& l = location(at, initial);
  if (order == std::memory_order_seq_cst) sequential();
  const std::uint64_t old = l.stores.back().value;
  std::uint64_t value = old;
  if (!change(old, value)) {
    view().at(l.number) = static_cast<std::uint32_t>(l.stores.size() - 1);
    if (acquires(otherwise)) view().join(View(l.stores.back().carried));
    return old;
  }
  View carried = l.stores.back().carried;
  if (acquires(order)) view().join(carried);
  view().at(l.number) = static_cast<std::uint32_t>(l.stores.size());
  if (releases(order)) carried.join(view());
  l.stores.push_back({value, std::move(carried), static_cast<std::uint32_t>(current_)});
  if (order == std::memory_order_seq_cst) sequential();
  changed();
  return old;
}

inline void Explorer::fence(std::memory_order order) {
  before_step();
  if (order == std::memory_order_seq_cst) sequential();
}

inline void Explorer::barrier() {
  before_step();
  for (std::size_t t = 0; t <= bodies_.size(); ++t) global_.join(views_[t]);
  // Each has a full fence where it is: what it reads from now on is at least that new. It orders no plain memory that
  // the program does not order otherwise, so the clocks stay.
  for (std::size_t t = 0; t <= bodies_.size(); ++t) {
    const Clock clock = views_[t].clock;
    views_[t].join(global_);
    if (t != current_) views_[t].clock = clock;
  }
}

// ---- plain memory -----------------------------------------------------------------------------------------------

inline void Explorer::wrote(const void* at) {
  tick();
  Plain& p = plain_[at];
  if (p.at > view().clock[p.writer]) violation("two threads write the same memory at once");
  for (std::size_t t = 0; t < p.readers.size(); ++t)
    if (t != current_ && p.readers[t] > view().clock[t]) violation("memory is written while another thread reads it");
  p.writer = static_cast<std::uint32_t>(current_);
  p.at = view().clock[current_];
}

inline void Explorer::reads(const void* at) {
  tick();
  Plain& p = plain_[at];
  if (p.at > view().clock[p.writer]) violation("memory is read that another thread still writes");
  p.readers[current_] = view().clock[current_];
}

/// In place of std::atomic. The value it shows outside of a run is the initial one.
template <typename T>
class Atomic {
 public:
  static constexpr bool is_always_lock_free = true;
  Atomic() = default;
  constexpr Atomic(T value) : initial_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const { return from(on().load(this, word(), order)); }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    on().store(this, word(), to(value), order);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    return from(on().update(this, word(), order, order, [&](std::uint64_t, std::uint64_t& w) {
      w = to(value);
      return true;
    }));
  }
  T fetch_add(T more, std::memory_order order = std::memory_order_seq_cst) {
    return from(on().update(this, word(), order, order, [&](std::uint64_t old, std::uint64_t& w) {
      w = to(static_cast<T>(from(old) + more));
      return true;
    }));
  }
  T fetch_sub(T less, std::memory_order order = std::memory_order_seq_cst) {
    return fetch_add(static_cast<T>(0 - less), order);
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order = std::memory_order_seq_cst) {
    const auto failing = order == std::memory_order_acq_rel   ? std::memory_order_acquire
                         : order == std::memory_order_release ? std::memory_order_relaxed
                                                              : order;
    const T wanted = expected;
    expected = from(on().update(this, word(), order, failing, [&](std::uint64_t old, std::uint64_t& w) {
      w = to(value);
      return from(old) == wanted;
    }));
    return expected == wanted;
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, value, order);
  }

 private:
  static Explorer& on() { return *Explorer::active; }
  // The casts of C: numbers, enumerations and pointers.
  static std::uint64_t to(T value) { return (std::uint64_t)value; }
  static T from(std::uint64_t word) { return (T)word; }
  std::uint64_t word() const { return to(initial_); }
  T initial_{};
};

}  // namespace explore
