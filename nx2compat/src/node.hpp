// This process as a node or as the host: what the first NX call starts and the end of the program ends.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cube.hpp"
#include "engine.hpp"
#include "interrupt.hpp"
#include "message_ids.hpp"
#include "team.hpp"

namespace nx2 {

inline constexpr std::int32_t kNoPtype = -1;

class Node {
 public:
  /// The one of this process; started by the first call.
  static Node& instance() {
    if (__builtin_expect(started_ == nullptr, 0)) start();
    return *started_;
  }
  /// Without starting it; nullptr before the first call.
  static Node* if_started() noexcept { return started_; }

  /// A host call as the first one makes a process that nobody launched the host of a cube.
  static Node& host();
  bool is_host() const noexcept { return cube().exists() && cube().self() == cube().host(); }

  int self() const noexcept { return channel().self(); }
  int nodes() const noexcept { return channel().nodes(); }
  /// Number of the host: the one after the last node, also when there is none.
  int host_place() const noexcept { return nodes(); }

  /// Connects a host to a cube of that many nodes. An NX error number or 0.
  int make_cube(int nodes);
  /// What nx_nfork does in the new process.
  void become_node(std::int32_t ptype);
  /// Ends the processes of a node (-1: of all nodes).
  void kill_nodes(int node, std::int32_t ptype);
  /// Gives nodes on other hosts the time to come and to hear of each other; what of these are here too.
  void await_coming(const std::vector<int>& nodes);
  /// A host takes some logins at a time (sshd_config(5), MaxStartups: 10): waits until few are on their way.
  void await_room_on_host(int node);
  /// At the host's end. Nodes that work end by themselves; false when those that are left wait for what cannot come.
  bool await_nodes();
  /// Ends every node of every cube.
  void release_all();
  /// Notes which nodes have ended; one that ended badly ends the job.
  void look_after_nodes();

  // Of a node, or of the cube that a host has attached.
  Cube& cube() const noexcept { return at_->cube; }
  Channel& channel() const noexcept { return at_->channel; }
  std::optional<NxEngine>& engine() const noexcept { return at_->engine; }

  // A host's cubes. Its calls are for the one that is attached; the others' messages move on meanwhile.
  std::size_t cubes() const noexcept { return cubes_.size(); }
  /// The name of the cube that the host has from its beginning; false when that has one.
  bool name_first_cube(const std::string& name);
  bool attach_cube(const std::string& name);
  /// A further one of so many nodes (0: as many as the first), which is attached. An NX error number or 0.
  int add_cube(const std::string& name, int nodes);
  /// Ends what runs there and gives its nodes back, but for the last one that the host has.
  void release_cube(const std::string& name);

  MessageIds ids;              // before the engines, whose lists hold its requests
  std::unique_ptr<Team> team;  ///< before the channel is closed
  bool asked_for_team = false;
  Interrupt interrupt;
  std::string loaded_by_name;  ///< the program that nxhost was given for the nodes
  const std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();

 private:
  Node();
  static void start();
  static void start_as_host();
  static void finish_at_exit();
  void open();
  void finish();
  void load_named_program();
  /// Says that the host waits for nodes of which none is left.
  void note_loneliness();
  static Node& only();
  struct HeldCube {
    std::string name;
    std::uint16_t port = kPort;  ///< the host's for this cube
    Cube cube;
    Channel channel;
    std::optional<NxEngine> engine;
  };
  template <typename Do>
  void for_each_cube(Do what);
  HeldCube* find_cube(const std::string& name) const;
  int place_for(int nodes) const;
  void look_after_attached();
  bool finish_attached();

  static Node* started_;
  static inline bool ended_ = false;
  std::vector<std::unique_ptr<HeldCube>> cubes_;
  HeldCube* at_ = nullptr;
  bool named_ = false;
  ulfm_job host_job_ = 0;  ///< of all its channels
  pid_t process_ = 0;
  std::optional<std::chrono::steady_clock::time_point> alone_since_;
  std::uint64_t moved_when_alone_ = 0;
  bool reported_alone_ = false;
};

/// Every call is inside one of these. The outermost runs the handlers of what has completed meanwhile.
class Call {
 public:
  Call() : node_(Node::instance()) { node_.interrupt.enter(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (__builtin_expect(node_.interrupt.active(), 0)) node_.interrupt.leave_slowly();
    else node_.interrupt.leave();
  }
  NxEngine& engine() noexcept { return *node_.engine(); }
  Node& node() noexcept { return node_; }

 private:
  Node& node_;
};

/// Sets what info...() tell, and msginfo for C and Fortran.
void set_info(const MessageInfo& info) noexcept;

}  // namespace nx2
