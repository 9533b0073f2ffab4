// What a process says before it is ended is read before it goes on.
#include "base/last_words.hpp"

#include <unistd.h>

#include <atomic>
#include <thread>

#include <catch2/catch.hpp>

TEST_CASE("whoever speaks before the end waits until a reader of the pipe has heard it", "[last_words]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int before = dup(STDERR_FILENO);
  REQUIRE(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
  std::atomic<bool> heard{false};
  char text[64] = {};
  std::thread reader([&] {
    // Only what was heard may let the speaker go on, so the flag comes before the pipe is empty.
    char first = 0;
    (void)!read(ends[0], &first, 1);
    heard = true;
    (void)!read(ends[0], text, sizeof text);
  });
  ulfm::say_before_the_end("the end");
  const bool in_time = heard;
  dup2(before, STDERR_FILENO);
  reader.join();
  CHECK(in_time);
  CHECK(std::string(text) == "lfm: the end\n");
  for (const int fd : {before, ends[0], ends[1]}) close(fd);
}
