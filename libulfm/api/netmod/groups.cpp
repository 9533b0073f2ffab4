// One message to many at once, where the network copies it, and when that is better than messages.
#include <algorithm>
#include <bit>
#include <cmath>

#include "api/netmod/channel.hpp"
#include "base/virtual_time.hpp"

namespace ulfm::netmod {
namespace {

// Blocks of an allgather that are gathered first, all together: they go to all in one frame then.
constexpr std::size_t kGathered = 4096;

// The fewest frames that so many receivers need, as far as the transport knows a way; then each frame has as many.
std::size_t group_part(const ulfm_nm* nm, std::size_t members, std::size_t header_length) {
  for (std::size_t parts = 1; parts < members; ++parts)
    if (const std::size_t part = (members + parts - 1) / parts;
        nm->process->transport().multicast_frame(part, header_length) != 0)
      return part;
  return 0;
}

// Up a tree (ulfm_multicast.c): a message takes `delay` receives from end to end, and after `receives` all have been
// heard of.
struct WayUp {
  int delay;
  double receives;
};

// Ranks that can be heard of in t receives: those of t - 1, and those behind the child whose message came last.
WayUp way_up(int ranks, double delay) {
  constexpr int kLeast = 2, kMost = 16;  // a flatter tree has one rank combine too much
  const int d = std::clamp(static_cast<int>(std::lround(delay)), kLeast, kMost);
  std::vector<long> within(static_cast<std::size_t>(d), 1);
  while (within.back() < ranks) within.push_back(within.back() + within[within.size() - static_cast<std::size_t>(d)]);
  return {delay > kMost ? 0 : d, static_cast<double>(within.size() - 1) + std::max(0.0, delay - d)};
}

// Without virtual time: a reduction of so many bytes goes up a tree whole; of longer ones each rank combines a part.
constexpr std::size_t kReducedWhole = 2048;

// False when there is no room now.
bool send_to_part(ulfm_nm_group& group, const ulfm_nm_group::Part& part, const Headers& header, const iovec& data,
                  char* marks) {
  std::vector<std::uint32_t>& who = group.who;
  who.clear();
  for (std::uint32_t i = 0; i < part.size; ++i)
    if (marks[part.first + i] != 0 && group.members[part.first + i] != nullptr) who.push_back(i);
  if (who.empty()) return true;
  const std::size_t before = who.size();
  Gather bytes(std::span(&data, 1));
  if (!part.multicast->push(Kind::first, header, bytes, data.iov_len, who)) return false;
  // From here on a mark is a member that is disconnected or left to its own outlet.
  for (std::size_t i = 0; i < part.size; ++i)
    if (group.members[part.first + i] != nullptr) marks[part.first + i] = 0;
  for (const std::uint32_t member : who) marks[part.first + member] = 1;
  PortCounters& counters = group.owner->counters;
  if (before != who.size()) counters.group_frames.add();
  counters.group_copies.add(before - who.size());
  return true;
}

}  // namespace

std::size_t group_limit(ulfm_nm* nm, int members, std::size_t header_length) {
  const std::size_t part = group_part(nm, static_cast<std::size_t>(members), header_length);
  return part == 0 ? 0 : nm->process->transport().multicast_frame(part, header_length);
}

// Software for each step of a tree or an exchange is what multicast saves; what it costs is that the sender's bytes go
// to each place by themselves. Powers of two are near enough, and so is a place for each node as long as there are
// places.
int group_pays(ulfm_nm* nm, int kind, int ranks, int nodes, std::size_t bytes) {
  const MulticastCost cost = nm->process->transport().multicast_cost();
  const auto each = kind == ULFM_COLL_ALLGATHER ? ULFM_GROUP_EACH : ULFM_GROUP_ONE;
  if (cost.message == 0) {
    const auto all = static_cast<std::size_t>(ranks) * bytes;
    if (kind == ULFM_COLL_REDUCE) return bytes <= kReducedWhole ? way_up(ranks, 0).delay : 0;
    return each == ULFM_GROUP_EACH && all <= kGathered ? ULFM_GROUP_ONE : each;
  }
  const unsigned places = std::min(static_cast<unsigned>(nodes), cost.places);
  const double software = static_cast<double>(cost.message), steps = std::bit_width(static_cast<unsigned>(ranks - 1));
  const double one = static_cast<double>(cost.byte) * static_cast<double>(bytes);  // to one place
  const double others = places - 1, place_steps = std::bit_width(places - 1);
  const WayUp up = way_up(ranks, 2 * (software + one) / software);
  const double tree = up.receives * software / 2;
  // MPICH sends short ones whole, up a tree or in an exchange of all pairs, and of long ones a part to each.
  const auto by_messages = [&](double n) { return n * software + std::min(n * one, n * software + 2 * one); };
  // An exchange of all pairs takes those into a power of two first, and hands them the result.
  const double pairs =
      std::has_single_bit(static_cast<unsigned>(ranks)) ? steps : std::bit_width(static_cast<unsigned>(ranks)) + 1;
  switch (kind) {
    case ULFM_COLL_BARRIER: return tree <= (steps - 1) * software ? up.delay : 0;  // and one message to all
    case ULFM_COLL_BCAST: return software + others * one <= steps * software + place_steps * one ? each : 0;
    case ULFM_COLL_REDUCE: return tree <= by_messages(steps) ? up.delay : 0;
    case ULFM_COLL_ALLREDUCE: return up.delay != 0 && tree + software + others * one <= by_messages(pairs) ? each : 0;
    case ULFM_COLL_ALLGATHER:
      return (ranks - 1) * software / 2 + 2 * others * one <= steps * software + ranks * one ? each : 0;
    default: return 0;
  }
}

ulfm_nm_group* group_open(ulfm_nm* nm, ulfm_nm_vc* const* vcs, int count, std::size_t header_length) {
  auto group = std::make_unique<ulfm_nm_group>(ulfm_nm_group{nm, {vcs, vcs + count}, {}, {}});
  const std::size_t all = group->members.size(), part = group_part(nm, all, header_length);
  for (std::size_t first = 0, size; first < all && part != 0; first += size) {
    size = std::min(part, all - first);
    std::vector<Outlet*> outlets;
    for (std::size_t i = first; i < first + size; ++i) outlets.push_back(vcs[i]->outlet.get());
    auto multicast = nm->process->transport().group(outlets);
    if (!multicast) break;  // those from here on get theirs one by one
    group->parts.push_back({std::move(multicast), first, size});
  }
  nm->groups.push_back(group.get());
  return group.release();
}

void group_close(ulfm_nm_group* group) {
  std::erase(group->owner->groups, group);
  delete group;
}

int group_send(ulfm_nm_group* group, const void* header, std::size_t header_length, const void* data,
               std::size_t length, int goes_on, char* marks) {
  const iovec piece{const_cast<void*>(data), length};
  const VirtualTime::Charge charge = VirtualTime::charge();
  if (goes_on != 0) VirtualTime::set_charge(VirtualTime::Charge::none);
  bool gone = true;
  for (const ulfm_nm_group::Part& part : group->parts)
    gone = send_to_part(*group, part, {static_cast<const std::byte*>(header), header_length, 0}, piece, marks) && gone;
  VirtualTime::set_charge(charge);
  if (!gone) return 0;
  begin_waits_anew(*group->owner);
  PortCounters& counters = group->owner->counters;
  counters.group_messages.add();
  counters.sent_messages.add();
  counters.sent_bytes.add(header_length + length);
  return 1;
}

}  // namespace ulfm::netmod
