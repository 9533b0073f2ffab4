// A cable for tests: passes Ethernet frames between two TAP devices, and loses, delays, reorders and doubles some.
// Kernels often lack tc's netem; a cable of our own is the same everywhere and counts what it did.
//
//   ulfm_cable [OPTION...] NAME PID   between the device NAME here and eth0 in the network namespace of process PID
//     --loss P, --reorder P, --duplicate P   parts of the frames, 0 to 1
//     --delay MS    of every frame, each way
//     --hold MS     by which a reordered frame is later than its delay, so that others overtake it (default 5)
//     --seed N      of the faults; each way has random numbers of its own
//
// It makes both devices and prints "up". SIGUSR1 cuts it, SIGUSR2 joins it; what is on its way when it is cut is lost
// too. SIGTERM ends it, with a line of counts.
#include <fcntl.h>
#include <getopt.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Faults {
  double loss = 0, reorder = 0, duplicate = 0;
  Clock::duration delay{}, hold = std::chrono::milliseconds(5);
  std::uint64_t seed = 1;
};

struct Counts {
  std::uint64_t passed = 0, lost = 0, reordered = 0, duplicated = 0, cut = 0, undelivered = 0;
};

struct Waiting {
  Clock::time_point due;
  std::uint64_t number;  // of those that came this way
  std::vector<char> bytes;
  bool operator<(const Waiting& other) const {  // the earliest is the greatest, for std::priority_queue
    return due != other.due ? due > other.due : number > other.number;
  }
};

// One direction of the cable.
class Way {
 public:
  Way(int from, int to, const Faults& faults, std::uint64_t stream, Counts& counts)
      : from_(from), to_(to), faults_(faults), random_(faults.seed * 2 + stream), counts_(counts) {}

  int from() const { return from_; }
  bool has_waiting() const { return !waiting_.empty(); }
  Clock::time_point next_due() const { return waiting_.top().due; }

  // False when the device is gone.
  bool take(Clock::time_point now, bool is_cut) {
    char bytes[kLongest];
    for (int i = 0; i < kAtOnce; ++i) {
      const ssize_t n = ::read(from_, bytes, sizeof bytes);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      accept(now, {bytes, static_cast<std::size_t>(n)}, is_cut);
    }
    return true;
  }

  void deliver(Clock::time_point now) {
    for (; has_waiting() && next_due() <= now; waiting_.pop()) pass(waiting_.top().number, waiting_.top().bytes);
  }

  void cut() {
    for (; has_waiting(); waiting_.pop()) ++counts_.cut;
  }

 private:
  static constexpr int kAtOnce = 64;  // frames; the other way waits meanwhile
  static constexpr std::size_t kLongest = 1 << 16;
  static constexpr std::size_t kMostWaiting = 50'000;

  // Every frame draws as many numbers, so the fate of one does not depend on the rates.
  bool happens(double rate) { return std::generate_canonical<double, 53>(random_) < rate; }

  void accept(Clock::time_point now, std::span<const char> frame, bool is_cut) {
    const bool lost = happens(faults_.loss), late = happens(faults_.reorder), twice = happens(faults_.duplicate);
    const std::uint64_t number = ++came_;
    if (is_cut) {
      ++counts_.cut;
    } else if (lost || waiting_.size() >= kMostWaiting) {
      ++counts_.lost;
    } else {
      if (twice) ++counts_.duplicated;
      for (int i = 0; i <= static_cast<int>(twice); ++i) {
        if (late || faults_.delay.count() != 0)
          waiting_.push(
              {now + faults_.delay + (late ? faults_.hold : Clock::duration{}), number, {frame.begin(), frame.end()}});
        else pass(number, frame);
      }
    }
  }

  void pass(std::uint64_t number, std::span<const char> frame) {
    if (::write(to_, frame.data(), frame.size()) < 0) {  // the device is down
      ++counts_.undelivered;
      return;
    }
    ++counts_.passed;
    if (number < last_passed_) ++counts_.reordered;
    else last_passed_ = number;
  }

  const int from_, to_;
  const Faults& faults_;
  std::mt19937_64 random_;
  Counts& counts_;
  std::uint64_t came_ = 0, last_passed_ = 0;
  std::priority_queue<Waiting> waiting_;
};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "ulfm_cable: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

[[noreturn]] void usage() {
  std::fputs(
      "usage: ulfm_cable [--loss P] [--reorder P] [--duplicate P] [--delay MS] [--hold MS] [--seed N] NAME PID\n",
      stderr);
  std::exit(2);
}

// A TAP device in the network namespace that this process is in.
int make_device(const char* name) {
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) give_up("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  if (::ioctl(fd, TUNSETIFF, &request) != 0) give_up(std::string("making the TAP device ") + name);
  return fd;
}

int make_device_at(const char* pid) {
  const int here = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int there = ::open(("/proc/" + std::string(pid) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  if (here < 0 || there < 0 || ::setns(there, CLONE_NEWNET) != 0)
    give_up("the network namespace of " + std::string(pid));
  const int fd = make_device("eth0");
  if (::setns(here, CLONE_NEWNET) != 0) give_up("the way back from it");
  ::close(here);
  ::close(there);
  return fd;
}

double number(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0)) usage();
  return value;
}

Clock::duration milliseconds(const char* text) {
  return std::chrono::duration_cast<Clock::duration>(Milliseconds(number(text)));
}

Faults faults_from(int argc, char** argv) {
  static const option kOptions[] = {{"loss", 1, nullptr, 'l'},  {"reorder", 1, nullptr, 'r'},
                                    {"delay", 1, nullptr, 'd'}, {"duplicate", 1, nullptr, 't'},
                                    {"hold", 1, nullptr, 'h'},  {"seed", 1, nullptr, 's'},
                                    {nullptr, 0, nullptr, 0}};
  Faults faults;
  for (int c; (c = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (c == 'l') faults.loss = number(optarg);
    else if (c == 'r') faults.reorder = number(optarg);
    else if (c == 't') faults.duplicate = number(optarg);
    else if (c == 'd') faults.delay = milliseconds(optarg);
    else if (c == 'h') faults.hold = milliseconds(optarg);
    else if (c == 's') faults.seed = static_cast<std::uint64_t>(number(optarg));
    else usage();
  }
  if (argc - optind != 2) usage();
  return faults;
}

int signals_of_cable() {
  sigset_t set;
  sigemptyset(&set);
  for (const int one : {SIGUSR1, SIGUSR2, SIGTERM}) sigaddset(&set, one);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Until a frame or a signal comes, or one that waits is due.
void sleep_on(std::span<pollfd> fds, std::span<const Way> ways) {
  auto due = Clock::time_point::max();
  for (const Way& way : ways)
    if (way.has_waiting()) due = std::min(due, way.next_due());
  timespec limit{};
  if (due != Clock::time_point::max()) {
    const auto left = std::max(Clock::duration{}, due - Clock::now());
    limit.tv_sec = static_cast<time_t>(std::chrono::duration_cast<std::chrono::seconds>(left).count());
    limit.tv_nsec = static_cast<long>((left % std::chrono::seconds(1)).count());
  }
  (void)::ppoll(fds.data(), fds.size(), due == Clock::time_point::max() ? nullptr : &limit, nullptr);
}

// Passes frames until SIGTERM comes, or a device is gone with its namespace.
void serve(std::span<Way> ways, int signals) {
  pollfd fds[] = {{ways[0].from(), POLLIN, 0}, {ways[1].from(), POLLIN, 0}, {signals, POLLIN, 0}};
  for (bool is_cut = false;;) {
    sleep_on(fds, ways);
    for (signalfd_siginfo one{}; ::read(signals, &one, sizeof one) == sizeof one;) {
      if (one.ssi_signo == SIGTERM) return;
      is_cut = one.ssi_signo == SIGUSR1;
      if (is_cut)
        for (Way& way : ways) way.cut();
    }
    const auto now = Clock::now();
    for (Way& way : ways) {
      if (!way.take(now, is_cut)) return;
      way.deliver(now);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Faults faults = faults_from(argc, argv);
  const int signals = signals_of_cable();
  const int near = make_device(argv[optind]), far = make_device_at(argv[optind + 1]);
  Counts counts;
  Way ways[] = {{near, far, faults, 0, counts}, {far, near, faults, 1, counts}};
  std::puts("up");
  std::fflush(stdout);
  serve(ways, signals);
  const auto shown = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
  std::printf("passed %llu lost %llu reordered %llu duplicated %llu cut %llu undelivered %llu\n", shown(counts.passed),
              shown(counts.lost), shown(counts.reordered), shown(counts.duplicated), shown(counts.cut),
              shown(counts.undelivered));
  return 0;
}
