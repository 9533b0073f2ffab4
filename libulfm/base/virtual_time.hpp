// The clock of a process in a job that runs in virtual time (ulfm-time(7)).
//
// The fabric layer makes it, above the interconnect whose time it is; every layer may ask it. Without --time there is
// none, and asking costs one load.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace ulfm {

/// Picoseconds since the job began at which nothing is due any more.
inline constexpr std::uint64_t kNoMoment = ~std::uint64_t{0};

/// All calls: any thread of the process, one at a time to be repeatable.
class VirtualTime {
 public:
  enum class Spent : std::uint8_t { computing, messages, waiting };
  enum class Woken : std::uint8_t {
    arrival,  ///< something has arrived, or there is room to send
    moment,   ///< `until` has come
    /// Nothing will happen any more: the job ends when this process waits again, and should say before for whom.
    standstill,
    ended  ///< nothing will happen any more unless the caller handles processes that have ended
  };
  /// How a wait may end when nothing in the network can end it.
  enum class Patience : std::uint8_t {
    only_arrivals,  ///< that is a deadlock
    others_too      ///< look again a little later
  };

  virtual ~VirtualTime() = default;

  /// Picoseconds since the job began.
  virtual std::uint64_t now() const noexcept = 0;
  /// This process's time goes on by so much.
  virtual void spend(std::uint64_t picoseconds, Spent on) noexcept = 0;
  /// Returns when all that arrives by now() has arrived.
  virtual void look() noexcept = 0;
  /// The cost of a look that finds nothing, so that a loop of looks has an end.
  virtual void spend_look() noexcept = 0;
  /// Sleeps until something arrives, or until a moment.
  virtual Woken wait(std::uint64_t until, Patience patience) noexcept = 0;
  /// All processes that the job began with leave it at the time of the last one that came.
  virtual void barrier() noexcept = 0;
  /// Processes may join until it ends: a standstill is no deadlock meanwhile.
  virtual void expect_processes(bool begin) noexcept = 0;
  /// A call of the program begins, or ends; what lies between two calls is the program's own computing. Calls within
  /// calls are counted.
  virtual void enter(const char* call) noexcept = 0;
  virtual void leave() noexcept = 0;

  // Of a process that starts others itself: ulfm/places.h says what these do.
  virtual void begin_place(std::uint32_t place, std::int32_t pid) noexcept = 0;
  virtual bool place_has_ended(std::uint32_t place) noexcept = 0;
  virtual void end_place(std::uint32_t place) noexcept = 0;
  /// It has begun others, whose ends end its waits.
  virtual bool has_places() const noexcept = 0;

  /// The calling thread has made calls and is in none.
  virtual bool outside() const noexcept = 0;

  /// What software the messages that this thread sends cost at either end.
  enum class Charge : std::uint8_t {
    message,
    system,  ///< of a system's own, which programs do not see
    none     ///< of one that goes on with the one before
  };
  static void set_charge(Charge charge) noexcept { charge_ = charge; }
  static Charge charge() noexcept { return charge_; }

  /// nullptr when this process keeps the host's time.
  static VirtualTime* of_process() noexcept { return of_process_; }

 protected:
  static inline VirtualTime* of_process_ = nullptr;

 private:
  static inline thread_local Charge charge_ = Charge::message;
};

/// A call of a public interface: program code ends here and goes on behind it.
class TimedCall {
 public:
  explicit TimedCall(const char* call) noexcept {
    if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
      time->enter(call);
  }
  ~TimedCall() {
    if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
      time->leave();
  }
  TimedCall(const TimedCall&) = delete;
  TimedCall& operator=(const TimedCall&) = delete;
};

/// The clock by which time-outs between processes of a job are measured: virtual time, or the host's.
Clock& clock_of_job() noexcept;

}  // namespace ulfm
