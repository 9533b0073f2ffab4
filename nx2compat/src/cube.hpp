// The cube of a host program: a page that the host and the nodes it starts share.
//
// Nodes on other hosts have a copy of it, which the host keeps up to date by messages (Kind::entry).
//
// Nodes that mpiexec starts find each other through it. Nodes that a host starts, one after the other and in
// any order, find each other and the host through this table: who is there, and the card by which its port is
// reached.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "far.hpp"
#include "wire.hpp"

namespace nx2 {

enum class Presence : std::uint32_t {
  empty,    ///< nothing was loaded here
  loading,  ///< a process is being started, or has not made its first NX call
  open,     ///< its port is open and its card is in the table
  gone,     ///< it ended
};

struct CubeEntry {
  /// The store of `open`, by Channel::open_in_cube, pairs with Channel::reach: the card is there. The other stores
  /// publish nothing that is read.
  std::atomic<Presence> presence;
  std::int32_t ptype;
  std::int32_t pid;
  std::uint32_t use;  ///< counts the processes that were loaded here
  /// In virtual time: nanoseconds at which its port was opened. Before `presence`.
  std::int64_t opened_at;
  std::atomic<std::uint32_t> begun;  ///< `use` of the process whose clock the host has begun, which waits for that
  std::uint16_t port;
  char card[sizeof EntryBody::card];
};

class Cube {
 public:
  Cube() = default;
  Cube(const Cube&) = delete;
  Cube& operator=(const Cube&) = delete;
  ~Cube();

  /// Makes the table for that many nodes and a host; one that was made before goes.
  bool create(int nodes);
  /// Maps the table that this process inherited, or makes its copy on another host; false when its environment names
  /// none.
  bool inherit();
  /// This process's table is a copy.
  bool is_copy() const noexcept { return copy_; }
  /// A node is on another host than the host program.
  bool is_far(int node) const noexcept { return node < nodes_ && !far_.of(node).empty(); }
  bool has_far() const noexcept { return far_.any(); }
  /// The host of a far node.
  const std::string& place_of(int node) const noexcept { return far_.of(node); }
  /// " on HOST" of a far node; "" of one that is here.
  std::string on_place(int node) const;
  /// For a sentence: of a far node that ended before its first call, whose program perhaps never ran; "" without one.
  std::string never_called_text() const;
  /// Nodes on that node's host whose program was started and has not come to its first call.
  int starting_beside(int node) const;
  /// Called before a program is started on another host.
  std::function<void(int node)> before_far;
  EntryBody image(int node) const noexcept;
  void apply(const EntryBody& image) noexcept;

  bool exists() const noexcept { return entries_ != nullptr; }
  int nodes() const noexcept { return nodes_; }
  int host() const noexcept { return nodes_; }
  /// The node that this process was loaded into; host() in the host.
  int self() const noexcept { return self_; }
  CubeEntry& entry(int node) noexcept { return entries_[node]; }

  /// A program is about to be started on a node: from now on messages to it wait. Who starts several says so
  /// of all of them first; otherwise what the first sends to the last could come before it and be lost.
  void expect(int node, std::int32_t ptype);
  /// None was started on that node after all.
  void give_up(int node);
  /// In virtual time: returns when each of these has opened its port, or has ended without that.
  void await_opening(const std::vector<int>& nodes);
  /// The place of its node 0 on an emulated interconnect; 0 when nobody says so.
  void begin_at(int place) noexcept { first_place_ = place; }
  /// Its place there.
  int place(int node) const noexcept { return first_place_ + node; }
  /// The process of a node has ended, now.
  void note_gone(int node);
  /// The processes of a node (-1: of all) have been told to end: waits for that in virtual time.
  void bury(int node);
  /// Starts a program on a node that expects one; found as a shell finds it, or in the current folder. An NX
  /// error number or 0.
  int load(const std::vector<std::string>& command, int node, char** environment = nullptr);
  /// Some process was started here.
  bool ever_loaded() const noexcept { return ever_loaded_; }
  /// The host has begun to end nodes: that one ends badly is no news.
  bool killing = false;
  /// The host waits in waitone(), which tells it how a node has ended.
  bool host_asks = false;
  /// The same on all of these nodes, of which none must expect one yet.
  int load_all(const std::vector<std::string>& command, const std::vector<int>& nodes, std::int32_t ptype);
  /// A copy of this process on a node that expects one (nx_nfork). Value: 0 in the new process, its process
  /// id in the parent, -1.
  pid_t fork_node(int node);
  /// Notes which processes have ended.
  void reap();
  /// Sends a signal to the processes of a node, or of all for -1.
  void signal(int node, int number);
  /// A process of that node (-1: of any) still runs.
  bool running(int node) const;
  /// Ends every process that still runs.
  void release();
  /// A process that still runs has or wants a processor, or waits for a disk; also where /proc does not tell.
  bool any_works() const;
  /// "nodes 0, 2 and 3": where a process still runs.
  std::string running_text() const;

  struct Ended {
    int node;
    std::int32_t ptype;
    int status;
  };
  /// Processes that ended and that waitone has not told of yet.
  std::vector<Ended> ended;

 private:
  struct Child {
    void close_lifeline() const noexcept;
    pid_t pid;
    int node;
    int lifeline = -1;  ///< of one on another host: its program is killed when this is closed
  };
  int load_far(const std::vector<std::string>& command, int node, char** environment);
  void start_far(const std::vector<std::string>& command, int node, int lifeline) const;
  std::string text_for(int node) const;
  bool copy_from(const char* text);
  bool read_copy(std::istream& in, int self);
  bool has_ended(const Child& child, int& status) const;
  bool map(int fd, int nodes);
  void unmap();
  void in_child(int node, pid_t parent);
  void note_child(pid_t pid, int node, int lifeline = -1);
  static void take_environment(char** environment);

  int fd_ = -1;
  int nodes_ = 0;
  int self_ = 0;
  int first_place_ = 0;
  CubeEntry* entries_ = nullptr;
  FarHosts far_;
  bool copy_ = false;
  bool ever_loaded_ = false;
  std::set<int> fresh_;  ///< nodes for which no program was started so far, but one is about to be
  std::vector<Child> children_;
  std::optional<int> never_called_;  // a far node: the first that ended without a call
};

}  // namespace nx2
