// TCP with deadlines: what the doctor tries a way with.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "job/control/socket.hpp"
#include "transport/hosts/socket_address.hpp"

namespace doctor {

using Clock = std::chrono::steady_clock;
using ulfm::control::Fd;
using ulfm::hosts::SocketAddress;

/// The addresses of a name; none, with the resolver's words in `problem`, when it has none.
std::vector<ulfm::Ip> resolve(const std::string& name, std::string& problem);
/// The same in the order in which Hydra's proxies try them: IPv4 first.
std::vector<ulfm::Ip> resolve_for_mpiexec(const std::string& name, std::string& problem);

/// Listens at any address and gives back what comes from whoever knows the secret. Ends with the object.
class Echo {
 public:
  /// At the first free port of a range; 0: any. A port of 0 afterwards: there was none.
  Echo(std::uint16_t first, std::uint16_t last, std::uint64_t secret);
  ~Echo();
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  std::uint16_t port() const { return port_; }

 private:
  struct Session {
    ~Session() {
      if (thread.joinable()) thread.join();
    }
    Fd socket;
    std::atomic<bool> is_over{false};
    std::thread thread;
  };

  void serve();
  void begin(Fd fd);
  Fd listener_, stop_;
  std::list<Session> sessions_;
  std::uint16_t port_ = 0;
  std::uint64_t secret_;
  std::thread thread_;
};

/// What a way is like. `problem` is empty when all of it worked.
struct Way {
  std::string problem, interface;
  double round_trip_us = 0;
  int mtu = 0;
};

/// Connects to an Echo, shows the secret, and sends short and long packets there and back.
Way try_way(const SocketAddress& where, std::uint64_t secret);

}  // namespace doctor
