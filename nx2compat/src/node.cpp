#include "node.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>

#include "deaths.hpp"
#include "timed.hpp"

extern "C" {
// What programs read themselves; C's msginfo and Fortran's COMMON /MSGINFO/.
__attribute__((visibility("default"))) long msginfo[8];
__attribute__((visibility("default"))) std::int32_t msginfo_[8];
}

namespace nx2 {
namespace {

// killcube() ends a node wherever it is: the lines that it has printed have gone by then, to a pipe too.
[[gnu::constructor]] void print_by_lines() {
  if (isatty(STDOUT_FILENO) == 0) std::setvbuf(stdout, nullptr, _IOLBF, 0);
}

bool was_launched() { return std::getenv("PMI_FD") != nullptr || std::getenv("PMI_PORT") != nullptr; }

// A node that never makes a call must not keep the others from starting: it joins when it ends.
struct JoinsAtLast {
  ~JoinsAtLast() {
    if (was_launched()) (void)Node::instance();
  }
};

}  // namespace

Node* Node::started_ = nullptr;

namespace {
template <typename Element>
void write_numbers(Element* to, const MessageInfo& info) noexcept {
  to[0] = info.type;
  to[1] = static_cast<Element>(info.count);
  to[2] = info.node;
  to[3] = info.ptype;
}
}  // namespace

void set_info(const MessageInfo& info) noexcept {
  write_numbers(msginfo, info);
  write_numbers(msginfo_, info);
}

void write_info(const InfoArray& info, const MessageInfo& of) noexcept {
  if (info.place == msginfo || info.place == msginfo_) set_info(of);
  else if (info.narrow) write_numbers(static_cast<std::int32_t*>(info.place), of);
  else write_numbers(static_cast<long*>(info.place), of);
}

// ---- beginning --------------------------------------------------------------------------------------------------

void Node::open() {
  if (const std::string why = channel.open(cube); !why.empty()) {
    std::fprintf(stderr, "nx: this process could not start as a node: %s\n", why.c_str());
    std::_Exit(1);
  }
  timed_job = ulfm_time_is_virtual() != 0;
  engine.emplace(channel, tuning_for(channel.transport()));
  engine->release_ignored = [this](Request& request) { ids.release(request); };
  engine->on_kill = [] { std::exit(0); };
  process_ = getpid();
  tell_of_deaths();
}

Node& Node::only() {
  static Node node;
  return node;
}

void Node::start() {
  Node& node = only();
  if (ended_) {
    std::fprintf(stderr, "nx: a call after the end of the program\n");
    std::_Exit(1);
  }
  if (std::getenv("NX2_NODES") != nullptr && !was_launched()) return start_as_host();
  node.cube.inherit();
  node.open();
  if (node.cube.exists()) node.engine->ptype = node.cube.entry(node.self()).ptype;
  started_ = &node;
  std::atexit(finish_at_exit);
}

Node& Node::host() {
  if (started_ == nullptr && !was_launched() && std::getenv("NX2_CUBE") == nullptr) start_as_host();
  return instance();
}

// The size is nxhost's; without it a cube of one node, until getcube says otherwise.
void Node::start_as_host() {
  Node& node = only();
  started_ = &node;
  std::atexit(finish_at_exit);
  const char* size = std::getenv("NX2_NODES");
  const int nodes = size != nullptr ? std::atoi(size) : 1;
  if (node.make_cube(nodes < 1 ? 1 : nodes) != 0) end_of_job("getcube", EQMEM);
  node.load_named_program();
}

int Node::make_cube(int nodes) {
  if (engine) {
    if (nodes == this->nodes()) return 0;
    if (cube.ever_loaded()) return EQPARAM;
    engine.reset();
    channel.close();
  }
  if (!cube.create(nodes)) return EQMEM;
  open();
  engine->ptype = kNoPtype;
  engine->housekeeping = [this] { look_after_nodes(); };
  return 0;
}

// nxhost HOST : NODE ARGUMENTS...: the nodes are loaded before the host's first call returns.
void Node::load_named_program() {
  const char* command = std::getenv("NX2_LOAD");
  if (command == nullptr || *command == '\0') return;
  std::vector<std::string> words;
  std::istringstream in(command);
  for (std::string word; std::getline(in, word, '\x1f');) words.push_back(word);
  std::vector<int> nodes(static_cast<std::size_t>(cube.nodes()));
  std::iota(nodes.begin(), nodes.end(), 0);
  if (const int error = cube.load_all(words, nodes, 0); error != 0) end_of_job("load", error);
  loaded_by_name = words.front().substr(words.front().rfind('/') + 1);
}

// ---- the host looks after its nodes
// ----------------------------------------------------------------------------------

void Node::look_after_nodes() {
  const std::size_t before = cube.ended.size();
  const int bad = cube.reap();
  for (std::size_t i = before; i < cube.ended.size(); ++i) engine->abandon(cube.ended[i].node);
  note_loneliness();
  if (bad < 0 || cube.killing) return;
  std::fprintf(stderr, "nx: node %d ended with status %d; the job ends\n", bad, cube.ended.back().status);
  cube.release();
  std::_Exit(1);
}

// Said once: on the machine such a host waited for ever.
void Node::note_loneliness() {
  constexpr std::chrono::seconds kLong{5};
  const auto now = std::chrono::steady_clock::now();
  if (!cube.ever_loaded() || cube.running(-1) || cube.killing || engine->moved() != moved_when_alone_) {
    alone_since_ = now;
    moved_when_alone_ = engine->moved();
  } else if (now - alone_since_ > kLong && !std::exchange(told_loneliness_, true)) {
    std::fprintf(stderr, "nx: all nodes have ended, and the host still waits for a message; Ctrl-C ends it\n");
  }
}

void Node::become_node(std::int32_t ptype) {
  interrupt.forget();
  engine.reset();
  (void)team.release();  // the parent's
  asked_for_team = false;
  channel.forget();
  open();
  engine->ptype = ptype;
}

void Node::kill_nodes(int node, std::int32_t ptype) {
  if (node >= 0 && ptype >= 0 && cube.entry(node).ptype != ptype) return;
  cube.killing = true;
  cube.signal(node, SIGKILL);
  engine->wait_for(
      [&] {
        look_after_nodes();
        return !cube.running(node);
      },
      -1);
  cube.killing = false;
}

// ---- the end ----------------------------------------------------------------------------------------------------

// The host has no more messages for them. A node that neither ends nor works waits for one: on the machine it stayed
// until somebody gave the cube back. Whether a node works is looked at often, because one that waits looks around now
// and then.
bool Node::await_nodes() {
  constexpr int kStretch = 5000;  // milliseconds
  bool told = false;
  for (;;) {
    std::uint64_t looks = 0, working = 0;
    const auto none_left = [&] {
      look_after_nodes();
      ++looks, working += cube.any_works() ? 1 : 0;
      return !cube.running(-1);
    };
    if (engine->wait_for(none_left, kStretch)) return true;
    if (working * 4 < looks) return false;
    if (!std::exchange(told, true))
      std::fprintf(stderr, "nx: the host has ended and waits for %s, which still work; Ctrl-C ends them\n",
                   cube.running_text().c_str());
  }
}

void Node::finish() {
  if (process_ != getpid()) return;  // a child that forked and did not become a node
  interrupt.stop();
  const bool left = is_host() && !await_nodes();
  if (left)
    std::fprintf(stderr,
                 "nx: the host has ended, and %s still wait for messages that nobody will send; they are ended. Call "
                 "waitall() before the host ends, or killcube()\n",
                 cube.running_text().c_str());
  if (is_host()) cube.release();
  engine->finish();
  team.reset();
  channel.close();
  if (!left) return;
  std::fflush(nullptr);
  std::_Exit(1);
}

void Node::finish_at_exit() {
  Node* node = started_;
  if (node == nullptr || !node->engine) return;
  node->finish();
  ended_ = true;
}

void end_of_job(const char* call, int error) noexcept {
  const Node* node = Node::if_started();
  const char* words = phrase(error);
  std::fflush(nullptr);
  char text[256];
  const int length = std::snprintf(text, sizeof text, "(node %d, pid %d) %s: %s\n", node != nullptr ? node->self() : 0,
                                   node != nullptr && node->engine ? node->engine->ptype : 0, call,
                                   words != nullptr ? words : std::strerror(error));
  (void)!write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  if (node != nullptr && node->is_host()) const_cast<Node*>(node)->cube.release();
  end_all(1);
}

namespace {
/// Naps until `done` says so, for two seconds at most.
template <typename Done>
void nap_until(Done done) noexcept {
  constexpr timespec kNap{0, 1'000'000};
  for (int naps = 0; naps < 2000 && !done(); ++naps) ppoll(nullptr, 0, &kNap, nullptr);  // no handler runs meanwhile
}

/// Whoever reads this process's output has it all; also when it goes elsewhere than to a pipe.
bool was_read(int descriptor) noexcept {
  struct stat info {};
  int unread = 0;
  return fstat(descriptor, &info) != 0 || !S_ISFIFO(info.st_mode) || ioctl(descriptor, FIONREAD, &unread) != 0 ||
         unread == 0;
}
}  // namespace

// A launcher that is told by PMI-1 ends this process as well. If it were not told, it would take the end for an
// accident and say so in MPI's words. It does not read again what it has not read by then.
void end_all(int status) noexcept {
  if (const char* const launcher = std::getenv("PMI_FD")) {
    nap_until([] { return was_read(STDOUT_FILENO) && was_read(STDERR_FILENO); });
    char text[48];
    const int length = std::snprintf(text, sizeof text, "cmd=abort exitcode=%d\n", status);
    if (write(std::atoi(launcher), text, static_cast<std::size_t>(length)) == length) nap_until([] { return false; });
  }
  std::_Exit(status);
}

// ---- handlers ---------------------------------------------------------------------------------------------------

void call_handler(const Handler& handler, const MessageInfo& info) {
  long kept[8];
  std::memcpy(kept, msginfo, sizeof kept);  // of the program, in which this comes
  if (handler.style == Handler::Style::c) {
    if (handler.extended)
      reinterpret_cast<void (*)(long, long, long, long, long)>(handler.entry)(info.type, info.count, info.node,
                                                                              info.ptype, handler.hparam);
    else
      reinterpret_cast<void (*)(long, long, long, long)>(handler.entry)(info.type, info.count, info.node, info.ptype);
  } else {
    std::int32_t type = info.type, count = static_cast<std::int32_t>(info.count), node = info.node, ptype = info.ptype;
    auto hparam = static_cast<std::int32_t>(handler.hparam);
    using Number = std::int32_t*;
    if (handler.extended)
      reinterpret_cast<void (*)(Number, Number, Number, Number, Number)>(handler.entry)(&type, &count, &node, &ptype,
                                                                                        &hparam);
    else reinterpret_cast<void (*)(Number, Number, Number, Number)>(handler.entry)(&type, &count, &node, &ptype);
  }
  set_info({static_cast<std::int32_t>(kept[0]), static_cast<std::int32_t>(kept[2]), static_cast<std::int32_t>(kept[3]),
            kept[1]});
}

namespace {
JoinsAtLast g_joins_at_last;
}

}  // namespace nx2
