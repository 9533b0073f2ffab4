#include "node.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
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

Node::Node() {
  cubes_.push_back(std::make_unique<HeldCube>());
  at_ = cubes_.front().get();
}

void Node::open() {
  std::string why;
  if (is_host()) {
    if (host_job_ == 0 && ulfm_job_alone(&host_job_) < 0) why = ulfm_last_error();
    channel().lend(host_job_, at_->port);
  }
  if (why.empty()) why = channel().open(cube());
  if (!why.empty()) {
    std::fprintf(stderr, "nx: this process could not start as a node: %s\n", why.c_str());
    std::_Exit(1);
  }
  timed_job = ulfm_time_is_virtual() != 0;
  engine().emplace(channel(), tuning_for(channel()));
  engine()->release_ignored = [this](Request& request) { ids.release(request); };
  engine()->on_kill = [] { std::exit(0); };
  if (cube().is_copy()) engine()->announce();
  process_ = getpid();
  report_deaths();
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
  node.cube().inherit();
  node.open();
  if (node.cube().exists()) node.engine()->ptype = node.cube().entry(node.self()).ptype;
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
  if (engine()) {
    if (nodes == this->nodes()) return 0;
    if (cube().ever_loaded()) return EQPARAM;
    engine().reset();
    channel().close();
  }
  if (!cube().create(nodes)) return EQMEM;
  open();
  engine()->ptype = kNoPtype;
  engine()->housekeeping = [this] { look_after_nodes(); };
  cube().before_far = [this](int node) { await_room_on_host(node); };
  return 0;
}

// nxhost HOST : NODE ARGUMENTS...: the nodes are loaded before the host's first call returns.
void Node::load_named_program() {
  const char* command = std::getenv("NX2_LOAD");
  if (command == nullptr || *command == '\0') return;
  std::vector<std::string> words;
  std::istringstream in(command);
  for (std::string word; std::getline(in, word, '\x1f');) words.push_back(word);
  std::vector<int> nodes(static_cast<std::size_t>(cube().nodes()));
  std::iota(nodes.begin(), nodes.end(), 0);
  if (const int error = cube().load_all(words, nodes, 0); error != 0) end_of_job("load", error);
  await_coming(nodes);
  loaded_by_name = words.front().substr(words.front().rfind('/') + 1);
}

// ---- several cubes
// ---------------------------------------------------------------------------------------------------

template <typename Do>
void Node::for_each_cube(Do what) {
  HeldCube* const attached = at_;
  for (const auto& held : cubes_) {
    at_ = held.get();
    what(at_ == attached);
  }
  at_ = attached;
}

Node::HeldCube* Node::find_cube(const std::string& name) const {
  for (const auto& held : cubes_)
    if (named_ && held->name == name) return held.get();
  return nullptr;
}

bool Node::name_first_cube(const std::string& name) {
  if (std::exchange(named_, true)) return false;
  at_->name = name;
  return true;
}

bool Node::attach_cube(const std::string& name) {
  HeldCube* const found = find_cube(name);
  if (found != nullptr) at_ = found;
  return found != nullptr;
}

// On an emulated interconnect cubes have nodes of their own: the first ones that are free, and a power of two of them
// begins at a multiple of that, so that it is a cube of its own there, too. -1: there are not so many.
int Node::place_for(int nodes) const {
  const char* const host = std::getenv("ULFM_FABRIC_HOST");
  if (host == nullptr) return 0;
  const int all = std::atoi(host);
  const auto step = static_cast<int>(std::bit_ceil(static_cast<unsigned>(nodes)));
  for (int first = 0; first + nodes <= all; first += step) {
    const bool is_free = std::none_of(cubes_.begin(), cubes_.end(), [&](const auto& held) {
      return held->cube.exists() && held->cube.place(0) < first + nodes && first < held->cube.place(held->cube.nodes());
    });
    if (is_free) return first;
  }
  return -1;
}

int Node::add_cube(const std::string& name, int nodes) {
  if (nodes == 0) nodes = cubes_.front()->cube.nodes();
  const int place = place_for(nodes);
  std::uint16_t port = kPort;
  while (std::any_of(cubes_.begin(), cubes_.end(), [&](const auto& held) { return held->port == port; })) ++port;
  if (place < 0 || port >= kPorts) return EQPARAM;
  HeldCube* const before = at_;
  cubes_.push_back(std::make_unique<HeldCube>());
  at_ = cubes_.back().get();
  at_->name = name;
  at_->port = port;
  cube().begin_at(place);
  if (const int error = make_cube(nodes); error != 0) {
    cubes_.pop_back();
    at_ = before;
    return error;
  }
  engine()->ptype = before->engine->ptype;
  for (const auto& held : cubes_) held->engine->is_one_of_several = true;
  return 0;
}

void Node::release_cube(const std::string& name) {
  HeldCube* const before = at_;
  if (HeldCube* const found = find_cube(name)) at_ = found;
  kill_nodes(-1, -1);
  if (cubes_.size() == 1) return;
  HeldCube* const released = at_;
  engine()->finish();
  channel().close();
  std::erase_if(cubes_, [&](const auto& held) { return held.get() == released; });
  at_ = released == before ? cubes_.back().get() : before;
}

// ---- the host looks after its nodes
// ----------------------------------------------------------------------------------

void Node::look_after_nodes() {
  for_each_cube([this](bool attached) {
    if (!attached) engine()->progress();
    look_after_attached();
  });
}

void Node::release_all() {
  for_each_cube([this](bool) { cube().release(); });
}

void Node::look_after_attached() {
  const std::size_t before = cube().ended.size();
  cube().reap();
  const std::span new_ones = std::span(cube().ended).subspan(before);
  for (const Cube::Ended& process : new_ones) engine()->abandon(process.node);
  note_loneliness();
  const auto bad = std::ranges::find_if(new_ones, [](const Cube::Ended& process) { return process.status != 0; });
  if (cube().killing || cube().host_asks) return;
  const int silent = engine()->silent_node();
  if (bad != new_ones.end())
    std::fprintf(stderr, "nx: node %d%s ended with status %d; the job ends\n", bad->node,
                 cube().on_place(bad->node).c_str(), bad->status);
  else if (silent >= 0)
    std::fprintf(
        stderr,
        "nx: node %d on %s does not answer and has not ended: its host has failed, or the network to it is cut "
        "(ULFM_GIVE_UP sets the time); the job ends\n",
        silent, cube().place_of(silent).c_str());
  else return;
  release_all();
  std::_Exit(1);
}

void Node::await_room_on_host(int node) {
  constexpr int kAtOnce = 8, kLong = 5000;  // milliseconds
  const auto has_room = [&] {
    look_after_nodes();
    return cube().starting_beside(node) < kAtOnce;
  };
  engine()->wait_for(has_room, kLong);
}

// They hear of each other from this process, in its calls; a host that computes after load() does not hold them up.
void Node::await_coming(const std::vector<int>& nodes) {
  constexpr int kLong = 5000;  // milliseconds; a program may compute before its first call
  if (!cube().has_far()) return;
  const auto have_come = [&] {
    look_after_nodes();
    return std::all_of(nodes.begin(), nodes.end(), [&](int node) {
      return cube().entry(node).presence.load(std::memory_order_acquire) != Presence::loading;
    });
  };
  engine()->wait_for(have_come, kLong);
  engine()->share_table();
}

// Said once: on the machine such a host waited for ever.
void Node::note_loneliness() {
  constexpr std::chrono::seconds kLong{5};
  const auto now = std::chrono::steady_clock::now();
  if (is_timed() || cubes_.size() > 1 || !cube().ever_loaded() || cube().running(-1) || cube().killing ||
      engine()->moved() != moved_when_alone_) {
    alone_since_.reset();
    moved_when_alone_ = engine()->moved();
  } else if (!alone_since_) {
    alone_since_ = now;
  } else if (now - *alone_since_ > kLong && !std::exchange(reported_alone_, true)) {
    std::fprintf(stderr, "nx: all nodes have ended, %sand the host still waits for a message; Ctrl-C ends it\n",
                 cube().never_called_text().c_str());
  }
}

void Node::become_node(std::int32_t ptype) {
  interrupt.forget();
  engine().reset();
  (void)team.release();  // the parent's
  asked_for_team = false;
  std::erase_if(cubes_, [this](const auto& held) {
    if (held.get() == at_) return false;
    held->channel.forget();
    return true;
  });
  host_job_ = 0;
  channel().forget();
  open();
  engine()->ptype = ptype;
}

void Node::kill_nodes(int node, std::int32_t ptype) {
  if (node >= 0 && ptype >= 0 && cube().entry(node).ptype != ptype) return;
  cube().killing = true;
  cube().signal(node, SIGKILL);
  cube().bury(node);
  engine()->wait_for(
      [&] {
        look_after_nodes();
        return !cube().running(node);
      },
      -1);
  cube().killing = false;
}

// ---- the end ----------------------------------------------------------------------------------------------------

// The host has no more messages for them. A node that neither ends nor works waits for one: on the machine it stayed
// until somebody gave the cube back. Whether a node works is looked at often, because one that waits looks around now
// and then.
bool Node::await_nodes() {
  constexpr int kStretch = 5000;  // milliseconds; virtual time knows a standstill without that
  bool reported = false;
  for (;;) {
    std::uint64_t looks = 0, working = 0;
    const auto none_left = [&] {
      look_after_nodes();
      ++looks, working += cube().any_works() ? 1 : 0;
      return !cube().running(-1);
    };
    if (engine()->wait_for(none_left, is_timed() ? -1 : kStretch)) return true;
    if (working * 4 < looks) return false;
    if (!std::exchange(reported, true))
      std::fprintf(stderr, "nx: the host has ended and waits for %s, which still work; Ctrl-C ends them\n",
                   cube().running_text().c_str());
  }
}

// False when nodes are left that wait for what cannot come.
bool Node::finish_attached() {
  const bool left = is_host() && !await_nodes();
  if (left)
    std::fprintf(stderr,
                 "nx: the host has ended, and %s still wait for messages that nobody will send; they are ended. Call "
                 "waitall() before the host ends, or killcube()\n",
                 cube().running_text().c_str());
  if (is_host()) cube().release();
  engine()->finish();
  team.reset();
  channel().close();
  return !left;
}

void Node::finish() {
  if (process_ != getpid()) return;  // a child that forked and did not become a node
  interrupt.stop();
  bool well = true;
  for (; cubes_.size() > 1; cubes_.pop_back()) {
    at_ = cubes_.back().get();
    well = finish_attached() && well;
  }
  at_ = cubes_.front().get();
  well = finish_attached() && well;
  if (host_job_ != 0) (void)ulfm_job_leave(host_job_);
  if (well) return;
  std::fflush(nullptr);
  std::_Exit(1);
}

void Node::finish_at_exit() {
  Node* node = started_;
  if (node == nullptr || !node->engine()) return;
  node->finish();
  ended_ = true;
}

void end_of_job(const char* call, int error) noexcept {
  const Node* node = Node::if_started();
  const char* words = phrase(error);
  std::fflush(nullptr);
  char text[256];
  const int length = std::snprintf(text, sizeof text, "(node %d, pid %d) %s: %s\n", node != nullptr ? node->self() : 0,
                                   node != nullptr && node->engine() ? node->engine()->ptype : 0, call,
                                   words != nullptr ? words : std::strerror(error));
  (void)!write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  if (node != nullptr && node->is_host()) const_cast<Node*>(node)->release_all();
  end_all(1);
}

namespace {
/// Naps until `done` says so, for two seconds at most.
template <typename Done>
void nap_until(Done done) noexcept {
  constexpr timespec kNap{0, 1'000'000};
  for (int naps = 0; naps < 2000 && !done(); ++naps) ppoll(nullptr, 0, &kNap, nullptr);  // no handler runs meanwhile
}

/// The reader of this process's output has all of it, or the output does not go to a pipe.
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
