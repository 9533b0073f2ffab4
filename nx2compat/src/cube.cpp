#include "cube.hpp"

#include <string>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "outcome.hpp"

namespace nx2 {
namespace {

constexpr const char* kVariable = "NX2_CUBE";  // descriptor:nodes:node

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
  if (is_program(name)) return name.front() == '/' ? name : "./" + name;
  if (name.find('/') != std::string::npos) return "";
  const char* const variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (is_program(folder + "/" + name)) return folder + "/" + name;
  return "";
}

}  // namespace

Cube::~Cube() { unmap(); }

void Cube::unmap() {
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
  // Many processes on few cores: whoever waits makes room at once. The host itself has not joined yet.
  if (nodes + 1 > usable_cores()) setenv("ULFM_SPIN", "2", 0);
  return true;
}

bool Cube::inherit() {
  const char* text = std::getenv(kVariable);
  int fd = -1, nodes = 0, self = 0;
  if (text == nullptr || std::sscanf(text, "%d:%d:%d", &fd, &nodes, &self) != 3) return false;
  if (nodes < 1 || self < 0 || self >= nodes || !map(fd, nodes)) return false;
  self_ = self;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return true;
}

void Cube::expect(int node, std::int32_t ptype) {
  CubeEntry& at = entry(node);
  at.ptype = ptype;
  ++at.use;
  ever_loaded_ = true;
  at.presence.store(Presence::loading, std::memory_order_release);
}

void Cube::give_up(int node) {
  if (!running(node)) entry(node).presence.store(Presence::gone, std::memory_order_release);
}

// A node never outlives its host.
void Cube::in_child(int node, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  self_ = node;
}

int Cube::load(const std::vector<std::string>& command, int node, char** environment) {
  const std::string path = find_program(command.front());
  if (path.empty()) return ENOENT;
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  char place[64];
  std::snprintf(place, sizeof place, "%d:%d:%d", fd_, nodes_, node);
  std::fflush(nullptr);  // or the child's copy of what is still unwritten would be written twice
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return EQMEM;
  if (pid == 0) {
    in_child(node, parent);
    fcntl(fd_, F_SETFD, 0);
    if (environment != nullptr) environ = environment;
    setenv(kVariable, place, 1);
    unsetenv("NX2_NODES");
    unsetenv("NX2_LOAD");
    execvp(path.c_str(), argv.data());
    std::fprintf(stderr, "nx: load: %s: %s\n", path.c_str(), std::strerror(errno));
    _exit(127);
  }
  entry(node).pid = pid;
  children_.push_back({pid, node});
  return 0;
}

int Cube::load_all(const std::vector<std::string>& command, const std::vector<int>& nodes, std::int32_t ptype) {
  for (const int node : nodes) expect(node, ptype);
  for (const int node : nodes)
    if (const int error = load(command, node); error != 0) {
      for (const int other : nodes) give_up(other);
      return error;
    }
  return 0;
}

pid_t Cube::fork_node(int node) {
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    in_child(node, parent);
    children_.clear();
  } else if (pid > 0) {
    entry(node).pid = pid;
    children_.push_back({pid, node});
  }
  return pid;
}

int Cube::reap() {
  int bad = -1;
  for (std::size_t i = 0; i < children_.size();) {
    int status = 0;
    if (waitpid(children_[i].pid, &status, WNOHANG) <= 0) {
      ++i;
      continue;
    }
    const int node = children_[i].node;
    if (status != 0) bad = node;
    ended.push_back({node, entry(node).ptype, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)});
    entry(node).presence.store(Presence::gone, std::memory_order_release);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return bad;
}

void Cube::signal(int node, int number) {
  for (const Child& child : children_)
    if (node < 0 || child.node == node) kill(child.pid, number);
}

bool Cube::running(int node) const {
  for (const Child& child : children_)
    if (node < 0 || child.node == node) return true;
  return false;
}

bool Cube::any_works() const {
  for (const Child& child : children_) {
    std::FILE* stat = std::fopen(("/proc/" + std::to_string(child.pid) + "/stat").c_str(), "re");
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
    if (running(node)) text += (count++ == 0 ? "" : ", ") + std::to_string(node);
  return (count == 1 ? "node " : "nodes ") + text;
}

void Cube::release() {
  signal(-1, SIGKILL);
  for (const Child& child : children_) {
    waitpid(child.pid, nullptr, 0);
    entry(child.node).presence.store(Presence::gone, std::memory_order_release);
  }
  children_.clear();
}

}  // namespace nx2
