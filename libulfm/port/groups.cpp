// A port's groups: one message to several ports, by a multicast, by an outlet for each member, or down a tree.
#include <algorithm>

#include <fmt/core.h>

#include "base/copy.hpp"
#include "base/counted.hpp"
#include "port/node.hpp"
#include "port/port.hpp"

namespace ulfm {

// ---- application ----------------------------------------------------------------------------------------------------

Result<std::uint64_t> PortCore::open_group(std::span<const PortAddress> members, bool as_tree) {
  if (members.empty()) return fail(Errc::invalid, fmt::format("port {}: a group has no members", number_));
  auto group = std::make_shared<Group>();
  group->as_tree = as_tree;
  for (const PortAddress& one : members) {
    const auto is_same = [&](const PortAddress& other) { return other.key() == one.key(); };
    if (std::none_of(group->members.begin(), group->members.end(), is_same)) group->members.push_back(one);
  }
  if (auto ok = node_.connect(*this, group->members); !ok) return fail(ok.error());
  std::size_t place = 0;
  while (place < groups_.size() && groups_[place].group) ++place;
  if (place == groups_.size()) groups_.emplace_back();
  groups_[place].group = std::move(group);
  return std::uint64_t{++groups_[place].uses} << 32 | place;
}

Result<PortCore::GroupPlace*> PortCore::place_of(std::uint64_t group) {
  const std::size_t place = group & 0xffffffff;
  if (place >= groups_.size() || !groups_[place].group || groups_[place].uses != group >> 32)
    return fail(Errc::stale, fmt::format("port {}: this group is not of the port, or it has been closed", number_));
  return &groups_[place];
}

Result<void> PortCore::close_group(std::uint64_t group) {
  auto place = place_of(group);
  if (!place) return fail(place.error());
  node_.dispose([&] {
    const std::shared_ptr<Group> group = std::move((*place)->group);
    end_tree(group->tree);
  });
  return {};
}

Result<void> PortCore::post_group(std::uint64_t group) {
  if (!composing_) return fail(Errc::invalid, fmt::format("port {}: nothing has been composed to post", number_));
  auto place = place_of(group);
  if (!place) return fail(place.error());
  SendBuffer& buffer = send_[compose_at_];
  composing_ = false;
  counters_.sent_messages.add();
  counters_.sent_bytes.add(buffer.size);
  counters_.group_messages.add();
  buffer.group = (*place)->group;
  hand_over(buffer);
  return {};
}

// ---- interface: sending ---------------------------------------------------------------------------------------------

// Members are connected anew when their port was closed since. One that cannot be is left out of the group.
void PortCore::begin_group(SendBuffer& buffer) {
  Group& group = *buffer.group;
  sending_ = true;
  stalled_since_ = {};
  if (group.tree) return group.tree->begin(buffer.bytes.get(), buffer.size);
  std::vector<std::shared_ptr<Outlet>> outlets;
  std::erase_if(group.members, [&](PortAddress one) {
    Error why;
    const bool found = outlet_for(one, &why) != nullptr;
    if (found) outlets.push_back(outlets_.at(one.key()));
    else undeliverable(buffer, one, fmt::format("{}, and is left out of the group from now on", why.what));
    return !found;
  });
  if (!group.sender || outlets != group.outlets) {
    group.sender.reset();
    group.outlets = std::move(outlets);
    make_sender(group);
  }
  if (group.tree) group.tree->begin(buffer.bytes.get(), buffer.size);
  else group.sender->begin(buffer.bytes.get(), buffer.size);
}

// A tree is for where the transport has nothing better, and of two members nobody gains.
void PortCore::make_sender(Group& group) {
  std::vector<Outlet*> all;
  for (const auto& outlet : group.outlets) all.push_back(outlet.get());
  auto multicast = all.size() > 1 ? node_.transport().group(all) : nullptr;
  if (!group.as_tree || multicast || all.size() < 3) {
    group.sender = std::make_unique<GroupSender>(all, std::move(multicast));
    return;
  }
  const auto lost = [this](PortAddress one, const Error& why) {
    note_failure(Errc::peer_failed,
                 fmt::format("port {} is left out of a tree of port {} from now on: {}", one.port, number_, why.what));
  };
  const auto self = node_.process_of_card(node_.card());
  const PortAddress source{self ? *self : 0, number_};
  group.tree = std::make_shared<Tree>(node_, number_, source, group.members, counters_, lost);
  group.outlets.clear();
}

bool PortCore::transmit_tree(SendBuffer& buffer) {
  Tree& tree = *buffer.group->tree;
  if (tree.advance()) return true;
  if (!time_to_look()) return false;
  tree.look_for_dead();
  return tree.advance();
}

bool PortCore::transmit_group(SendBuffer& buffer) {
  if (!sending_) begin_group(buffer);
  if (buffer.group->tree) return transmit_tree(buffer);
  GroupSender& sender = *buffer.group->sender;
  if (sender.advance(counters_)) return true;
  if (!time_to_look()) return false;
  sender.look_for_dead();
  for (std::size_t i = 0; i < sender.size(); ++i) {
    if (!sender.is_behind(i) || sender.outlet(i)->peer_listening()) continue;
    const std::string why = fmt::format("{}, of a group, died or closed its port", sender.outlet(i)->peer().text());
    std::erase_if(buffer.group->members, [&](PortAddress one) {
      const auto it = outlets_.find(one.key());
      const bool lost = it != outlets_.end() && it->second.get() == sender.outlet(i);
      if (lost) undeliverable(buffer, one, why);
      return lost;
    });
    sender.drop(i);
  }
  return sender.advance(counters_);
}

// ---- interface: forwarding down a tree ------------------------------------------------------------------------------

void PortCore::pass_on(const std::shared_ptr<Tree>& tree, HeapBytes bytes, std::size_t size) {
  counters_.group_messages.add();
  tree->pass_on(std::move(bytes), size);
  if (std::find(passing_trees_.begin(), passing_trees_.end(), tree) == passing_trees_.end())
    passing_trees_.push_back(tree);
  pass_on();
}

void PortCore::pass_on() {
  std::erase_if(passing_trees_, [](const std::shared_ptr<Tree>& tree) { return tree->advance(); });
  const auto now = std::chrono::steady_clock::now();
  if (passing_trees_.empty() || passing_since_ == std::chrono::steady_clock::time_point{}) {
    passing_since_ = now;
  } else if (now - passing_since_ >= kLookAfter) {
    passing_since_ = now;
    for (const auto& tree : passing_trees_) tree->look_for_dead();
  }
  end_trees();
  std::size_t bytes = 0;
  for (const auto& tree : passing_trees_) bytes += tree->waiting();
  passing_bytes_.store(bytes, std::memory_order_relaxed);
  passing_.store(!passing_trees_.empty(), std::memory_order_release);  // pairs with all_sent()
}

// What it has is still sent on.
void PortCore::drop_tree(Origin& origin) {
  if (origin.tree) node_.dispose([&] { end_tree(std::move(origin.tree)); });
}

void PortCore::end_tree(std::shared_ptr<Tree> tree) {
  if (tree) ended_trees_.push_back(std::move(tree));
  end_trees();
}

// A tree ends when nothing is to be sent by it any more: then it is held here alone.
void PortCore::end_trees() {
  std::erase_if(ended_trees_,
                [](const std::shared_ptr<Tree>& tree) { return tree.use_count() == 1 && tree->say_byes(); });
}

// ---- application: what arrives from a tree --------------------------------------------------------------------------

// A message in one frame.
PortCore::Taken PortCore::take_of_tree(const Frame& frame, CachedMessage& whole) {
  const std::uint32_t origin = frame.origin;
  if (!take_out(frame, whole)) {
    inlet_->release(frame);
    note_failure(Errc::no_memory,
                 fmt::format("no memory for a message of {}; it is lost", counted(frame.length, "byte")));
    return Taken::nothing;
  }
  return take_branch(origin, whole);
}

PortCore::Taken PortCore::take_branch(std::uint32_t index, CachedMessage& whole) {
  if (origins_[index].reader.meaning() == Meaning::list) {
    take_list(index, {reinterpret_cast<const char*>(whole.bytes.get()), whole.size});
    return Taken::nothing;
  }
  Origin& origin = origins_[index];
  if (!origin.root) {
    fail_origin(index, "sent a message of a tree without a list of ports");
    return Taken::nothing;
  }
  whole.source = *origin.root;
  if (!origin.tree) return Taken::assembled;
  if (HeapBytes copy = allocate_bytes(whole.size)) {
    copy_bytes(copy.get(), whole.bytes.get(), whole.size);
    node_.pass_on(*this, origin.tree, std::move(copy), whole.size);
  } else {
    note_failure(Errc::no_memory,
                 fmt::format("no memory to send on a message of {}; it is lost for those behind this port",
                             counted(whole.size, "byte")));
  }
  return Taken::assembled;
}

// Those behind this port that have ended or closed theirs are their root's to find out, by the next message that is not
// answered. That one runs and cannot be reached from here, only this process knows.
void PortCore::take_list(std::uint32_t index, std::string_view text) {
  auto list = read_tree_list(node_, text);
  if (!list || origins_[index].root) return fail_origin(index, "sent a list of ports that is none");
  Origin& origin = origins_[index];
  origin.root = list->source;
  if (list->below.empty()) return;
  node_.dispose([&] {
    const auto lost = [this](PortAddress one, const Error& why) {
      if (why.code == Errc::peer_failed || why.code == Errc::not_found) return;
      note_failure(Errc::peer_failed, fmt::format("port {} sends nothing on to port {} of another process: {}", number_,
                                                  one.port, why.what));
    };
    origin.tree = std::make_shared<Tree>(node_, number_, list->source, list->below, counters_, lost);
  });
}

}  // namespace ulfm
