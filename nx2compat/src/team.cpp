#include "team.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "global.hpp"
#include "node.hpp"

namespace nx2 {
namespace {

void progress(void* engine) {
  static_cast<NxEngine*>(engine)->progress();
  static_cast<NxEngine*>(engine)->run_handlers();
}

void check(int code) {
  if (code == ULFM_OK) return;
  std::fprintf(stderr, "nx: %s\n", ulfm_last_error());
  end_of_job("global operation", code == ULFM_ERR_NO_MEMORY ? EQMEM : EQNODE);
}

/// What node 0 has, in all nodes, along a binary tree.
void give_to_all(Group& group, void* data, std::size_t bytes) {
  if (group.self() != 0) group.receive((group.self() - 1) / 2, data, bytes);
  for (const int child : {2 * group.self() + 1, 2 * group.self() + 2})
    if (child < group.size()) group.send(child, data, bytes);
}

/// Whether it is true in all nodes: up the tree and down again.
bool in_all(Group& group, bool here) {
  std::uint8_t all = here ? 1 : 0, theirs = 0;
  for (const int child : {2 * group.self() + 1, 2 * group.self() + 2}) {
    if (child >= group.size()) continue;
    group.receive(child, &theirs, 1);
    all &= theirs;
  }
  if (group.self() != 0) group.send((group.self() - 1) / 2, &all, 1);
  give_to_all(group, &all, 1);
  return all != 0;
}

}  // namespace

Team* Team::of(Node& node, Group& group) {
  if (node.asked_for_team) return node.team.get();
  node.asked_for_team = true;
  if (node.cube().exists() || group.size() < 2 || node.channel().transport() != "direct") return nullptr;
  // Node 0 finds out whether a team is possible; an empty ticket says that it is not.
  char ticket[ULFM_TEAM_TICKET] = "";
  ulfm_team* made = nullptr;
  NxEngine* engine = &*node.engine();
  const ulfm_job job = node.channel().job();
  if (group.self() == 0 && ulfm_team_create(job, group.size(), progress, engine, ticket, &made) != ULFM_OK)
    ticket[0] = 0;
  give_to_all(group, ticket, sizeof ticket);
  if (ticket[0] == 0) return nullptr;
  if (group.self() != 0 && ulfm_team_join(job, ticket, group.self(), group.size(), progress, engine, &made) != ULFM_OK)
    made = nullptr;
  std::unique_ptr<Team> team(made != nullptr ? new Team(made) : nullptr);
  if (in_all(group, team != nullptr)) node.team = std::move(team);
  return node.team.get();
}

void Team::barrier() { check(ulfm_team_barrier(team_.get())); }

bool Team::reduce(void* x, std::size_t count, std::size_t element, ulfm_team_combine combine) {
  if (ulfm_team_gains(team_.get(), ULFM_TEAM_REDUCE, count * element) == 0) return false;
  check(ulfm_team_reduce(team_.get(), x, x, count, element, combine));
  return true;
}

bool Team::gather(const void* x, std::size_t size, std::vector<std::size_t>& lengths, std::vector<std::byte>& all) {
  const std::vector<std::size_t> one(lengths.size(), sizeof size);
  check(ulfm_team_gather(team_.get(), &size, lengths.data(), one.data()));
  const std::size_t most = *std::max_element(lengths.begin(), lengths.end());
  if (ulfm_team_gains(team_.get(), ULFM_TEAM_GATHER, most) == 0) return false;
  all.resize(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}));
  check(ulfm_team_gather(team_.get(), x, all.data(), lengths.data()));
  return true;
}

}  // namespace nx2
