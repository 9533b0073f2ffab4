#include "job/liveness.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <thread>

#include "child.hpp"

using namespace ulfm;

TEST_CASE("a process is known by pid and start time", "[liveness]") {
  const std::uint64_t mine = start_time(getpid());
  CHECK(mine != 0);
  CHECK(is_alive(getpid(), mine));
  CHECK_FALSE(is_alive(getpid(), mine + 1));  // the pid is another process's now
  CHECK_FALSE(is_alive(0, 0));
  CHECK_FALSE(is_alive(-1, 0));
  CHECK(start_time(-1) == 0);
}

TEST_CASE("a process knows itself by what others know it by", "[liveness]") {
  test::Child child([](test::Pipe& parent) {
    parent.send(std::to_string(start_time(getpid())));
    parent.receive();
  });
  CHECK(child.pipe().receive() == std::to_string(start_time(child.pid())));
}

TEST_CASE("a killed process is dead, also while it is a zombie", "[liveness]") {
  test::Child child([](test::Pipe& parent) { parent.receive(); });
  const std::uint64_t started = start_time(child.pid());
  CHECK(started != 0);
  CHECK(is_alive(child.pid(), started));
  child.strike();
  // Its end of the socket closes when it ends: no sleep is needed to see it dead.
  CHECK(child.pipe().receive().empty());
  while (is_alive(child.pid(), started)) {
  }
  CHECK(child.wait() == 128 + SIGKILL);
  CHECK_FALSE(is_alive(child.pid(), started));
  CHECK(start_time(child.pid()) == 0);
}

TEST_CASE("who has no descriptor left still tells the living from the dead", "[liveness]") {
  test::Child dead([](test::Pipe&) {});
  const std::uint64_t dead_started = start_time(dead.pid());
  while (is_alive(dead.pid(), dead_started)) {
  }
  const std::uint64_t mine = start_time(getpid());
  const pid_t parent = getpid();
  test::Child child([&](test::Pipe& pipe) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    pipe.send(std::string(is_alive(parent, mine) ? "alive" : "dead") + (is_alive(dead.pid(), 0) ? " alive" : " dead"));
  });
  CHECK(child.pipe().receive() == "alive dead");  // the other one is a zombie: nobody has waited for it
}

TEST_CASE("a process whose first thread has ended is alive as long as another runs", "[liveness]") {
  test::Child child([](test::Pipe& pipe) {
    std::thread([&pipe] {
      // Until the first thread is a zombie.
      for (const std::uint64_t own = start_time(getpid()); own != 0;) {
        char state = 0;
        if (std::FILE* f = std::fopen(("/proc/self/task/" + std::to_string(getpid()) + "/stat").c_str(), "r")) {
          (void)!std::fscanf(f, "%*d (%*[^)]) %c", &state);
          std::fclose(f);
        }
        if (state == 'Z') break;
      }
      pipe.send("alone");
      pipe.receive();
      _exit(0);
    }).detach();
    syscall(SYS_exit, 0);  // as pthread_exit() does it, without unwinding through the test
  });
  const std::uint64_t started = start_time(child.pid());
  REQUIRE(child.pipe().receive() == "alone");
  CHECK(is_alive(child.pid(), started));
  child.strike();
  while (is_alive(child.pid(), started)) {
  }
  CHECK(child.wait() == 128 + SIGKILL);
}

TEST_CASE("a process's name may hold anything", "[liveness]") {
  const char* name = GENERATE("a) Z 1 2", ") ) )", "   ", "(((");
  test::Child child([&](test::Pipe& parent) {
    prctl(PR_SET_NAME, name);
    parent.send("named");
    parent.receive();
  });
  const std::uint64_t started = start_time(child.pid());
  REQUIRE(child.pipe().receive() == "named");
  CHECK(start_time(child.pid()) == started);
  CHECK(is_alive(child.pid(), started));
}

TEST_CASE("a host has one identity, tokens are different", "[liveness]") {
  CHECK(host_identity() == host_identity());
  CHECK(host_identity() != 0);
  CHECK(random_token() != random_token());
}
