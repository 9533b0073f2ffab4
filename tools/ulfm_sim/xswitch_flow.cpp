#include "xswitch_flow.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>
#include <utility>

namespace sim {
namespace {

using ulfm::fabric::xswitch::Arbitration;
using ulfm::fabric::xswitch::Parameters;

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Inputs of a switch of up to 64 ports, a bit each.
class Narrow {
 public:
  void set(std::uint32_t i) { bits_ |= std::uint64_t{1} << i; }
  void clear(std::uint32_t i) { bits_ &= ~(std::uint64_t{1} << i); }
  bool any() const { return bits_ != 0; }
  template <typename Visit>
  void each(Visit visit) const {
    for (std::uint64_t left = bits_; left != 0; left &= left - 1)
      visit(static_cast<std::uint32_t>(std::countr_zero(left)));
  }

 private:
  std::uint64_t bits_ = 0;
};

/// And of one of up to kFlowPorts.
class Wide {
 public:
  void set(std::uint32_t i) { parts_[i / 64].set(i % 64); }
  void clear(std::uint32_t i) { parts_[i / 64].clear(i % 64); }
  bool any() const {
    return std::any_of(parts_.begin(), parts_.end(), [](const Narrow& part) { return part.any(); });
  }
  template <typename Visit>
  void each(Visit visit) const {
    for (std::uint32_t part = 0; part < parts_.size(); ++part)
      parts_[part].each([&](std::uint32_t i) { visit(part * 64 + i); });
  }

 private:
  std::array<Narrow, kFlowPorts / 64> parts_;
};

/// The remainder by a divisor that is known late; of 32 bits without a division (Lemire, Kaser and Kurz 2019).
class Turn {
 public:
  explicit Turn(std::uint32_t ports) : ports_(ports), inverse_(~std::uint64_t{0} / ports + 1) {}
  std::uint32_t operator()(std::uint64_t value) const {
    if (value >> 32 != 0) return static_cast<std::uint32_t>(value % ports_);
    __extension__ using Double = unsigned __int128;
    return static_cast<std::uint32_t>(static_cast<Double>(inverse_ * value) * ports_ >> 64);
  }

 private:
  std::uint32_t ports_;
  std::uint64_t inverse_;
};

/// What happens, in the order of a cycle. Of events of one kind and cycle none depends on another.
enum Kind : std::uint32_t {
  kResume,   // at the end of a link units come again, from this cycle on
  kPause,    // no more units come; also of those that were to come again in this very cycle
  kStop,     // ID-STOP arrives at an output
  kGo,       // ID-GO
  kCleared,  // the command that took a unit's place is gone
  kDry,      // an output has sent what there was of a frame whose rest has not come
  kNext,     // a node begins its next frame
  kPoll,     // an output finds a head
  kEnded,    // the last unit of a frame comes to its node
  kLevel,    // a FIFO may have reached a threshold by the end of the cycle
  kKinds
};

/// Events by cycle. What has been put in is not taken out: whoever handles an event looks whether it still holds.
class Calendar {
 public:
  void put(Kind kind, std::uint32_t index, std::uint64_t cycle) {
    if (cycle - now_ >= kSlots) return put_far(kind, index, cycle);
    Slot& slot = slots_[cycle % kSlots];
    slot.kinds |= 1u << kind;
    slot.events[kind].push_back(index);
    busy_ |= std::uint64_t{1} << cycle % kSlots;
  }

  /// Handles everything before cycle `until`, which is now() behind that.
  template <typename Handle>
  void run(std::uint64_t until, Handle handle) {
    for (std::uint64_t cycle = next(); cycle < until; cycle = next()) {
      now_ = cycle;
      for (; !far_.empty() && far_.top().cycle == cycle; far_.pop()) put(far_.top().kind, far_.top().index, cycle);
      Slot& slot = slots_[cycle % kSlots];
      while (slot.kinds != 0) {
        const auto kind = static_cast<Kind>(std::countr_zero(slot.kinds));
        slot.kinds &= slot.kinds - 1;
        std::vector<std::uint32_t>& events = slot.events[kind];
        for (const std::uint32_t index : events) handle(kind, index, cycle);
        events.clear();
      }
      busy_ &= ~(std::uint64_t{1} << cycle % kSlots);
      now_ = cycle + 1;
    }
    now_ = std::max(now_, until);
  }
  std::uint64_t now() const { return now_; }

 private:
  static constexpr std::uint32_t kSlots = 64;
  struct Slot {
    std::uint32_t kinds = 0;
    std::array<std::vector<std::uint32_t>, kKinds> events;
  };
  struct Far {
    std::uint64_t cycle;
    Kind kind;
    std::uint32_t index;
    bool operator>(const Far& other) const { return cycle > other.cycle; }
  };

  [[gnu::noinline]] void put_far(Kind kind, std::uint32_t index, std::uint64_t cycle) {
    far_.push({cycle, kind, index});
  }
  std::uint64_t next() const {
    const std::uint64_t far = far_.empty() ? kNever : far_.top().cycle;
    if (busy_ == 0) return far;
    return std::min(
        far, now_ + static_cast<std::uint32_t>(std::countr_zero(std::rotr(busy_, static_cast<int>(now_ % kSlots)))));
  }

  std::uint64_t now_ = 1, busy_ = 0;
  std::array<Slot, kSlots> slots_;
  std::priority_queue<Far, std::vector<Far>, std::greater<>> far_;
};

/// A frame in a FIFO, or on its way there.
struct Entry {
  std::uint64_t first;  // while it comes: the cycle of its first unit, had all come without a break
  std::uint32_t frame, length;
  std::uint32_t next;  // behind it
  std::uint32_t got;   // while it does not come: units that have
  std::uint16_t hop;   // routing characters that are gone
  bool comes;
};

/// The receiving half of a port, or of a node.
struct alignas(64) Input {
  std::uint64_t ready = 0;                   // from this cycle on the head that is announced may be polled
  std::uint64_t due_at = kNever;             // kLevel; of a node kEnded
  std::uint64_t command_at = 0;              // the cycle of the last command, which leaves by the other half
  std::uint64_t received = 0;                // units of frames before the one polled last
  std::uint64_t polled_off = 0;              // routing characters that outputs have taken
  std::uint32_t head = kNone, tail = kNone;  // entries
  std::uint32_t units = 0;                   // of all of them and of the frame polled last, as long as they came
  std::uint32_t server = 0;                  // the output that polled a head last
  std::uint32_t first_port = 0;              // of the same switch
  std::uint8_t wanted = 0;                   // the output that the announced head names, counted from there
  bool announced = false, stop_sent = false;
};

/// The sending half.
template <typename Ports>
struct alignas(64) Output {
  std::uint64_t start = 1;         // while it goes: the cycle of the first unit, had all gone without a break
  std::uint64_t end = 0;           // the cycle of the last unit; kNever: nobody knows
  std::uint64_t poll_at = kNever;  // kPoll; of a node kNext
  std::uint64_t sent = 0;          // units of frames before this one
  std::uint32_t units = 0;         // to be sent of this one, in all
  std::uint32_t done = 0;          // while it does not go: units that went
  std::uint32_t feeder = kNone;    // input
  std::uint32_t peer = kNone;      // end
  Ports waiting;                   // inputs whose announced heads name it
  std::uint32_t first_port = 0;    // of the same switch
  std::uint8_t polled = 0;         // the input that it polls in the cycle behind `end`, then one after the other
  bool stopped = false;
  bool goes = false;      // neither stopped nor displaced by a command
  bool notifies = false;  // the other end expects units
};

struct Frame {
  std::uint64_t begun;
  std::uint32_t to, next, length;
};

/// Ends of links are numbered as channels: ports of switches, then nodes.
template <typename Ports>
class Flow final : public SubjectNetwork {
 public:
  Flow(const Topology& t, const Parameters& p, std::uint32_t frames)
      : ports_(t.ports),
        switch_ports_(t.switches * t.ports),
        link_(p.link_cycles),
        stop_at_(p.stop_at),
        go_at_(p.go_at),
        fifo_units_(p.fifo_units),
        check_units_(p.check_units),
        circulates_(p.arbitration == Arbitration::circulating ? 1 : 0),
        turn_(t.ports),
        in_(channels(t)),
        out_(channels(t)),
        frames_(frames),
        routes_(std::size_t{frames} * longest_),
        queues_(t.nodes(), {kNone, kNone}) {
    for (std::uint32_t i = 0; i < switch_ports_; ++i) {
      out_[i].first_port = in_[i].first_port = i - i % ports_;
      const LinkEnd& end = t.ends[i];
      if (end.kind == LinkEnd::Kind::switch_port) out_[i].peer = end.index * ports_ + end.port;
      if (end.kind != LinkEnd::Kind::node) continue;
      out_[i].peer = switch_ports_ + end.index;
      out_[switch_ports_ + end.index].peer = i;
    }
  }

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way way) override {
    if (frame >= frames_.size() || way.empty()) return false;
    if (way.size() > longest_) lengthen(static_cast<std::uint32_t>(way.size()));
    std::copy(way.begin(), way.end(), routes_.begin() + std::ptrdiff_t{frame} * longest_);
    frames_[frame] = {0, to, kNone, units + static_cast<std::uint32_t>(way.size()) + check_units_ + 1};
    ++inside_;
    const std::uint32_t y = switch_ports_ + from;
    Queue& queue = queues_[from];
    if (queue.first == kNone && !is_busy(out_[y], calendar_.now())) {
      begin(y, frame, calendar_.now());
      return true;
    }
    if (queue.first == kNone) {
      queue = {frame, frame};
      if (out_[y].end != kNever) expect_next(y);
    } else {
      frames_[queue.last].next = frame;
      queue.last = frame;
    }
    return true;
  }

  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    endings_ = &endings;
    calendar_.run(until, [this](Kind kind, std::uint32_t index, std::uint64_t cycle) { handle(kind, index, cycle); });
  }

  std::uint64_t inside() override { return inside_; }

  std::vector<std::uint64_t> busy() override {
    std::vector<std::uint64_t> units;
    units.reserve(out_.size());
    for (std::uint32_t y = 0; y < out_.size(); ++y) units.push_back(sent_by(y));
    return units;
  }
  std::uint64_t unit_hops() override {
    std::uint64_t sum = 0;
    for (std::uint32_t y = 0; y < out_.size(); ++y) sum += sent_by(y);
    return sum;
  }

  // Outputs and inputs keep their own books. What an output has sent the input at the other end has received, but for
  // what is on the link; what a switch has received it has sent, taken off or has.
  std::string imbalance() override {
    const std::uint64_t last = calendar_.now() - 1;
    for (std::uint32_t y = 0; y < out_.size(); ++y)
      if (out_[y].peer != kNone && sent_by(y) - received_by(out_[y].peer, last) > link_)
        return "a link has lost or made units";
    for (std::uint32_t first = 0; first < switch_ports_; first += ports_) {
      std::uint64_t came = 0, went = 0;
      for (std::uint32_t i = first; i < first + ports_; ++i) {
        const std::uint32_t there = occupied(i, last);
        if (there > fifo_units_) return "a FIFO has more units than it holds";
        came += received_by(i, last);
        went += sent_by(i) + in_[i].polled_off + there;
      }
      if (came != went) return "units that came to a switch are neither there nor left";
    }
    return "";
  }

 private:
  struct Queue {
    std::uint32_t first, last;  // frames
  };

  /// Ways have room for so many switches.
  void lengthen(std::uint32_t longest) {
    std::vector<std::uint8_t> routes(frames_.size() * longest);
    for (std::size_t f = 0; f < frames_.size(); ++f)
      std::copy_n(routes_.begin() + static_cast<std::ptrdiff_t>(f * longest_), longest_,
                  routes.begin() + static_cast<std::ptrdiff_t>(f * longest));
    routes_ = std::move(routes);
    longest_ = longest;
  }
  bool is_node(std::uint32_t end) const { return end >= switch_ports_; }
  /// It has something to send in `cycle` or later, of the frame that it sends.
  static bool is_busy(const Output<Ports>& out, std::uint64_t cycle) { return out.end >= cycle; }

  void handle(Kind kind, std::uint32_t index, std::uint64_t cycle) {
    if (kind == kPoll) poll(index, cycle);
    else if (kind == kEnded) ended(index, cycle);
    else handle_seldom(kind, index, cycle);
  }
  [[gnu::noinline]] void handle_seldom(Kind kind, std::uint32_t index, std::uint64_t cycle) {
    switch (kind) {
      case kPause: return pause_arrives(index, cycle);
      case kResume: return resume_arrives(index, cycle);
      case kStop: return stop_arrives(index, cycle);
      case kGo: return go_arrives(index, cycle);
      case kCleared: return cleared(index, cycle);
      case kDry: return dry(index, cycle);
      case kNext: return next_of_node(index, cycle);
      default: return level(index, cycle);
    }
  }

  // Counting. All up to the end of a cycle.

  static std::uint32_t arrived(const Entry& e, std::uint64_t cycle) {
    if (!e.comes) return e.got;
    if (cycle < e.first) return 0;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(e.length, cycle - e.first + 1));
  }
  std::uint32_t departed(const Output<Ports>& out, std::uint64_t cycle) const {
    if (cycle >= out.end) return out.units;
    if (!out.goes) return out.done;
    if (cycle < out.start) return 0;
    const std::uint64_t units = std::min<std::uint64_t>(out.units, cycle - out.start + 1);
    if (out.feeder == kNone) return static_cast<std::uint32_t>(units);
    return std::min(static_cast<std::uint32_t>(units), arrived(served_[out.feeder], cycle) - 1);
  }
  std::uint32_t occupied(std::uint32_t x, std::uint64_t cycle) const {
    const Input& in = in_[x];
    std::uint32_t units = 0;
    for (std::uint32_t e = in.head; e != kNone; e = entries_[e].next) units += arrived(entries_[e], cycle);
    const Output<Ports>* const out = serving(x);
    if (out == nullptr) return units;
    // A head that is polled in the next cycle may come in it.
    units += arrived(served_[x], cycle);
    return units - std::min(units, 1 + departed(*out, cycle));
  }
  std::uint64_t sent_by(std::uint32_t y) const { return out_[y].sent + departed(out_[y], calendar_.now() - 1); }
  std::uint64_t received_by(std::uint32_t x, std::uint64_t cycle) const {
    std::uint64_t units = in_[x].received + arrived(served_[x], cycle);
    for (std::uint32_t e = in_[x].head; e != kNone; e = entries_[e].next) units += arrived(entries_[e], cycle);
    return units;
  }

  // Lists of entries.

  std::uint32_t take_entry() {
    if (free_ == kNone) {
      entries_.push_back({});
      return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const std::uint32_t e = free_;
    free_ = entries_[e].next;
    return e;
  }
  Entry pop(Input& in) {
    const std::uint32_t e = in.head;
    const Entry popped = entries_[e];
    in.head = popped.next;
    entries_[e].next = free_;
    free_ = e;
    return popped;
  }
  /// The output that sends the frame served last, or has sent it and nothing since; nullptr: it has sent another.
  const Output<Ports>* serving(std::uint32_t x) const {
    const Output<Ports>& out = out_[in_[x].server];
    return out.feeder == x ? &out : nullptr;
  }
  Output<Ports>* serving(std::uint32_t x) { return const_cast<Output<Ports>*>(std::as_const(*this).serving(x)); }
  /// The first entry of which something has not come.
  Entry* incomplete(std::uint32_t x, std::uint64_t cycle) {
    const Input& in = in_[x];
    if (arrived(served_[x], cycle) < served_[x].length) return &served_[x];
    for (std::uint32_t e = in.head; e != kNone; e = entries_[e].next)
      if (arrived(entries_[e], cycle) < entries_[e].length) return &entries_[e];
    return nullptr;
  }

  // Polling.

  std::uint32_t position(const Output<Ports>& out, std::uint64_t cycle) const {
    return turn_(cycle - out.end - 1 + out.polled);
  }
  /// When the output finds the announced head of that input.
  std::uint64_t poll_of(const Output<Ports>& out, std::uint32_t input) const {
    const std::uint64_t from = std::max(in_[out.first_port + input].ready, out.end + 1);
    const std::uint32_t at = position(out, from);
    return from +
           (input - at + (ports_ & (0u - static_cast<std::uint32_t>(input < at))));  // no branch: nobody can guess
  }
  void expect_poll(std::uint32_t y) {
    Output<Ports>& out = out_[y];
    out.poll_at = kNever;
    if (out.end == kNever || !out.waiting.any()) return;
    out.waiting.each([&](std::uint32_t input) { out.poll_at = std::min(out.poll_at, poll_of(out, input)); });
    calendar_.put(kPoll, y, out.poll_at);
  }
  /// The next head of an input, if it is known when it may be polled.
  void announce(std::uint32_t x) {
    Input& in = in_[x];
    if (in.head == kNone || in.announced) return;
    const Entry& e = entries_[in.head];
    if (!e.comes && e.got == 0) return;
    in.ready = e.comes ? e.first : 0;
    if (const Output<Ports>* const before = serving(x); before != nullptr) {
      if (before->end == kNever) return;
      in.ready = std::max(in.ready, before->end + 1);
    }
    const std::uint32_t first = in.first_port;
    in.wanted = routes_[std::size_t{e.frame} * longest_ + e.hop];
    in.announced = true;
    const std::uint32_t y = first + in.wanted;
    Output<Ports>& out = out_[y];
    out.waiting.set(x - first);
    if (out.end == kNever) return;
    const std::uint64_t at = poll_of(out, x - first);
    if (at >= out.poll_at) return;
    out.poll_at = at;
    calendar_.put(kPoll, y, at);
  }
  void withdraw(std::uint32_t x) {
    Input& in = in_[x];
    if (!in.announced) return;
    in.announced = false;
    const std::uint32_t y = in.first_port + in.wanted, input = x - in.first_port;
    Output<Ports>& out = out_[y];
    out.waiting.clear(input);
    if (out.poll_at != kNever && position(out, out.poll_at) == input) expect_poll(y);
  }

  void poll(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    if (out.poll_at != cycle) return;
    const std::uint32_t input = position(out, cycle), x = out.first_port + input;
    out.poll_at = kNever;
    out.waiting.clear(input);
    Input& in = in_[x];
    in.announced = false;
    in.received += served_[x].length;
    in.units -= served_[x].length;
    const Entry e = served_[x] = pop(in);
    in.server = y;
    ++in.polled_off;
    out.sent += out.units;
    out.units = e.length - 1;
    out.start = cycle + 1;
    out.done = 0;
    out.feeder = x;
    out.polled = static_cast<std::uint8_t>((input + 1) * static_cast<std::uint32_t>(input + 1 != ports_) * circulates_);
    out.goes = !out.stopped;
    out.notifies = out.goes && (e.comes || e.got > 1);
    append(out.peer, e.frame, e.length - 1, static_cast<std::uint16_t>(e.hop + 1), cycle + 1 + link_, out.notifies,
           cycle);
    if (out.goes && e.comes) {
      found_end(y);
    } else {
      out.end = kNever;
      if (out.notifies) calendar_.put(kDry, y, out.start + e.got - 1);
    }
    if (in.stop_sent) expect_level(x, cycle - 1);
  }

  /// The frame's last unit will leave in a cycle that is known now.
  void found_end(std::uint32_t y) {
    Output<Ports>& out = out_[y];
    out.end = out.start + out.units - 1;
    if (out.feeder == kNone) return expect_next(y);
    if (out.waiting.any()) expect_poll(y);
    announce(out.feeder);
  }
  void lost_end(std::uint32_t y) {
    Output<Ports>& out = out_[y];
    out.end = out.poll_at = kNever;
    if (out.feeder != kNone) withdraw(out.feeder);
  }

  /// A frame begins to come to an end of a link, or is held up before its first unit.
  void append(std::uint32_t d, std::uint32_t frame, std::uint32_t length, std::uint16_t hop, std::uint64_t first,
              bool comes, std::uint64_t cycle) {
    Input& in = in_[d];
    const std::uint32_t e = take_entry();
    entries_[e] = {first, frame, length, kNone, 0, hop, comes};
    if (in.head == kNone) in.head = e;
    else entries_[in.tail].next = e;
    in.tail = e;
    in.units += length;
    if (comes) coming(d, cycle);
  }
  /// The last frame of an input comes from now on.
  void coming(std::uint32_t d, std::uint64_t cycle) {
    Input& in = in_[d];
    if (is_node(d)) return expect_end(d);
    if (in.head == in.tail) announce(d);
    look_at_level(d, cycle - 1);
  }

  // Nodes.

  void begin(std::uint32_t y, std::uint32_t frame, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    out.sent += out.units;
    out.units = frames_[frame].length;
    out.start = cycle;
    out.done = 0;
    out.goes = out.notifies = !out.stopped;
    frames_[frame].begun = cycle;
    append(out.peer, frame, out.units, 0, cycle + link_, out.notifies, cycle);
    if (out.goes) found_end(y);
    else out.end = kNever;
  }
  void expect_next(std::uint32_t y) {
    Output<Ports>& out = out_[y];
    if (queues_[y - switch_ports_].first == kNone || out.poll_at == out.end + 1) return;
    out.poll_at = out.end + 1;
    calendar_.put(kNext, y, out.poll_at);
  }
  void next_of_node(std::uint32_t y, std::uint64_t cycle) {
    if (out_[y].poll_at != cycle) return;
    out_[y].poll_at = kNever;
    Queue& queue = queues_[y - switch_ports_];
    const std::uint32_t frame = queue.first;
    queue.first = frames_[frame].next;
    begin(y, frame, cycle);
  }
  void expect_end(std::uint32_t d) {
    Input& in = in_[d];
    if (in.head == kNone || !entries_[in.head].comes) return;
    const std::uint64_t at = entries_[in.head].first + entries_[in.head].length - 1;
    if (in.due_at == at) return;
    in.due_at = at;
    calendar_.put(kEnded, d, at);
  }
  void ended(std::uint32_t d, std::uint64_t cycle) {
    Input& in = in_[d];
    if (in.due_at != cycle) return;
    in.due_at = kNever;
    const Entry e = pop(in);
    const std::uint32_t frame = e.frame;
    in.received += e.length;
    in.units -= e.length;
    --inside_;
    endings_->push_back(
        {frame, d - switch_ports_, cycle, d - switch_ports_ == frames_[frame].to, frames_[frame].begun});
    expect_end(d);
  }

  // What holds an output up.

  /// It sends nothing from `cycle` on.
  void pause(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    out.done = departed(out, cycle - 1);
    out.goes = false;
    lost_end(y);
    if (out.notifies) notify_pause(y, cycle);
    if (out.feeder != kNone) look_at_level(out.feeder, cycle - 1);
  }
  /// It sends again, from `cycle` on, if there is something.
  void go_on(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    out.goes = true;
    out.start = cycle - out.done;
    if (out.feeder == kNone) {
      if (out.done == 0) frames_[entries_[in_[out.peer].tail].frame].begun = cycle;
      notify_resume(y, cycle);
      return found_end(y);
    }
    const Entry& e = served_[out.feeder];
    if (e.comes) {
      out.start = std::max(out.start, e.first + 1);
      notify_resume(y, cycle);
      found_end(y);
    } else if (e.got - 1 > out.done) {
      notify_resume(y, cycle);
      calendar_.put(kDry, y, out.start + e.got - 1);
    }
    look_at_level(out.feeder, cycle - 1);
  }
  /// The other end gets nothing from `cycle` on: before the frame's first unit its coming is taken back at once.
  void notify_pause(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    out.notifies = false;
    if (out.done != 0) return calendar_.put(kPause, out.peer, cycle + link_);
    Input& in = in_[out.peer];
    entries_[in.tail].comes = false;
    if (is_node(out.peer)) {
      if (in.head == in.tail) in.due_at = kNever;
    } else if (in.head == in.tail) {
      withdraw(out.peer);
    }
  }
  void notify_resume(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    out.notifies = true;
    if (out.done != 0) return calendar_.put(kResume, out.peer, cycle + link_);
    Entry& e = entries_[in_[out.peer].tail];
    e.comes = true;
    e.first = cycle + link_;
    coming(out.peer, cycle);
  }

  void stop_arrives(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    out.stopped = true;
    if (is_busy(out, cycle) && out.goes) pause(y, cycle);
  }
  void go_arrives(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    out.stopped = false;
    if (is_busy(out, cycle) && !out.goes && in_[y].command_at != cycle) go_on(y, cycle);
  }
  void cleared(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    if (is_busy(out, cycle) && !out.goes && !out.stopped && in_[y].command_at != cycle) go_on(y, cycle);
  }
  void pause_arrives(std::uint32_t d, std::uint64_t cycle) {
    Input& in = in_[d];
    Entry* const e = incomplete(d, cycle - 1);
    if (e == nullptr || !e->comes) return;
    e->got = arrived(*e, cycle - 1);
    e->comes = false;
    if (is_node(d)) {
      in.due_at = kNever;
      return;
    }
    if (e == &served_[d]) {
      Output<Ports>& out = out_[in.server];
      lost_end(in.server);
      if (out.goes) calendar_.put(kDry, in.server, std::max(cycle, out.start + e->got - 1));
    }
    look_at_level(d, cycle - 1);
  }
  void resume_arrives(std::uint32_t d, std::uint64_t cycle) {
    Input& in = in_[d];
    Entry* const e = incomplete(d, cycle - 1);
    if (e == nullptr || e->comes) return;
    Output<Ports>* const out = e == &served_[d] ? serving(d) : nullptr;
    if (out != nullptr && out->goes) out->done = departed(*out, cycle - 1);
    e->comes = true;
    e->first = cycle - e->got;
    if (is_node(d)) return expect_end(d);
    if (out != nullptr && out->goes) {
      out->start = std::max(out->start, e->first + 1);
      if (!out->notifies) notify_resume(in.server, cycle);
      found_end(in.server);
    }
    look_at_level(d, cycle - 1);
  }
  void dry(std::uint32_t y, std::uint64_t cycle) {
    Output<Ports>& out = out_[y];
    if (out.end != kNever || !out.goes || !out.notifies) return;
    const Entry& e = served_[out.feeder];
    if (e.comes || out.start + e.got - 1 != cycle) return;
    out.done = e.got - 1;
    notify_pause(y, cycle);
  }

  // Thresholds.

  void look_at_level(std::uint32_t x, std::uint64_t cycle) {
    const Input& in = in_[x];
    if (!in.stop_sent && in.units < stop_at_) return;
    // The frame served last is among those units, and may be gone.
    const Output<Ports>* const out = serving(x);
    const bool gone = out == nullptr || out->end <= cycle;
    if (in.stop_sent || in.units - (gone ? served_[x].length : 0) >= stop_at_) expect_level(x, cycle);
  }
  /// Nothing is known behind the end of `cycle` but what has been announced. Never later than the threshold is reached.
  void expect_level(std::uint32_t x, std::uint64_t cycle) {
    Input& in = in_[x];
    if (in.due_at == cycle) return;  // it is about to be looked at
    const std::uint64_t at = in.stop_sent ? low_at(x, cycle) : high_at(x, cycle);
    if (at == in.due_at) return;
    in.due_at = at;
    if (at != kNever) calendar_.put(kLevel, x, at);
  }
  std::uint64_t high_at(std::uint32_t x, std::uint64_t cycle) const {
    const Input& in = in_[x];
    const std::uint32_t there = occupied(x, cycle);
    std::uint64_t more = 0, first = kNever;  // units to come, and since when
    const auto add = [&](const Entry& e) {
      if (!e.comes || arrived(e, cycle) == e.length) return;
      more += e.length - arrived(e, cycle);
      first = std::min(first, std::max(cycle + 1, e.first));
    };
    add(served_[x]);
    for (std::uint32_t i = in.head; i != kNone; i = entries_[i].next) add(entries_[i]);
    if (there >= stop_at_) return cycle + 1;
    if (there + more < stop_at_) return kNever;
    const std::uint64_t needed = stop_at_ - there;
    const Output<Ports>* const out = serving(x);
    if (out == nullptr || out->end == kNever || out->end <= cycle || first + needed - 1 < out->start)
      return first + needed - 1;
    // From `start` to `end` as many go as come; what comes behind that fills it again.
    const std::uint64_t come = first > out->end ? 0 : std::min(more, out->end - first + 1);
    const std::uint64_t stay = there + come - (out->units - departed(*out, cycle));
    if (stay + more - come < stop_at_) return kNever;
    return std::max(out->end, first - 1) + (stop_at_ - stay);
  }
  std::uint64_t low_at(std::uint32_t x, std::uint64_t cycle) const {
    const Input& in = in_[x];
    const std::uint32_t there = occupied(x, cycle);
    if (there <= go_at_) return cycle + 1;
    const Output<Ports>* const serves = serving(x);
    if (serves == nullptr || serves->end <= cycle || !serves->goes) return kNever;
    const Output<Ports>& out = *serves;
    std::uint64_t more = 0;
    if (const Entry& last = in.head == kNone ? served_[x] : entries_[in.tail];
        link_ == 1 && last.comes && last.first <= cycle + 1)
      more = last.length - arrived(last, cycle);
    const std::uint64_t at = std::max(cycle, out.start - 1) + there + more - go_at_;
    return at > out.end ? kNever : at;
  }
  void level(std::uint32_t x, std::uint64_t cycle) {
    Input& in = in_[x];
    if (in.due_at != cycle) return;
    in.due_at = kNever;
    const std::uint32_t there = occupied(x, cycle);
    if (in.stop_sent ? there <= go_at_ : there >= stop_at_) {
      in.stop_sent = !in.stop_sent;
      command(x, in.stop_sent ? kStop : kGo, cycle + 1);
    }
    look_at_level(x, cycle);
  }
  /// ID-STOP or ID-GO leaves in `cycle`, in the place of a unit.
  void command(std::uint32_t x, Kind kind, std::uint64_t cycle) {
    in_[x].command_at = cycle;
    Output<Ports>& out = out_[x];
    calendar_.put(kind, out.peer, cycle + link_);
    if (!is_busy(out, cycle)) return;
    if (out.goes) pause(x, cycle);
    calendar_.put(kCleared, x, cycle + 1);
  }

  std::uint32_t ports_, switch_ports_;
  std::uint32_t longest_ = 8;  // room for a way

  std::uint32_t link_, stop_at_, go_at_, fifo_units_, check_units_, circulates_;
  Turn turn_;
  std::vector<Input> in_;
  std::vector<Output<Ports>> out_;
  std::vector<Entry> served_ = std::vector<Entry>(in_.size(), Entry{});  // by input: the frame polled last
  std::vector<Entry> entries_;                                           // the others
  std::uint32_t free_ = kNone;
  std::vector<Frame> frames_;
  std::vector<std::uint8_t> routes_;
  std::vector<Queue> queues_;
  Calendar calendar_;
  std::vector<Ending>* endings_ = nullptr;
  std::uint64_t inside_ = 0;
};

}  // namespace

std::unique_ptr<SubjectNetwork> make_flow(const Topology& topology, const Parameters& parameters,
                                          std::uint32_t frames) {
  if (topology.ports > kFlowPorts) return nullptr;
  if (topology.ports > 64) return std::make_unique<Flow<Wide>>(topology, parameters, frames);
  return std::make_unique<Flow<Narrow>>(topology, parameters, frames);
}

}  // namespace sim
