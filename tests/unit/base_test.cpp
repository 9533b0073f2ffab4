// Small things of the base: codes of errors and their sentences, words of a command, counters of collectives.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/align.hpp"
#include "base/argv.hpp"
#include "base/copy.hpp"
#include "base/counted.hpp"
#include "base/error.hpp"
#include "coll/collective.hpp"
#include "coll/counts.hpp"

using namespace ulfm;

TEST_CASE("a block is copied byte for byte, wherever it lies beside its copy", "[copy]") {
  const std::size_t behind = GENERATE(0u, 1u, 8u, 15u, 16u, 4095u);
  const std::size_t n = GENERATE(0u, 1u, 33u, 2047u, 2048u, 2049u, 4096u, 70001u);
  std::vector<std::byte> room(2 * (70001 + 3 * 4096));
  // Both begin pages, but for `behind`.
  const auto at = reinterpret_cast<std::uintptr_t>(room.data());
  std::byte* const from = room.data() + (4096 - at % 4096) % 4096;
  std::byte* const to = from + up_to(n + 1, 4096) + behind;
  for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<std::byte>(i % 251 + 1);
  copy_block(to, from, n);
  CHECK(std::equal(from, from + n, to));
  CHECK(to[n] == std::byte{0});
  CHECK(to[-1] == std::byte{0});
}

TEST_CASE("copies close behind their source are those up to 15 bytes behind its place in a page", "[copy]") {
  STATIC_REQUIRE(is_close_behind(8, 0));
  STATIC_REQUIRE(is_close_behind(3 * 4096 + 15, 4096));
  STATIC_REQUIRE(is_close_behind(4096 + 2, 4095));
  STATIC_REQUIRE_FALSE(is_close_behind(4096, 0));
  STATIC_REQUIRE_FALSE(is_close_behind(16, 0));
  STATIC_REQUIRE_FALSE(is_close_behind(0, 8));
}

TEST_CASE("each code of an error has a name of its own, and is the negative of the C API's", "[base]") {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Errc::system); ++code) {
    names.insert(name(static_cast<Errc>(code)));
    CHECK(std::string(ulfm_error_name(-code)) == name(static_cast<Errc>(code)));
  }
  CHECK(names.size() == static_cast<std::size_t>(Errc::system) + 1);
  CHECK(names.count("unknown") == 0);
  CHECK(name(static_cast<Errc>(99)) == std::string("unknown"));
  CHECK(name(static_cast<Errc>(-ULFM_ERR_TIMED_OUT)) == std::string("timed_out"));
}

TEST_CASE("one thing is told in the singular", "[base]") {
  CHECK(counted(0, "frame") == "0 frames");
  CHECK(counted(1, "frame") == "1 frame");
  CHECK(counted(2, "frame") == "2 frames");
  CHECK(counted(1, "process", "processes") == "1 process");
  CHECK(counted(12, "process", "processes") == "12 processes");
}

TEST_CASE("a failed system call has errno's text, and a context comes in front", "[base]") {
  const Result<int> failed = fail_errno("opening /none", ENOENT);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::system);
  CHECK(failed.error().what == "opening /none: No such file or directory");
  const Result<int> outer = fail(Error(failed.error()).within("reading the plan"));
  CHECK(outer.error().code == Errc::system);
  CHECK(outer.error().what == "reading the plan: opening /none: No such file or directory");
}

TEST_CASE("the words of a command end with a null pointer", "[base]") {
  const std::vector<std::string> words{"ulfmrun", "-n", ""};
  const std::vector<char*> argv = argv_of(words);
  REQUIRE(argv.size() == 4);
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(argv[i] == words[i]);
  CHECK(argv[3] == nullptr);
  CHECK(argv_of({}).size() == 1);
}

TEST_CASE("collectives are counted by their way and kind, and lines of nothing are left out", "[collective]") {
  coll::Counts counts;
  CHECK(counts.text("rank 3").empty());
  counts.count(ULFM_COLL_BARRIER, ULFM_COLL_SHARED);
  counts.count(ULFM_COLL_BCAST, ULFM_COLL_LONG);
  counts.count(ULFM_COLL_ALLTOALLV, ULFM_COLL_SHARED);
  counts.count(ULFM_COLL_BARRIER, ULFM_COLL_SHARED);
  CHECK(counts.text("rank 3") ==
        "ulfm: stats rank 3 collectives through shared memory: barrier 2, alltoallv 1\n"
        "ulfm: stats rank 3 collectives by messages, for their size: bcast 1\n");
}

TEST_CASE("which collectives have a root, and which are made with one copy", "[collective]") {
  int rooted = 0, copied = 0;
  for (int kind = 0; kind < ULFM_COLL_KINDS; ++kind) {
    rooted += coll::has_root(kind);
    copied += coll::has_one_copy(kind);
  }
  CHECK(rooted == 6);
  CHECK(copied == 9);
  for (const int all : {ULFM_COLL_BARRIER, ULFM_COLL_ALLREDUCE, ULFM_COLL_SCAN, ULFM_COLL_ALLGATHERV})
    CHECK_FALSE(coll::has_root(all));
  // Sizes that differ between ranks are not known to all, and partial results are not anywhere whole.
  for (const int kind : {ULFM_COLL_SCAN, ULFM_COLL_EXSCAN, ULFM_COLL_GATHERV, ULFM_COLL_ALLTOALLV})
    CHECK_FALSE(coll::has_one_copy(kind));
}
