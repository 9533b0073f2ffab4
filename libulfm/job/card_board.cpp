#include "job/card_board.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/doorbell.hpp"
#include "base/fnv.hpp"
#include "base/wait.hpp"
#include "base/wait_word.hpp"
#include "job/abstract_name.hpp"
#include "job/control/socket.hpp"
#include "job/control/wire.hpp"

namespace ulfm {

static_assert(CardBoard::kMostCard >= control::kMostCard, "every card fits the board");

struct alignas(256) CardBoard::Head {
  std::atomic<std::uint32_t> left;  // how many have left; publishes nothing
  RoomBell bell;                    // rung by the last one
};

struct CardBoard::Row {
  std::atomic<std::uint32_t> length;  // release, pairs with card_of(); 0: not put up
  char card[kMostCard];
  char rest[4];
};

namespace {

using control::Fd;

// A name that somebody has taken and does not listen at yet; it follows at once.
constexpr int kTries = 1000;

// Names have room for some 100 characters, job ids may be longer.
std::string label_of(std::string_view job_id) { return fmt::format("ulfm-cards.{:016x}", fnv1a(job_id)); }

AbstractName name_of(const std::string& label) { return AbstractName(fmt::format("{}.{}", label, geteuid())); }

Result<Fd> make_socket() {
  Fd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return fail_errno("a socket for the cards of this job");
  return made;
}

// The process that listens at the name, of this user; 0 when there is none.
pid_t owner_of(const AbstractName& name) {
  auto way = make_socket();
  if (!way) return 0;
  int rc = connect(way->get(), name.get(), name.length());
  for (int i = 0; rc != 0 && errno == ECONNREFUSED && i < kTries; ++i) {
    yield_now();
    rc = connect(way->get(), name.get(), name.length());
  }
  ucred owner{};
  socklen_t length = sizeof owner;
  if (rc != 0 || getsockopt(way->get(), SOL_SOCKET, SO_PEERCRED, &owner, &length) != 0) return 0;
  return owner.uid == geteuid() ? owner.pid : 0;
}

// That process's segment, found by the label that /proc shows for it.
Fd segment_of(pid_t owner, const std::string& label) {
  const std::string folder = fmt::format("/proc/{}/fd/", owner), wanted = fmt::format("/memfd:{} (deleted)", label);
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return Fd();
  Fd found;
  char link[128];
  while (const dirent* entry = readdir(entries)) {
    const std::string path = folder + entry->d_name;
    const ssize_t n = readlink(path.c_str(), link, sizeof link);
    if (n != static_cast<ssize_t>(wanted.size()) || std::memcmp(link, wanted.data(), wanted.size()) != 0) continue;
    found = Fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    break;
  }
  closedir(entries);
  return found;
}

Result<void*> map(int fd, std::size_t bytes) {
  struct stat found {};
  if (fstat(fd, &found) != 0 || found.st_uid != geteuid() || static_cast<std::size_t>(found.st_size) != bytes)
    return fail(Errc::unavailable, "the segment with the cards of this job has another size or owner");
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("mapping the cards of this job");
  return memory;
}

}  // namespace

CardBoard::Head& CardBoard::head() const noexcept { return *static_cast<Head*>(memory_); }

CardBoard::Row& CardBoard::row(int rank) const noexcept {
  return reinterpret_cast<Row*>(static_cast<char*>(memory_) + sizeof(Head))[rank];
}

std::size_t CardBoard::bytes_for(int size) noexcept {
  return sizeof(Head) + sizeof(Row) * static_cast<std::size_t>(size);
}

Result<std::unique_ptr<CardBoard>> CardBoard::join(std::string_view job_id, int rank, int size, std::string_view card) {
  static_assert(sizeof(Row) == 256);
  if (card.empty() || card.size() > kMostCard) return fail(Errc::too_large, "a card too long for the board");
  if (rank < 0 || rank >= size) return fail(Errc::invalid, "a rank that is none");
  const std::string label = label_of(job_id);
  const std::size_t bytes = bytes_for(size);
  const AbstractName name = name_of(label);
  // Before the name is taken, so that whoever finds the name finds the segment.
  Fd segment(memfd_create(label.c_str(), MFD_CLOEXEC));
  if (!segment || fchmod(segment.get(), 0600) != 0 || ftruncate(segment.get(), static_cast<off_t>(bytes)) != 0)
    return fail_errno("a segment for the cards of this job");
  auto listener = make_socket();
  if (!listener) return fail(listener.error());
  const bool first = bind(listener->get(), name.get(), name.length()) == 0 &&
                     listen(listener->get(), std::numeric_limits<int>::max()) == 0;
  if (!first) {
    listener->reset();
    const pid_t owner = owner_of(name);
    segment = owner > 0 ? segment_of(owner, label) : Fd();
    if (!segment) return fail(Errc::unavailable, "there is no way to the cards of this job");
  }
  auto memory = map(segment.get(), bytes);
  if (!memory) return fail(memory.error());
  std::unique_ptr<CardBoard> board(
      new CardBoard(*memory, size, first ? listener->release() : -1, first ? segment.release() : -1));
  Row& own = board->row(rank);
  card.copy(own.card, kMostCard);
  own.length.store(static_cast<std::uint32_t>(card.size()), std::memory_order_release);
  return board;
}

CardBoard::~CardBoard() {
  munmap(memory_, bytes_for(size_));
  if (name_ >= 0) close(name_);
  if (segment_ >= 0) close(segment_);
}

std::string CardBoard::card_of(int rank) const {
  if (rank < 0 || rank >= size_) return "";
  const Row& found = row(rank);
  const std::size_t length = std::min<std::size_t>(found.length.load(std::memory_order_acquire), kMostCard);
  return {found.card, length};
}

bool CardBoard::leave() {
  // The full barrier of the addition is what Doorbell's producers need between the count and the look at the bell.
  head().left.fetch_add(1, std::memory_order_seq_cst);
  if (!have_all_left()) return false;
  head().bell.ring();
  return true;
}

WaitWord CardBoard::await_all() { return head().bell.arm(); }

bool CardBoard::have_all_left() const {
  std::uint32_t here = 0;
  for (int rank = 0; rank < size_; ++rank) here += row(rank).length.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  return head().left.load(std::memory_order_seq_cst) >= here;
}

}  // namespace ulfm
