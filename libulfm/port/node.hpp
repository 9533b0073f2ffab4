// A node: one process's share of the machine. The port table, the send queue, and the interface that serves it.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/solo_mutex.hpp"
#include "base/wait_word.hpp"
#include "job/pmi.hpp"
#include "port/port.hpp"
#include "port/send_queue.hpp"
#include "process/process.hpp"

namespace ulfm {

class VirtualTime;

class Node {
 public:
  /// In the launched job, or alone when `alone` or when nobody launched this process.
  static Result<std::unique_ptr<Node>> create(bool alone);
  ~Node();

  int rank() const noexcept { return pmi_ ? pmi_->rank() : 0; }
  int size() const noexcept { return pmi_ ? pmi_->size() : 1; }
  Result<void> barrier();
  Result<void> put(const std::string& key, const std::string& value);
  Result<std::string> get(const std::string& key);
  const std::string& card() const noexcept { return process_->transport().card(); }

  Result<std::uint32_t> process_of_rank(int rank);
  Result<std::uint32_t> process_of_card(std::string_view card);
  /// The card of a known process; "" for an index that was never given out.
  std::string card_of(std::uint32_t process);

  /// Opens a port; `number` kNoPort takes a free one; sizes of 0 come from the configuration.
  Result<PortCore*> open(std::uint16_t number, std::uint32_t slot_bytes, std::uint32_t depth);
  Result<void> close(std::uint16_t number);
  PortCore* port(std::uint16_t number) noexcept { return number < kPortsPerProcess ? table_[number].get() : nullptr; }

  /// The interface: takes port numbers from the send queue and moves data. Called by threads that post or wait.
  void drive();
  /// Sends a message of one frame if the interface is idle and it can go at once: then it needs neither tag nor queue.
  bool send_at_once(PortCore& port, PortAddress to, Gather& data, std::size_t size);
  /// For the port that has just tagged a buffer: serves it, or leaves its number in the send queue for the thread
  /// that serves now.
  void serve(PortCore& port);
  Result<void> connect(PortCore& port, PortAddress to);
  Result<void> connect(PortCore& port, std::span<const PortAddress> all);
  /// For a port that has got a message which goes on behind it.
  void pass_on(PortCore& port, const std::shared_ptr<Tree>& tree, HeapBytes bytes, std::size_t size);
  /// Does something that the interface must not do at the same time.
  template <typename What>
  void dispose(What what) {
    std::lock_guard lock(interface_lock_);
    what();
  }
  /// The same, unless the interface is busy: it may be making a connection.
  template <typename What>
  void dispose_if_idle(What what) {
    if (std::unique_lock lock(interface_lock_, std::try_to_lock); lock) what();
    if (sends_pending()) drive();  // others have posted meanwhile, and found the interface busy
  }
  bool sends_pending() const noexcept { return stalled_.load(std::memory_order_relaxed) || !send_queue_.empty(); }

  /// Waits for a message at one of the ports. A negative limit is for ever.
  Result<std::size_t> wait(std::span<PortCore* const> ports, std::chrono::nanoseconds limit, Arrival& arrival);
  /// Waits until everything that port posted has left.
  Result<void> flush(PortCore& port, std::chrono::nanoseconds limit);

  /// What this process has beside its ports.
  /// Something has come to an open port, as far as a cheap look shows.
  bool look();
  /// Sleeps until something comes to one of the open ports, or `other`, which the caller has armed and looked at, ends
  /// it, at most `limit`; meanwhile no port is opened or closed. True when something has come.
  bool park(std::chrono::nanoseconds limit, WaitWord other, const Look& look);

  Process& process() noexcept { return *process_; }
  Transport& transport() noexcept { return process_->transport(); }
  const Config& config() const noexcept { return process_->config(); }
  const WaitPolicy& wait_policy() const noexcept { return process_->wait_policy(); }

 private:
  Node() : send_queue_(1u << 16) {}
  bool serve_at_once(PortCore& port);
  void serve_port(PortCore& port);
  void serve_stalled();
  void park(std::span<PortCore* const> ports, std::chrono::nanoseconds left);
  Result<std::size_t> wait_timed(VirtualTime& time, std::span<PortCore* const> ports, std::chrono::nanoseconds limit,
                                 Arrival& arrival);
  void say_byes(PortCore& port, std::chrono::steady_clock::time_point until);
  Result<void> flush_timed(VirtualTime& time, PortCore& port, std::chrono::nanoseconds limit);
  bool sleep_timed(VirtualTime& time, std::span<PortCore* const> ports, StallKind kind, std::uint64_t until);
  std::string stall_text(std::span<PortCore* const> ports, StallKind kind, std::chrono::nanoseconds time);
  StallState stall_state(std::span<PortCore* const> ports, StallKind kind, StallWatch::Clock::time_point start);
  void report_stalls(StallWatch& stall, std::span<PortCore* const> ports, StallKind kind,
                     StallWatch::Clock::time_point start, StallWatch::Clock::time_point now);

  std::unique_ptr<Process> process_;  // before the ports: it goes after them
  std::unique_ptr<Pmi> pmi_;

  std::mutex table_lock_;
  std::array<std::unique_ptr<PortCore>, kPortsPerProcess> table_;
  SoloMutex interface_lock_;
  SendQueue send_queue_;
  std::atomic<bool> stalled_{false};  // set under the lock; sends_pending() looks without it, and a wait looks again

  std::mutex names_lock_;
  std::vector<std::string> cards_;
  std::unordered_map<std::string, std::uint32_t> by_card_;
  std::unordered_map<int, std::uint32_t> by_rank_;
};

}  // namespace ulfm
