// Teams: the collectives of coll/ for libraries over ports.
#include <ulfm/team.h>

#include <cstring>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "api/handles.hpp"
#include "api/last_error.hpp"
#include "base/wait_word.hpp"
#include "coll/collective.hpp"

using namespace ulfm;

struct ulfm_team {
  std::unique_ptr<coll::Collective> collective;
  Node* node;
  bool always;  // ULFM_COLLECTIVES=on
  int member;
  std::vector<std::size_t> at;  // of the members' parts, while they are gathered
};

namespace {

static_assert(coll::kTicketBytes == ULFM_TEAM_TICKET);

Result<Node*> allowed(ulfm_job job, int size) {
  auto node = node_of(job);
  if (!node) return node;
  if (size < 1) return fail(Errc::invalid, fmt::format("a team of {} members: 1 or more are needed", size));
  if (const std::string& name = (*node)->process().transport_name(); name != "direct")
    return fail(Errc::unavailable, fmt::format("teams share memory; over {} there are messages only", name));
  if ((*node)->config().text("COLLECTIVES") == "off")
    return fail(Errc::unavailable, "teams are switched off by ULFM_COLLECTIVES=off");
  return node;
}

coll::WaitHooks hooks_for(Node* node, ulfm_team_progress progress, void* arg) {
  return {[progress, arg] {
            if (progress != nullptr) progress(arg);
            return 0;
          },
          [node] { return node->look(); },
          [node](WaitWord call, const Look& over) { return node->park(coll::kLongestNap, call, over); }};
}

int adopt(Node* node, Result<std::unique_ptr<coll::Collective>> made, int member, int size, ulfm_team** team) {
  if (!made) return report(made.error());
  if (node->config().text("ONE_COPY") == "off") (*made)->without_one_copy();
  *team = new ulfm_team{std::move(*made), node, node->config().text("COLLECTIVES") == "on", member,
                        std::vector<std::size_t>(static_cast<std::size_t>(size))};
  return ULFM_OK;
}

int result_of(ulfm_team* team, int kind, int code) {
  team->node->process().count_collective(kind, ULFM_COLL_SHARED);
  if (code == 0) return ULFM_OK;
  if (code == coll::Collective::kNoMemory) return report({Errc::no_memory, "no memory for a team's shared parts"});
  if (code == coll::Collective::kAbandoned) return report({Errc::closed, "another member of the team has failed"});
  return report({Errc::peer_failed, fmt::format("member {} of the team has died", -1 - code)});
}

}  // namespace

extern "C" {

int ulfm_team_create(ulfm_job job, int size, ulfm_team_progress progress, void* arg, char* ticket, ulfm_team** team) {
  auto node = allowed(job, size);
  if (!node) return report(node.error());
  const WaitPolicy& policy = (*node)->wait_policy();
  const int code =
      adopt(*node, coll::Collective::create(size, !policy.has_own_core(), policy, hooks_for(*node, progress, arg)), 0,
            size, team);
  if (code != ULFM_OK) return code;
  const std::string text = (*team)->collective->ticket();
  ticket[text.copy(ticket, ULFM_TEAM_TICKET - 1)] = 0;
  return ULFM_OK;
}

int ulfm_team_join(ulfm_job job, const char* ticket, int member, int size, ulfm_team_progress progress, void* arg,
                   ulfm_team** team) {
  auto node = allowed(job, size);
  if (!node) return report(node.error());
  return adopt(*node,
               coll::Collective::attach(ticket, member, size, (*node)->wait_policy(), hooks_for(*node, progress, arg)),
               member, size, team);
}

void ulfm_team_close(ulfm_team* team) { delete team; }

int ulfm_team_gains(ulfm_team* team, int kind, size_t bytes) {
  const int call = kind == ULFM_TEAM_GATHER ? ULFM_COLL_ALLGATHERV : ULFM_COLL_ALLREDUCE;
  return team->collective->way(call, bytes, team->always) == ULFM_COLL_SHARED;
}

int ulfm_team_barrier(ulfm_team* team) { return result_of(team, ULFM_COLL_BARRIER, team->collective->barrier()); }

int ulfm_team_reduce(ulfm_team* team, const void* in, void* out, size_t count, size_t element,
                     ulfm_team_combine combine) {
  return result_of(team, ULFM_COLL_ALLREDUCE, team->collective->reduce(in, out, count, element, combine, -1));
}

int ulfm_team_gather(ulfm_team* team, const void* in, void* out, const size_t* sizes) {
  std::size_t at = 0;
  for (std::size_t m = 0; m < team->at.size(); at += sizes[m++]) team->at[m] = at;
  return result_of(team, ULFM_COLL_ALLGATHERV, team->collective->allgather_blocks(in, out, {sizes, team->at.data()}));
}

}  // extern "C"
