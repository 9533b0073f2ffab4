#include "cube.hpp"

#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ulfm/places.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fmt/core.h>

#include "outcome.hpp"
#include "timed.hpp"

namespace nx2 {
namespace {

// descriptor:nodes:node; on another host what copy_from() reads.
constexpr const char* kVariable = "NX2_CUBE";

constexpr timespec kLoadNap{0, 200'000};

std::size_t bytes_for(int nodes) { return sizeof(CubeEntry) * static_cast<std::size_t>(nodes + 1); }

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// As a shell finds it, but the current folder comes first; "" when it is nowhere.
std::string find_program(const std::string& name) {
  if (is_program(name)) return name.front() == '/' ? name : fmt::format("./{}", name);
  if (name.find('/') != std::string::npos) return "";
  const char* const variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (is_program(fmt::format("{}/{}", folder, name))) return fmt::format("{}/{}", folder, name);
  return "";
}

// What execvp takes; it points into `words`, which nobody writes to.
std::vector<char*> argv_of(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

// In a new process: from now on it ends with its parent.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

}  // namespace

Cube::~Cube() { unmap(); }

void Cube::Child::close_lifeline() const noexcept {
  if (lifeline >= 0) close(lifeline);
}

void Cube::unmap() {
  copy_ = false;
  if (entries_ != nullptr) munmap(entries_, bytes_for(nodes_));
  if (fd_ >= 0) close(fd_);
  entries_ = nullptr;
  fd_ = -1;
}

bool Cube::map(int fd, int nodes) {
  void* memory = mmap(nullptr, bytes_for(nodes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return false;
  fd_ = fd;
  nodes_ = nodes;
  entries_ = static_cast<CubeEntry*>(memory);
  return true;
}

bool Cube::create(int nodes) {
  unmap();
  const int made = memfd_create("nx2-cube", MFD_CLOEXEC);
  if (made < 0) return false;
  // Where standard output is closed, it must not become standard output.
  const int fd = fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(made);
  if (fd < 0) return false;
  if (ftruncate(fd, static_cast<off_t>(bytes_for(nodes))) != 0 || !map(fd, nodes)) {
    close(fd);
    return false;
  }
  self_ = host();
  // With more processes than cores, waiting processes yield at once. The host itself has not joined yet.
  if (nodes + 1 > usable_cores()) setenv("ULFM_SPIN", "2", 0);
  return true;
}

bool Cube::inherit() {
  const char* text = std::getenv(kVariable);
  int fd = -1, nodes = 0, self = 0;
  if (text == nullptr) return false;
  if (copy_from(text)) return true;
  if (std::sscanf(text, "%d:%d:%d", &fd, &nodes, &self) != 3) return false;
  if (nodes < 1 || self < 0 || self >= nodes || !map(fd, nodes)) return false;
  self_ = self;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return true;
}

// "far NODES NODE PTYPE PORT PRESENCE.USE... CARD": the number of nodes and this node's, the host's port, the state of
// each node, and the host's card.
std::string Cube::text_for(int node) const {
  const CubeEntry& host_entry = entries_[host()];
  std::string text = fmt::format("far {} {} {} {}", nodes_, node, entries_[node].ptype, host_entry.port);
  for (int i = 0; i < nodes_; ++i)
    text += fmt::format(" {}.{}", static_cast<unsigned>(entries_[i].presence.load(std::memory_order_acquire)),
                        entries_[i].use);
  return fmt::format("{} {}", text, host_entry.card);
}

bool Cube::copy_from(const char* text) {
  std::istringstream in(text);
  std::string word;
  int nodes = 0, self = -1;
  if (!(in >> word >> nodes >> self) || word != "far" || nodes < 1 || self < 0 || self >= nodes) return false;
  void* memory = mmap(nullptr, bytes_for(nodes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  entries_ = static_cast<CubeEntry*>(memory);
  nodes_ = nodes;
  self_ = self;
  copy_ = true;
  if (read_copy(in, self)) return true;
  unmap();
  return false;
}

bool Cube::read_copy(std::istream& in, int self) {
  CubeEntry& host_entry = entries_[host()];
  std::string card;
  if (!(in >> entries_[self].ptype >> host_entry.port)) return false;
  for (int i = 0; i < nodes_; ++i) {
    unsigned presence = 0, use = 0;
    char dot = 0;
    if (!(in >> presence >> dot >> use)) return false;
    // Whose card this process does not have yet is being loaded, for it.
    const auto state = static_cast<Presence>(presence);
    entries_[i].use = use;
    entries_[i].presence = state == Presence::open ? Presence::loading : state;
  }
  if (!(in >> card) || card.size() >= sizeof host_entry.card) return false;
  card.copy(host_entry.card, card.size());
  host_entry.presence = Presence::open;
  return true;
}

int Cube::starting_beside(int node) const {
  return static_cast<int>(std::count_if(children_.begin(), children_.end(), [&](const Child& child) {
    return child.lifeline >= 0 && far_.of(child.node) == far_.of(node) &&
           entries_[child.node].presence.load(std::memory_order_acquire) == Presence::loading;
  }));
}

EntryBody Cube::image(int node) const noexcept {
  const CubeEntry& from = entries_[node];
  EntryBody image{};
  image.node = node;
  image.presence = static_cast<std::uint32_t>(from.presence.load(std::memory_order_acquire));
  image.ptype = from.ptype;
  image.pid = from.pid;
  image.use = from.use;
  image.port = from.port;
  std::memcpy(image.card, from.card, sizeof image.card);
  return image;
}

void Cube::apply(const EntryBody& image) noexcept {
  CubeEntry& to = entries_[image.node];
  to.ptype = image.ptype;
  to.pid = image.pid;
  to.use = image.use;
  to.port = static_cast<std::uint16_t>(image.port);
  std::memcpy(to.card, image.card, sizeof to.card);
  to.card[sizeof to.card - 1] = '\0';
  to.presence.store(static_cast<Presence>(image.presence), std::memory_order_release);
}

void Cube::expect(int node, std::int32_t ptype) {
  CubeEntry& at = entry(node);
  if (at.presence.load(std::memory_order_acquire) == Presence::empty) fresh_.insert(node);
  at.ptype = ptype;
  ++at.use;
  ever_loaded_ = true;
  at.presence.store(Presence::loading, std::memory_order_release);
}

// What was sent to a node into which nothing was loaded so far waits on.
void Cube::give_up(int node) {
  if (running(node)) return;
  if (fresh_.erase(node) == 0) return note_gone(node);
  entry(node).presence.store(Presence::empty, std::memory_order_release);
}

void Cube::note_gone(int node) { entry(node).presence.store(Presence::gone, std::memory_order_release); }

// In virtual time a question about a node has the same answer in each run only if no node is found half started.
void Cube::await_opening(const std::vector<int>& nodes) {
  if (!is_timed()) return;
  for (const int node : nodes)
    for (const Child& child : children_) {
      siginfo_t ended{};
      const auto is_over = [&] {
        return waitid(P_PID, static_cast<id_t>(child.pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               ended.si_pid != 0;
      };
      while (child.node == node && entry(node).presence.load(std::memory_order_acquire) == Presence::loading) {
        if (is_over()) {
          ulfm_place_end(place(node));
          break;
        }
        ppoll(nullptr, 0, &kLoadNap, nullptr);
      }
    }
}

void Cube::bury(int node) {
  if (!is_timed()) return;
  for (const Child& child : children_) {
    siginfo_t ended{};
    if (node >= 0 && child.node != node) continue;
    while (waitid(P_PID, static_cast<id_t>(child.pid), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    ulfm_place_end(place(child.node));
  }
}

// A node never outlives its host. On an emulated interconnect it has the place of its number.
void Cube::in_child(int node, pid_t parent) {
  end_with(parent);
  self_ = node;
  while (is_timed() && entry(node).begun.load(std::memory_order_acquire) != entry(node).use)
    ppoll(nullptr, 0, &kLoadNap, nullptr);
  if (std::getenv("ULFM_FABRIC_HOST") != nullptr) setenv("ULFM_FABRIC_RANK", fmt::format("{}", place(node)).c_str(), 1);
}

void Cube::note_child(pid_t pid, int node, int lifeline) {
  entry(node).pid = pid;
  fresh_.erase(node);
  children_.push_back({pid, node, lifeline});
  ulfm_place_begin(place(node), pid);
  entry(node).begun.store(entry(node).use, std::memory_order_release);
}

// With another environment it is still of this job.
void Cube::take_environment(char** environment) {
  constexpr const char* kKept[] = {"ULFM_TRANSPORT", "ULFM_FABRIC", "ULFM_FABRIC_HOST", "ULFM_FABRIC_RANK"};
  std::vector<std::pair<const char*, std::string>> kept;
  for (const char* name : kKept)
    if (const char* value = std::getenv(name)) kept.emplace_back(name, value);
  environ = environment;
  for (const auto& [name, value] : kept) setenv(name, value.c_str(), 1);
}

// In a new process, which becomes the launcher.
void Cube::start_far(const std::vector<std::string>& command, int node, int lifeline) const {
  dup2(lifeline, STDIN_FILENO);
  const std::vector<std::string> shell = far_.shell_on(node);
  const std::vector<char*> argv = argv_of(shell);
  execvp(argv.front(), argv.data());
  std::fprintf(stderr, "nx: load of %s on %s: %s: %s\n", command.front().c_str(), far_.of(node).c_str(), argv.front(),
               std::strerror(errno));
  _exit(127);
}

namespace {
// All of it, to a reader that may not read.
bool write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}
}  // namespace

// The shell on the other host reads what to do, and then until this process closes its end.
int Cube::load_far(const std::vector<std::string>& command, int node, char** environment) {
  if (before_far) before_far(node);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return EQMEM;
  const std::string script = script_for(command, text_for(node), environment);
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    end_with(parent);
    start_far(command, node, ends[1]);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return EQMEM;
  }
  note_child(pid, node, ends[0]);
  (void)write_all(ends[0], script);  // a launcher that has ended is noted as the node's end
  return 0;
}

int Cube::load(const std::vector<std::string>& command, int node, char** environment) {
  const std::string path = find_program(command.front());
  if (path.empty()) return access(command.front().c_str(), F_OK) == 0 ? EACCES : ENOENT;
  if (is_far(node)) {
    std::vector<std::string> there = command;
    there.front() = path;
    return load_far(there, node, environment);
  }
  const std::vector<char*> argv = argv_of(command);
  const std::string where = fmt::format("{}:{}:{}", fd_, nodes_, node);
  std::fflush(nullptr);  // or the child's copy of what is still unwritten would be written twice
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return EQMEM;
  if (pid == 0) {
    in_child(node, parent);
    fcntl(fd_, F_SETFD, 0);
    if (environment != nullptr && std::getenv("ULFM_FABRIC") != nullptr) take_environment(environment);
    else if (environment != nullptr) environ = environment;
    setenv(kVariable, where.c_str(), 1);
    unsetenv("NX2_NODES");
    unsetenv("NX2_LOAD");
    execvp(path.c_str(), argv.data());
    std::fprintf(stderr, "nx: load: %s: %s\n", path.c_str(), std::strerror(errno));
    _exit(127);
  }
  note_child(pid, node);
  return 0;
}

int Cube::load_all(const std::vector<std::string>& command, const std::vector<int>& nodes, std::int32_t ptype) {
  for (const int node : nodes) expect(node, ptype);
  for (const int node : nodes)
    if (const int error = load(command, node); error != 0) {
      for (const int other : nodes) give_up(other);
      return error;
    }
  await_opening(nodes);
  return 0;
}

pid_t Cube::fork_node(int node) {
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    in_child(node, parent);
    children_.clear();
  } else if (pid > 0) {
    note_child(pid, node);
  }
  return pid;
}

// In virtual time a process has ended when its clock has, before the host's; then it is about to end in the host's.
bool Cube::has_ended(const Child& child, int& status) const {
  if (!is_timed()) return waitpid(child.pid, &status, WNOHANG) > 0;
  if (ulfm_place_has_ended(place(child.node)) == 0) return false;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return true;
}

void Cube::reap() {
  for (std::size_t i = 0; i < children_.size();) {
    int status = 0;
    if (!has_ended(children_[i], status)) {
      ++i;
      continue;
    }
    const int node = children_[i].node;
    ended.push_back({node, entry(node).ptype, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)});
    const bool never_called = entry(node).presence.load(std::memory_order_acquire) == Presence::loading;
    if (never_called && children_[i].lifeline >= 0 && !never_called_) never_called_ = node;
    note_gone(node);
    children_[i].close_lifeline();
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Cube::signal(int node, int number) {
  for (const Child& child : children_)
    if (node < 0 || child.node == node) {
      if (child.lifeline >= 0) shutdown(child.lifeline, SHUT_RDWR);
      kill(child.pid, number);
    }
}

bool Cube::running(int node) const {
  for (const Child& child : children_)
    if (node < 0 || child.node == node) return true;
  return false;
}

bool Cube::any_works() const {
  for (const Child& child : children_) {
    if (child.lifeline >= 0) return true;  // its launcher is here, which tells nothing
    std::FILE* stat = std::fopen(fmt::format("/proc/{}/stat", child.pid).c_str(), "re");
    if (stat == nullptr) return true;
    char line[1024];
    const bool whole = std::fgets(line, sizeof line, stat) != nullptr;
    std::fclose(stat);
    // The name may hold blanks and parentheses; the state is the first field behind its last one (proc(5)).
    const char* behind = whole ? std::strrchr(line, ')') : nullptr;
    if (behind == nullptr || std::strchr("RD", behind[2]) != nullptr) return true;
  }
  return false;
}

std::string Cube::running_text() const {
  std::string text;
  int count = 0;
  for (int node = 0; node < nodes_; ++node)
    if (running(node)) text += fmt::format("{}{}", count++ == 0 ? "" : ", ", node);
  return (count == 1 ? "node " : "nodes ") + text;
}

std::string Cube::on_place(int node) const {
  return place_of(node).empty() ? "" : fmt::format(" on {}", place_of(node));
}

std::string Cube::never_called_text() const {
  if (!never_called_) return "";
  const std::string& place = place_of(*never_called_);
  return fmt::format("node {} on {} before its first call (does \"{} {} echo hello\" print hello?), ", *never_called_,
                     place, far_.launcher(), place);
}

void Cube::release() {
  signal(-1, SIGKILL);
  bury(-1);
  for (const Child& child : children_) {
    waitpid(child.pid, nullptr, 0);
    child.close_lifeline();
    note_gone(child.node);
  }
  children_.clear();
}

}  // namespace nx2
