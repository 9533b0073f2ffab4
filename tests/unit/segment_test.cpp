#include "base/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/align.hpp"
#include "child.hpp"
#include "skipped.hpp"

using namespace ulfm;

TEST_CASE("a segment is shared by those who attach to it", "[segment]") {
  auto made = Segment::create("ulfm-test", 1 << 20);
  REQUIRE(made);
  CHECK(made->size() == 1 << 20);
  REQUIRE(made->commit(0, made->size()));
  auto attached = Segment::attach(getpid(), made->fd());
  REQUIRE(attached);
  CHECK(attached->size() == made->size());
  *made->at<int>(4096) = 4711;
  CHECK(*attached->at<int>(4096) == 4711);
  CHECK(attached->fd() == -1);  // a mapping costs no descriptor
  REQUIRE(attached->commit(8192, 100));
  *attached->at<int>(8192) = 5;
  CHECK(*made->at<int>(8192) == 5);

  CHECK(made->decommit(4096, 4096));
  CHECK(*attached->at<int>(4096) == 0);
  CHECK(*attached->at<int>(8192) == 5);
}

TEST_CASE("a segment is sealed and private to its user", "[segment]") {
  auto made = Segment::create("ulfm-test", 8192);
  REQUIRE(made);
  CHECK((fcntl(made->fd(), F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW));
  CHECK(ftruncate(made->fd(), 0) != 0);
  CHECK(ftruncate(made->fd(), 1 << 20) != 0);
  struct stat st {};
  REQUIRE(fstat(made->fd(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  CHECK((fcntl(made->fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a piece outside the segment is not committed", "[segment]") {
  auto made = Segment::create("ulfm-test", 8192);
  REQUIRE(made);
  CHECK(made->commit(8192, 1).error().code == Errc::too_large);
  CHECK(made->commit(0, 8193).error().code == Errc::too_large);
  CHECK(made->commit(~std::size_t{0}, 1).error().code == Errc::too_large);
  CHECK(made->commit(1, ~std::size_t{0}).error().code == Errc::too_large);
}

TEST_CASE("more memory than the machine has is not committed", "[segment]") {
  constexpr std::size_t kMore = std::size_t{1} << 44;  // addresses cost nothing
  auto made = Segment::create("ulfm-test", kMore);
  if (!made) {  // as with vm.overcommit_memory=2
    WARN("skipped: " << made.error().what);
    return;
  }
  const auto committed = made->commit(0, kMore);
  REQUIRE_FALSE(committed);
  CHECK(committed.error().code == Errc::no_memory);
  CHECK(committed.error().what.find("needed 16.0 TB") != std::string::npos);
  CHECK(made->commit(0, 4096));
}

TEST_CASE("a segment is seen twice by one process", "[segment]") {
  auto made = Segment::create("ulfm-test", 64 * kPage);
  REQUIRE(made);
  REQUIRE(made->commit(0, made->size()));
  auto head = Segment::attach(getpid(), made->fd(), 2 * kPage);
  REQUIRE(head);
  CHECK(head->size() == 2 * kPage);
  CHECK(head->whole_size() == 64 * kPage);
  auto all = head->view(64 * kPage);
  REQUIRE(all);
  *all->at<int>(63 * kPage) = 17;
  *head->at<int>(kPage) = 4;
  CHECK(*made->at<int>(63 * kPage) == 17);
  CHECK(*all->at<int>(kPage) == 4);
  CHECK(all->commit(63 * kPage, kPage));
  CHECK(head->view(65 * kPage).error().code == Errc::no_memory);
  head = Segment();
  CHECK(*all->at<int>(kPage) == 4);
}

TEST_CASE("a prefaulted piece is touched without a fault", "[segment]") {
  constexpr std::size_t pages = 64;
  auto made = Segment::create("ulfm-test", pages * kPage);
  REQUIRE(made);
  REQUIRE(made->commit(0, made->size()));
  const auto faults_of = [](const Segment& segment) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    for (std::size_t page = 0; page < pages; ++page) *segment.at<volatile char>(page * kPage) = 1;
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
  };
  auto plain = Segment::attach(getpid(), made->fd());
  REQUIRE(plain);
  CHECK(faults_of(*plain) >= static_cast<long>(pages) / 16);  // a kernel may map some neighbours with each
  auto attached = Segment::attach(getpid(), made->fd());
  REQUIRE(attached);
  if (test::skipped_without(madvise(attached->base(), kPage, MADV_POPULATE_WRITE) == 0, "a kernel that populates"))
    return;
  attached->prefault(100, attached->size() - 200);
#ifdef __SANITIZE_ADDRESS__
  constexpr long kShadow = pages / 8;  // of the sanitizer's own memory, a byte for each eight
#else
  constexpr long kShadow = 0;
#endif
  CHECK(faults_of(*attached) <= 2 + kShadow);
}

TEST_CASE("a size that is no number of pages can be committed to its end", "[segment]") {
  auto made = Segment::create("ulfm-test", 5000);
  REQUIRE(made);
  const auto committed = made->commit(0, 5000);
  INFO((committed ? std::string() : committed.error().what));
  CHECK(committed);
}

TEST_CASE("a segment moves as one", "[segment]") {
  Segment moved;
  CHECK_FALSE(moved);
  {
    auto made = Segment::create("ulfm-test", 4096);
    REQUIRE(made);
    moved = std::move(*made);
  }
  REQUIRE(moved);
  REQUIRE(moved.commit(0, 4096));
  *moved.at<int>(0) = 1;
}

TEST_CASE("a program that has used up its descriptors still attaches", "[segment]") {
  auto made = Segment::create("ulfm-test", 8192);
  REQUIRE(made);
  *made->at<int>(0) = 4711;
  test::Child child([&](test::Pipe& pipe) {
    const auto attaches = [&] {
      const auto attached = Segment::attach(getpid(), made->fd());
      return attached && *attached->at<int>(0) == 4711 ? std::string("yes") : attached.error().what;
    };
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    const std::string first = attaches(), again = attaches();
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    for (const std::string& line : {first, again, attaches()}) pipe.send(line);
  });
  CHECK(child.pipe().receive() == "yes");
  CHECK(child.pipe().receive() == "yes");
  CHECK(child.pipe().receive().find("ulimit -n") != std::string::npos);
}

// It may have closed the spare one, too, and have a file of its own under that number.
TEST_CASE("a file of the program is not closed for its descriptor", "[segment]") {
  auto made = Segment::create("ulfm-test", 8192);
  REQUIRE(made);
  test::Child child([&](test::Pipe& pipe) {
    const int highest = open("/dev/null", O_RDONLY);
    for (int fd = 3; fd < highest; ++fd) {
      struct stat st {};
      if (fd == made->fd() || fstat(fd, &st) != 0 || S_ISSOCK(st.st_mode)) continue;
      close(fd);
      open("/dev/null", O_RDONLY);
    }
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    const bool attached = Segment::attach(getpid(), made->fd()).has_value();
    pipe.send(std::string(attached ? "attached" : "failed") +
              (open("/dev/null", O_RDONLY) < 0 ? ", none free" : ", one free"));
  });
  CHECK(child.pipe().receive() == "failed, none free");
}

TEST_CASE("what is no segment is not attached", "[segment]") {
  CHECK_FALSE(Segment::attach(getpid(), 987654));
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  CHECK(Segment::attach(getpid(), pipes[0]).error().code == Errc::protocol);
  close(pipes[0]);
  close(pipes[1]);
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
  REQUIRE(unsealed >= 0);
  REQUIRE(ftruncate(unsealed, 4096) == 0);
  CHECK(Segment::attach(getpid(), unsealed).error().code == Errc::protocol);
  close(unsealed);
}

TEST_CASE("the segment of a process that is gone is an error that says so", "[segment]") {
  pid_t pid = 0;
  {
    test::Child child([](test::Pipe&) {});
    child.wait();
    pid = child.pid();
  }
  const auto attached = Segment::attach(pid, 3);
  REQUIRE_FALSE(attached);
  CHECK(attached.error().code == Errc::peer_failed);
  CHECK(attached.error().what.find(std::to_string(pid)) != std::string::npos);
}

TEST_CASE("a segment of another process is attached", "[segment]") {
  test::Child child([](test::Pipe& parent) {
    auto made = Segment::create("ulfm-test", 4096);
    if (!made || !made->commit(0, 4096)) return;
    *made->at<int>(0) = 99;
    parent.send(std::to_string(made->fd()));
    parent.receive();
  });
  auto attached = Segment::attach(child.pid(), std::stoi(child.pipe().receive()));
  REQUIRE(attached);
  CHECK(*attached->at<int>(0) == 99);
  child.kill();
  CHECK(*attached->at<int>(0) == 99);  // the memory lives as long as someone maps it
}

TEST_CASE("a file size limit is an error with need, finding and remedy", "[segment]") {
  test::Child child([](test::Pipe& parent) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{100 * 1024, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto made = Segment::create("ulfm-test", 1 << 20);
    setrlimit(RLIMIT_FSIZE, &before);  // of a coverage build, which writes its counts at the end
    parent.send(made ? "made" : std::string(name(made.error().code)) + " " + made.error().what);
  });
  const std::string said = child.pipe().receive();
  INFO(said);
  CHECK(said.rfind("no_memory", 0) == 0);
  CHECK(said.find("needed 1.0 MB") != std::string::npos);
  CHECK(said.find("found a file size limit of 100.0 KB") != std::string::npos);
  CHECK(said.find("ulimit -f unlimited") != std::string::npos);
  CHECK(child.wait() == 0);
}

TEST_CASE("sizes are readable", "[segment]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.5 KB");
  CHECK(human_bytes(std::size_t{5} << 40) == "5.0 TB");
}
