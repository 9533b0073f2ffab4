// What every layer asks a process's virtual time for, and what the C API makes of it, without an interconnect: the time
// is one that notes its calls.
#include "base/virtual_time.hpp"

#include <ulfm/places.h>
#include <ulfm/ulfm.h>

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

class NotedTime final : public VirtualTime {
 public:
  NotedTime() { of_process_ = this; }
  ~NotedTime() override { of_process_ = nullptr; }

  std::uint64_t now() const noexcept override { return now_; }
  void spend(std::uint64_t picoseconds, Spent on) noexcept override {
    now_ = picoseconds == kNoMoment ? kNoMoment : now_ + picoseconds;
    spent = on;
  }
  void look() noexcept override { calls.emplace_back("look"); }
  void spend_look() noexcept override { now_ += 1000; }
  Woken wait(std::uint64_t, Patience) noexcept override { return Woken::arrival; }
  void barrier() noexcept override {}
  void expect_processes(bool begin) noexcept override { calls.emplace_back(begin ? "expect" : "expect no more"); }
  void enter(const char* call) noexcept override { calls.push_back(std::string("enter ") + call), ++depth; }
  void leave() noexcept override { calls.emplace_back("leave"), --depth; }
  void begin_place(std::uint32_t place, std::int32_t pid) noexcept override {
    calls.push_back("begin " + std::to_string(place) + " " + std::to_string(pid));
  }
  bool place_has_ended(std::uint32_t place) noexcept override { return place == 2; }
  void end_place(std::uint32_t place) noexcept override { calls.push_back("end " + std::to_string(place)); }
  bool has_places() const noexcept override { return false; }
  bool outside() const noexcept override { return depth == 0; }

  std::vector<std::string> calls;
  Spent spent = Spent::computing;
  int depth = 0;

 private:
  std::uint64_t now_ = 5'000'000;
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("without virtual time the job's clock is the host's, and calls about time do nothing", "[time]") {
  CHECK(&clock_of_job() == &Clock::steady());
  CHECK(ulfm_time_is_virtual() == 0);
  const std::int64_t before = ulfm_time_now();
  { const TimedCall call("a call"); }
  ulfm_time_enter("a call");
  ulfm_time_leave();
  ulfm_time_sleep(3'600'000'000'000);
  ulfm_time_hold(1);
  ulfm_time_look();
  ulfm_place_begin(1, 1);
  ulfm_place_end(1);
  CHECK(ulfm_time_outside() == 0);
  CHECK(ulfm_place_has_ended(1) == 0);
  CHECK(ulfm_place_settle() == 0);
  CHECK(ulfm_time_now() - before < 60'000'000'000);
}

TEST_CASE("with virtual time the job's clock is that time, and never 0", "[time]") {
  NotedTime time;
  Clock& clock = clock_of_job();
  CHECK(&clock != &Clock::steady());
  CHECK(clock.now() == 1s + 5us);
  time.spend(7'000'000, VirtualTime::Spent::waiting);
  CHECK(clock.now() == 1s + 12us);
}

TEST_CASE("calls are counted within calls, and the C API's are the same", "[time]") {
  NotedTime time;
  {
    const TimedCall call("outer");
    CHECK(ulfm_time_outside() == 0);
    ulfm_time_enter("inner");
    ulfm_time_leave();
  }
  CHECK(time.calls == Calls{"enter outer", "enter inner", "leave", "leave"});
  CHECK(ulfm_time_outside() == 1);
}

TEST_CASE("the C API's sleep takes virtual time, and looking at the clock takes some too", "[time]") {
  NotedTime time;
  CHECK(ulfm_time_is_virtual() == 1);
  CHECK(ulfm_time_now() == 5'001);  // a loop that waits for a moment ends
  ulfm_time_sleep(1'000);
  CHECK(time.spent == VirtualTime::Spent::waiting);
  CHECK(time.now() == 5'001'000 + 1'000'000);
  ulfm_time_sleep(0);
  ulfm_time_sleep(-1);
  CHECK(time.now() == 6'001'000);
  ulfm_time_look();
  CHECK(ulfm_place_now() == 6'002);
  CHECK(ulfm_place_settle() == 6'002);
  CHECK(time.calls.back() == "look");
  ulfm_time_sleep(INT64_MAX);  // longer than picoseconds can say: for ever
  CHECK(time.now() == kNoMoment);
}

TEST_CASE("places of processes that a program starts itself, and those that may join", "[time]") {
  NotedTime time;
  ulfm_place_begin(2, 4711);
  CHECK(ulfm_place_has_ended(1) == 0);
  CHECK(ulfm_place_has_ended(2) == 1);
  ulfm_place_end(2);
  ulfm_time_hold(1);
  ulfm_time_hold(0);
  CHECK(time.calls == Calls{"begin 2 4711", "end 2", "expect", "expect no more"});
}

TEST_CASE("what the messages of a thread cost is the thread's", "[time]") {
  CHECK(VirtualTime::charge() == VirtualTime::Charge::message);
  ulfm_time_charge(ULFM_TIME_SYSTEM);
  CHECK(VirtualTime::charge() == VirtualTime::Charge::system);
  ulfm_time_charge(ULFM_TIME_GOES_ON);
  CHECK(VirtualTime::charge() == VirtualTime::Charge::none);
  ulfm_time_charge(ULFM_TIME_MESSAGE);
  CHECK(VirtualTime::charge() == VirtualTime::Charge::message);
}
