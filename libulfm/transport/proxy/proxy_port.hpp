// A port that a proxy has open for its process: what comes goes on, by a connection of its own.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/wait.hpp"
#include "transport/proxy/wire.hpp"

namespace ulfm::proxy {

/// Has a thread, which sleeps at the port's doorbell. The rest is for the proxy's main thread.
class ProxyPort {
 public:
  /// Errc::system when there can be no thread for it. `policy` outlives the port.
  static Result<std::unique_ptr<ProxyPort>> begin(std::uint16_t number, std::unique_ptr<Inlet> inlet,
                                                  std::unique_ptr<Outlet> down, const WaitPolicy& policy);
  ~ProxyPort();
  ProxyPort(const ProxyPort&) = delete;
  ProxyPort& operator=(const ProxyPort&) = delete;

  void drop_origin(std::uint32_t index);
  /// Something has come that has not been sent on.
  bool is_busy();
  FrameCount count() const noexcept { return {number_, 0, sent_.load(std::memory_order_acquire)}; }

 private:
  using Clock = std::chrono::steady_clock;
  ProxyPort(std::uint16_t number, std::unique_ptr<Inlet> inlet, std::unique_ptr<Outlet> down, const WaitPolicy& policy);
  void serve();
  bool step();
  bool send_origin(std::uint32_t index);
  void look_after();
  bool notify(ProxyCall what, std::int64_t origin);
  void rest();

  std::uint16_t number_;
  std::mutex lock_;  // of the inlet and what follows
  std::unique_ptr<Inlet> inlet_;
  std::unique_ptr<Outlet> down_;
  Frame frame_;  // taken and not sent on
  bool has_frame_ = false;
  bool blocked_ = false;              // it found no room
  std::set<std::uint32_t> notified_;  // origins whose end the process knows
  std::int64_t broken_ = -1;          // an origin that was cut off, of which the process does not know
  std::string over_;
  Clock::time_point look_after_at_{};
  std::chrono::microseconds nap_{};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<bool> stop_{false};
  const WaitPolicy& policy_;
  std::thread thread_;
};

}  // namespace ulfm::proxy
