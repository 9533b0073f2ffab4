#include "port/tree.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "base/virtual_time.hpp"
#include "port/node.hpp"

namespace ulfm {
Tree::Tree(Node& node, std::uint16_t from, PortAddress source, std::span<const PortAddress> below,
           PortCounters& counters, Lost lost)
    : node_(node), from_(from), source_(source), counters_(counters), lost_(std::move(lost)) {
  serve(below);
}

// Without room for the goodbye the other side finds out when this process ends.
Tree::~Tree() { (void)say_byes(); }

bool Tree::say_byes() {
  std::erase_if(children_, [](const Child& child) { return child.outlet->bye() || !child.outlet->peer_listening(); });
  return children_.empty();
}

// The list from here: the first for half of it, and so on. Whoever cannot be reached leaves the others to this port.
void Tree::serve(std::span<const PortAddress> list) {
  while (!list.empty()) {
    const std::size_t half = (list.size() + 1) / 2;
    const PortAddress to = list.front();
    auto outlet = node_.transport().connect(node_.card_of(to.process), to.port, from_, {}, counters_);
    if (!outlet) {
      lost_(to, outlet.error());
      list = list.subspan(1);
      continue;
    }
    Child& child = children_.emplace_back();
    child.to = to, child.outlet = std::move(*outlet);
    child.below.assign(list.begin() + 1, list.begin() + static_cast<std::ptrdiff_t>(half));
    auto text = std::make_shared<const std::string>(text_of(child.below));
    child.items.push_back(
        {FrameSender(reinterpret_cast<const std::byte*>(text->data()), text->size(), Meaning::list), text});
    if (sending_) give(child);
    list = list.subspan(half);
  }
}

void Tree::give(Child& child) const { child.items.push_back({FrameSender(bytes_, size_, Meaning::branch), {}}); }

void Tree::leave_out(std::size_t index) {
  const Child gone = std::move(children_[index]);
  children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(index));
  lost_(gone.to, {Errc::peer_failed, fmt::format("{} died or closed its port", gone.outlet->peer().text())});
  serve(gone.below);
}

// Into the room of a process that has died messages go without a word, so now and then all are looked at.
void Tree::begin(const std::byte* bytes, std::size_t size) {
  const std::chrono::nanoseconds now = clock_of_job().now();
  const bool look = now - looked_ >= kLookAfter;
  if (look) looked_ = now;
  for (std::size_t i = 0; i < children_.size();)
    if (children_[i].outlet->port_closed() || (look && !children_[i].outlet->peer_listening())) leave_out(i);
    else ++i;
  bytes_ = bytes, size_ = size, sending_ = true;
  for (Child& child : children_) give(child);
}

void Tree::pass_on(HeapBytes bytes, std::size_t size) {
  waiting_ += size;
  messages_.push_back({std::move(bytes), size});
}

bool Tree::send(Child& child) {
  while (!child.items.empty()) {
    if (!child.items.front().sender.advance(*child.outlet)) return false;
    if (child.items.front().list == nullptr) counters_.group_singles.add();
    child.items.pop_front();
  }
  return true;
}

bool Tree::advance_one() {
  bool all = true;
  for (Child& child : children_) all = send(child) && all;
  sending_ = sending_ && !all;
  return all;
}

bool Tree::advance() {
  for (;;) {
    if (!advance_one()) return false;
    if (messages_.empty()) return true;
    if (bytes_ == messages_.front().bytes.get()) {
      waiting_ -= messages_.front().size;
      messages_.pop_front();
      bytes_ = nullptr;
    }
    if (messages_.empty()) return true;
    begin(messages_.front().bytes.get(), messages_.front().size);
  }
}

void Tree::look_for_dead() {
  for (std::size_t i = 0; i < children_.size();)
    if (!children_[i].items.empty() && !children_[i].outlet->peer_listening()) leave_out(i);
    else ++i;
}

// ---- the list -------------------------------------------------------------------------------------------------------

// A line for each port, its process's card and its number; the first one is whose messages come. On several hosts a
// card has a part for each way, of which whoever sends on needs its own.
std::string Tree::text_of(std::span<const PortAddress> list) const {
  const auto line = [&](PortAddress one) {
    return fmt::format("{} {}\n", control::without_key(node_.card_of(one.process)), one.port);
  };
  std::string text = line(source_);
  for (const PortAddress& one : list) text += line(one);
  return text;
}

Result<TreeList> read_tree_list(Node& node, std::string_view text) {
  TreeList list;
  bool is_first = true;
  for (; !text.empty(); is_first = false) {
    const std::size_t end = text.find('\n'), blank = text.substr(0, end).rfind(' ');
    PortAddress one;
    bool good = end != text.npos && blank != text.npos;
    if (good) {
      const char* last = text.data() + end;
      const auto [at, error] = std::from_chars(text.data() + blank + 1, last, one.port);
      good = error == std::errc{} && at == last && one.port < kPortsPerProcess;
    }
    auto process = good ? node.process_of_card(text.substr(0, blank)) : fail(Errc::protocol, "");
    if (!process) return fail(Errc::protocol, "a line of a tree's list is no address of a port");
    one.process = *process;
    if (is_first) list.source = one;
    else list.below.push_back(one);
    text.remove_prefix(end + 1);
  }
  if (is_first) return fail(Errc::protocol, "a tree's list is empty");
  return list;
}

}  // namespace ulfm
