// The nodes as a team: global operations through memory that they share, where they may (ulfm/team.h).
#pragma once

#include <ulfm/team.h>

#include <memory>
#include <vector>

namespace nx2 {

class Group;
class Node;

class Team {
 public:
  /// The nodes' team, made by the first global operation, which all nodes call; nullptr when messages have to do: over
  /// an emulated interconnect, on several hosts, in a cube whose programs come and go.
  static Team* of(Node& node, Group& group);

  /// These end the job when a node has died.
  void barrier();
  /// False with nothing done when messages are as fast.
  bool reduce(void* x, std::size_t count, std::size_t element, ulfm_team_combine combine);
  /// What each node has, in the order of the nodes; false as above. `lengths` gets the nodes' lengths either way.
  bool gather(const void* x, std::size_t size, std::vector<std::size_t>& lengths, std::vector<std::byte>& all);

 private:
  struct Close {
    void operator()(ulfm_team* team) const noexcept { ulfm_team_close(team); }
  };
  explicit Team(ulfm_team* team) : team_(team) {}
  std::unique_ptr<ulfm_team, Close> team_;
};

}  // namespace nx2
