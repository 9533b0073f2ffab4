// A shared bus: all nodes hang on one wire, and one of them sends at a time.
//
// Who may send next is decided in a fixed round: the first node behind the last sender that has something to send. The
// arbiter needs some cycles for that; then the message takes the wire, so many bytes a cycle. Nothing is ever lost, and
// messages of one sender arrive in the order in which they were sent.
//
//   make                                                   # bus.so
//   ulfmrun --transport ./bus.so,width=8 -n 4 PROGRAM      # a live MPI program over it
//   ulfm_sim load --transport ./bus.so -r 0.02:0.3         # latency and load
//   ulfm_sim zero --transport ./bus.so                     # every pair of nodes, beside the closed form below
#include <algorithm>

#include <ulfm/model.hpp>

namespace {

using namespace ulfm::model;

// The options, and their places in Plan::options.
enum { kWidth, kArbitration };
const Option kOptions[] = {{"width", 1, 4096, 4},         // bytes that the wire carries in a cycle
                           {"arbitration", 0, 1000, 2}};  // cycles before each message

// ---- the state ------------------------------------------------------------------------------------------------------
//
// It lies in memory that all processes of a job share, so it has no pointers: a message is its number, and a queue is a
// chain of numbers. Behind the Bus lie the queues of the nodes, and behind them what is known of each message.

constexpr std::uint32_t kNobody = 0xffffffff;

struct Queue {
  std::uint32_t first, last;  // messages
};

struct Waiting {
  std::uint32_t bytes;
  std::uint32_t next;  // behind it in its queue
};

struct Bus {
  std::uint32_t nodes, messages;
  std::uint64_t width, arbitration;
  std::uint64_t now;         // everything before this cycle has happened
  std::uint32_t inside;      // messages that wait or are on the wire
  std::uint32_t sender;      // who sends, or sent last
  std::uint32_t on_wire;     // the message, or kNobody
  std::uint64_t begun, end;  // of that message: its first cycle, and its last
  std::uint64_t busy;        // cycles in which the bus was taken, all together

  Queue& queue(std::uint32_t node) { return reinterpret_cast<Queue*>(this + 1)[node]; }
  Waiting& waiting(std::uint32_t message) { return reinterpret_cast<Waiting*>(&queue(nodes))[message]; }
};

std::size_t bytes(const Plan& plan) {
  return sizeof(Bus) + plan.net.nodes * sizeof(Queue) + plan.messages * sizeof(Waiting);
}

void create(void* memory, const Plan& plan) {
  Bus& bus = *static_cast<Bus*>(memory);
  bus.nodes = plan.net.nodes;
  bus.messages = plan.messages;
  bus.width = static_cast<std::uint64_t>(plan.options[kWidth]);
  bus.arbitration = static_cast<std::uint64_t>(plan.options[kArbitration]);
  bus.now = 1;
  bus.on_wire = kNobody;
  for (std::uint32_t node = 0; node < bus.nodes; ++node) bus.queue(node) = {kNobody, kNobody};
}

// ---- what it does ---------------------------------------------------------------------------------------------------

class SharedBus final : public Interconnect {
 public:
  explicit SharedBus(Bus& bus) : bus_(bus) {}

  std::uint64_t now() const override { return bus_.now; }

  // A message waits behind those that its node has sent before.
  bool send(const Message& message) override {
    bus_.waiting(message.number) = {message.bytes, kNobody};
    Queue& queue = bus_.queue(message.from);
    if (queue.first == kNobody) queue.first = message.number;
    else bus_.waiting(queue.last).next = message.number;
    queue.last = message.number;
    ++bus_.inside;
    return true;
  }

  // Nothing changes while a message is on the wire, so time goes from the end of one message to the end of the next.
  bool run(std::uint64_t until, Arrival& arrival) override {
    if (bus_.now >= until) return false;
    if (bus_.on_wire == kNobody && bus_.inside != 0) begin();
    if (bus_.on_wire == kNobody || bus_.end >= until) {
      bus_.now = until;
      return false;
    }
    arrival = {bus_.on_wire, bus_.begun, bus_.end};
    bus_.now = bus_.end + 1;
    bus_.on_wire = kNobody;
    --bus_.inside;
    return true;
  }

  std::string counters() const override { return "busy cycles " + std::to_string(bus_.busy); }

  // A message that has the bus to itself: the arbiter, and then the bytes.
  std::uint64_t alone(std::uint32_t, std::uint32_t, std::uint32_t bytes) const override { return taken_by(bytes); }

 private:
  std::uint64_t taken_by(std::uint32_t bytes) const {
    return bus_.arbitration + std::max<std::uint64_t>(1, (bytes + bus_.width - 1) / bus_.width);
  }

  // The next node of the round that has something to send takes the bus, in cycle now().
  void begin() {
    do bus_.sender = (bus_.sender + 1) % bus_.nodes;
    while (bus_.queue(bus_.sender).first == kNobody);
    Queue& queue = bus_.queue(bus_.sender);
    const Waiting& message = bus_.waiting(queue.first);
    bus_.on_wire = queue.first;
    queue.first = message.next;
    bus_.begun = bus_.now;
    bus_.end = bus_.now + taken_by(message.bytes) - 1;
    bus_.busy += taken_by(message.bytes);
  }

  Bus& bus_;
};

Interconnect* attach(void* memory) { return new SharedBus(*static_cast<Bus*>(memory)); }

}  // namespace

ULFM_MODEL({.name = "bus",
            .summary = "example: a bus that all nodes share, in turns",
            .topology = "single:8",
            .cycle_ns = 10,
            .options = kOptions,
            .option_count = 2,
            .refuse = [](const Plan& plan) { return plan.net.nodes < 2 ? "a bus has two nodes or more" : nullptr; },
            .bytes = bytes,
            .create = create,
            .attach = attach})
