// What the simulator asks of a model: the same few questions, whichever it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/model.hpp"

namespace sim {

using ulfm::Errc;
using ulfm::fail;
using ulfm::Result;
using ulfm::fabric::Ending;
using ulfm::fabric::FrameId;
using ulfm::fabric::LinkEnd;
using ulfm::fabric::Route;
using ulfm::fabric::Shape;
using ulfm::fabric::SwitchPort;
using ulfm::fabric::Topology;

/// The ports of a route, wherever it lies.
using Way = std::span<const std::uint8_t>;

/// A network that frames go through. Time is in cycles of the model; the first cycle is 1. Used by one thread.
class SubjectNetwork {
 public:
  virtual ~SubjectNetwork() = default;
  /// Puts a message behind those that wait to leave `from`, before the first cycle that has not happened. False when
  /// the model refuses it.
  virtual bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way way) = 0;
  /// Goes on until everything before cycle `until` has happened, and appends what has ended.
  virtual void run(std::uint64_t until, std::vector<Ending>& endings) = 0;
  /// Messages in the network and waiting at its edge, counted by the model.
  virtual std::uint64_t inside() = 0;
  /// What the model's own books say when they do not balance; empty when they do.
  virtual std::string imbalance() = 0;
  /// Cycles for which each channel was busy so far: by switch * ports + port, then the nodes.
  virtual std::vector<std::uint64_t> busy() = 0;
  /// Units that have crossed a channel, over all channels.
  virtual std::uint64_t unit_hops() = 0;
};

/// Forms of a model. They give the same results.
enum class ModelForm : std::uint8_t {
  production,  ///< the fastest
  live,        ///< the one that carries programs; where that is the fastest, the same
  reference    ///< the one that goes through the cycles one by one
};

/// How long a message keeps a channel busy when nothing is in its way.
struct Use {
  std::size_t channel;  ///< as in SubjectNetwork::busy()
  double cycles;
};

/// A model with its options over a topology: makes networks, and knows what they do without load. Any thread.
class Subject {
 public:
  virtual ~Subject() = default;
  /// For so many messages at a time.
  virtual Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const = 0;
  /// Cycles from the first to the last, both counted, of a message that enters an idle network in cycle `start`: the
  /// closed form; 0: there is none.
  virtual std::uint64_t zero_load(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route& way,
                                  std::uint64_t start) const = 0;
  /// The channels that a message uses, and for how long at least.
  virtual std::vector<Use> uses(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route& way) const = 0;
  /// Messages of so many units of which a node may have more in the network than at its edge, at most.
  virtual std::uint32_t window(std::uint32_t units, std::uint32_t longest_way) const = 0;
  /// Most units that a message can have.
  virtual std::uint32_t most_units() const = 0;
  /// Units of a message when nobody says.
  virtual std::uint32_t usual_units() const = 0;
  /// What a unit is: "byte".
  virtual const char* unit() const = 0;
  /// Nanoseconds of a cycle.
  virtual double cycle_ns() const = 0;
  /// Messages take the topology's routes.
  virtual bool routed() const { return true; }
};

/// `transport` is "xswitch,fifo=128": a model's name and its options. The topology outlives the subject.
Result<std::unique_ptr<Subject>> make_subject(std::string_view transport, const Topology& topology);

/// A model with channels, a closed form and a reference model of its own has subject_NAME.cpp beside this file, which
/// defines make_NAME of this type. CMake finds it and makes the list.
using MakeSubject = Result<std::unique_ptr<Subject>>(std::string_view options, const Topology& topology);
#define ULFM_SUBJECT(name) MakeSubject make_##name;
#include "subjects.inc"
#undef ULFM_SUBJECT
Result<std::unique_ptr<Subject>> make_any(const ulfm::fabric::ModelKind& kind, std::string_view options,
                                          const Topology& topology);

/// Zeroed memory, aligned to pages, of which only what is touched takes room.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes);
  Memory(Memory&& other) noexcept : at_(other.at_), bytes_(other.bytes_) { other.at_ = nullptr; }
  Memory& operator=(Memory&&) = delete;
  ~Memory();
  /// nullptr: there was none.
  std::byte* data() const noexcept { return at_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Bytes that this process had at one time, at most; 0: the system does not say.
double most_memory();

/// An error for memory that the system did not give.
tl::unexpected<ulfm::Error> no_memory(std::size_t bytes);

/// Ways out of the switches and then the nodes: how many channels a topology has.
inline std::size_t channels(const Topology& t) { return std::size_t{t.switches} * t.ports + t.nodes(); }

/// As many events as it takes.
inline constexpr std::uint64_t kNoBudget = std::uint64_t{1} << 60;

/// Takes what has ended from a model, which hands it out in pieces.
class Collector {
 public:
  template <typename Run>
  void operator()(std::vector<Ending>& endings, Run run) {
    std::size_t got = 0;
    do {
      got = run(std::span<Ending>(room_));
      endings.insert(endings.end(), room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(got));
    } while (got == room_.size());
  }

 private:
  std::vector<Ending> room_ = std::vector<Ending>(256);
};

}  // namespace sim
