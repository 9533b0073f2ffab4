#include "socket.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include <fmt/core.h>

namespace doctor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectFor{3000}, kAnswerFor{2000};
constexpr std::size_t kLong = 256 * 1024;  // many packets of any size that a network has
constexpr int kPings = 20;
constexpr std::size_t kMostAtOnce = 64;
constexpr int kAcceptAgain = 100;  // ms

// True when the socket is ready for `events` before the deadline.
bool wait_for(int fd, short events, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
  pollfd set{fd, events, 0};
  return left > 0 && poll(&set, 1, static_cast<int>(left)) > 0;
}

bool read_all(int fd, void* bytes, std::size_t length, Clock::time_point until) {
  for (std::size_t done = 0; done < length;) {
    const ssize_t got = recv(fd, static_cast<char*>(bytes) + done, length - done, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) done += static_cast<std::size_t>(got);
    else if (!wait_for(fd, POLLIN, until)) return false;
  }
  return true;
}

// Sends and takes back what comes, both at once: neither side's buffers hold all of it.
bool send_and_return(int fd, std::vector<char>& bytes, Clock::time_point until) {
  std::size_t sent = 0, back = 0;
  while (back < bytes.size()) {
    if (!wait_for(fd, static_cast<short>(POLLIN | (sent < bytes.size() ? POLLOUT : 0)), until)) return false;
    const ssize_t put = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) sent += static_cast<std::size_t>(put);
    const ssize_t got = recv(fd, bytes.data() + back, bytes.size() - back, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) back += static_cast<std::size_t>(got);
  }
  return true;
}

void no_delay(int fd) {
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// One listener for both families, whatever net.ipv6.bindv6only says.
void take_v4_too(int fd) {
  const int off = 0;
  (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
}

std::string interface_with(const ulfm::Ip& ip) {
  ifaddrs* list = nullptr;
  std::string name;
  if (getifaddrs(&list) != 0) return name;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const int family = one->ifa_addr == nullptr ? 0 : one->ifa_addr->sa_family;
    const std::size_t size = family == AF_INET ? sizeof(sockaddr_in) : family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
    if (size != 0 && SocketAddress(one->ifa_addr, size).ip() == ip) name = one->ifa_name;
  }
  freeifaddrs(list);
  return name;
}

std::string connected(int fd, const SocketAddress& where) {
  int error = 0;
  if (connect(fd, where.get(), static_cast<socklen_t>(where.size())) != 0) error = errno;
  if (error == EINPROGRESS) {
    socklen_t length = sizeof error;
    if (!wait_for(fd, POLLOUT, Clock::now() + kConnectFor))
      return fmt::format("no answer in {} s", kConnectFor.count() / 1000);
    (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  return error == 0 ? "" : std::strerror(error);
}

void serve_one(int fd, std::uint64_t secret) {
  no_delay(fd);
  std::uint64_t shown = 0;
  if (!read_all(fd, &shown, sizeof shown, Clock::now() + kAnswerFor) || shown != secret) return;
  const std::uint64_t answer = ~secret;
  if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) return;
  std::vector<char> bytes(64 * 1024);
  while (wait_for(fd, POLLIN, Clock::now() + kAnswerFor)) {
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return;
    for (ssize_t done = 0; done < got;) {
      if (!wait_for(fd, POLLOUT, Clock::now() + kAnswerFor)) return;
      const ssize_t put = send(fd, bytes.data() + done, static_cast<std::size_t>(got - done), MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN && errno != EINTR) return;
      done += std::max<ssize_t>(put, 0);
    }
  }
}

}  // namespace

std::vector<ulfm::Ip> resolve(const std::string& name, std::string& problem) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  std::vector<ulfm::Ip> addresses;
  if (const int rc = getaddrinfo(name.c_str(), nullptr, &hints, &found); rc != 0) {
    problem = gai_strerror(rc);
    return addresses;
  }
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    addresses.push_back(SocketAddress(one->ai_addr, one->ai_addrlen).ip());
  freeaddrinfo(found);
  return addresses;
}

std::vector<ulfm::Ip> resolve_for_mpiexec(const std::string& name, std::string& problem) {
  auto addresses = resolve(name, problem);
  std::stable_partition(addresses.begin(), addresses.end(), [](const ulfm::Ip& ip) { return ip.is_v4(); });
  return addresses;
}

Echo::Echo(std::uint16_t first, std::uint16_t last, std::uint64_t secret)
    : stop_(eventfd(0, EFD_CLOEXEC)), secret_(secret) {
  for (std::uint32_t port = first; port <= last && port_ == 0; ++port) {
    for (const bool v6 : {true, false}) {  // an IPv6 listener takes IPv4 too; not every kernel has IPv6
      Fd fd(socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const SocketAddress any = SocketAddress::any(v6, static_cast<std::uint16_t>(port));
      if (v6) take_v4_too(fd.get());
      ulfm::control::set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // as mpiexec; a job may have just used it
      if (!fd || bind(fd.get(), any.get(), static_cast<socklen_t>(any.size())) != 0 || listen(fd.get(), 64) != 0)
        continue;
      SocketAddress got;
      socklen_t length = SocketAddress::room();
      if (getsockname(fd.get(), got.get(), &length) != 0) continue;
      port_ = got.port();
      listener_ = std::move(fd);
      break;
    }
  }
  if (port_ != 0) thread_ = std::thread([this] { serve(); });
}

Echo::~Echo() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Echo::serve() {
  for (;;) {
    pollfd set[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (poll(set, 2, -1) < 0 && errno != EINTR) return;
    if (set[1].revents != 0) break;
    std::erase_if(sessions_, [](const Session& one) { return one.is_over.load(); });
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) (void)poll(&set[1], 1, kAcceptAgain);  // without a descriptor whoever came stays in the queue
    else if (sessions_.size() < kMostAtOnce) begin(std::move(fd));
    else serve_one(fd.get(), secret_);
  }
  sessions_.clear();
}

// Several at a time: all hosts come at once, and one that says nothing must not keep the others waiting.
void Echo::begin(Fd fd) try {
  Session& session = sessions_.emplace_back();
  session.socket = std::move(fd);
  session.thread = std::thread([&session, secret = secret_] {
    serve_one(session.socket.get(), secret);
    session.is_over = true;
  });
} catch (const std::system_error&) {  // no thread for it: it finds the connection closed
  sessions_.pop_back();
} catch (const std::bad_alloc&) {
}

Way try_way(const SocketAddress& where, std::uint64_t secret) {
  Way way;
  const Fd fd(socket(where.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  way.problem = fd ? connected(fd.get(), where) : std::strerror(errno);
  if (!way.problem.empty()) return way;
  no_delay(fd.get());
  std::uint64_t answer = 0;
  const auto until = Clock::now() + kAnswerFor;
  if (send(fd.get(), &secret, sizeof secret, MSG_NOSIGNAL) != sizeof secret ||
      !read_all(fd.get(), &answer, sizeof answer, until) || answer != ~secret) {
    way.problem = Clock::now() < until
                      ? "another process answered, perhaps of another host with this address"
                      : fmt::format(
                            "it takes the connection and says nothing for {} s: it is very busy, or another "
                            "process listens there",
                            kAnswerFor.count() / 1000);
    return way;
  }
  std::vector<char> bytes(1);
  for (int i = 0; i < kPings; ++i) {
    const auto begun = Clock::now();
    if (!send_and_return(fd.get(), bytes, begun + kAnswerFor)) way.problem = "the connection broke off";
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - begun).count();
    way.round_trip_us = i == 0 ? us : std::min(way.round_trip_us, us);
  }
  bytes.assign(kLong, 'x');
  if (way.problem.empty() && !send_and_return(fd.get(), bytes, Clock::now() + kAnswerFor))
    way.problem = "short packets arrive and long ones do not (is the MTU the same on the whole way?)";
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0) way.mtu = static_cast<int>(info.tcpi_pmtu);
  SocketAddress own;
  length = SocketAddress::room();
  if (getsockname(fd.get(), own.get(), &length) == 0) way.interface = interface_with(own.ip());
  return way;
}

}  // namespace doctor
