#include "job/stall_board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/counted.hpp"
#include "base/error.hpp"

namespace ulfm {
namespace {

constexpr std::uint64_t kMagic = 0x756c666d7374616cull;
constexpr std::int64_t kPatience = 1'000'000'000;  // ns; for answers, and between two tables
constexpr std::int64_t kGivenUp = 10'000'000'000;  // for a table that nobody has printed

std::string process_state(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  FILE* file = pid > 0 ? std::fopen(path.c_str(), "r") : nullptr;
  if (file == nullptr) return pid > 0 && errno == ENOENT ? "has ended" : "is not known";
  char text[512] = "";
  (void)!std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const char* end = std::strrchr(text, ')');
  switch (end != nullptr && end[1] != 0 ? end[2] : '?') {
    case 'T':
    case 't': return "is stopped";
    case 'Z':
    case 'X': return "has ended";
    default: return "runs";
  }
}

std::string seconds(std::int64_t nanoseconds) {
  return fmt::format("{:.1f} s", static_cast<double>(nanoseconds) / 1e9);
}

std::string who(const StallWait& wait) {
  if (wait.rank == -1) return "any rank";
  if (wait.rank < 0) return "a rank of another job";
  return fmt::format("rank {}", wait.rank);
}

std::string what(const StallWait& wait) {
  const std::string tag = wait.tag < 0 ? "any tag" : fmt::format("tag {}", wait.tag);
  const std::string where = wait.port != 0         ? fmt::format(" at port {}", wait.port)
                            : wait.name[0] != '\0' ? fmt::format(" in {}", wait.name)
                                                   : "";
  const std::string about = wait.port != 0 ? where : fmt::format(", {}{}", tag, where);
  switch (wait.kind) {
    case StallKind::message:
    case StallKind::any: return fmt::format("a message from {}{}", who(wait), about);
    case StallKind::clear_to_send:
      return fmt::format("{} to receive {}{}", who(wait), counted(wait.bytes, "byte"), about);
    case StallKind::data: return fmt::format("the data of a message from {}{}", who(wait), about);
    case StallKind::taken: return fmt::format("{} to receive a synchronous send{}", who(wait), about);
    case StallKind::room:
      return fmt::format("{} to take what was sent ({} waiting){}", who(wait), counted(wait.bytes, "message"), where);
    case StallKind::collective: return fmt::format("{} to come to {}", who(wait), wait.name);
  }
  return "";
}

const StallLine* line_of(const std::vector<StallLine>& lines, int rank) {
  const auto found = std::find_if(lines.begin(), lines.end(), [rank](const StallLine& l) { return l.rank == rank; });
  return found == lines.end() ? nullptr : &*found;
}

std::string state_of(const StallLine& line) {
  if (!line.answered) return line.process == "runs" ? "computes" : line.process;
  return line.state.blocked != 0 ? "waits" : "polls";
}

bool in(const std::vector<int>& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

// The ranks that wait only for each other. Ranks that poll, or that wait for a rank outside the set, are removed until
// no more can be removed. Any wait of a rank may be the one that its call needs, so all of them count.
std::vector<int> deadlocked(const std::vector<StallLine>& lines) {
  std::vector<int> left;
  for (const StallLine& line : lines)
    if (line.answered && line.state.blocked != 0 && line.state.n != 0 && line.state.more == 0)
      left.push_back(line.rank);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const StallState& state = line_of(lines, left[i])->state;
      const bool hopeless = std::all_of(state.waits, state.waits + state.n, [&](const StallWait& wait) {
        return wait.rank == -1 ? left.size() == lines.size() : in(left, wait.rank);
      });
      if (hopeless) continue;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      changed = true;
      break;
    }
  }
  return left;
}

// A way from `rank` along waits of blocked ranks back to itself, over ranks that are not on the path yet.
bool find_cycle(const std::vector<StallLine>& lines, int start, int rank, std::vector<int>& path) {
  const StallLine* line = line_of(lines, rank);
  if (line == nullptr || !line->answered || line->state.blocked == 0 || in(path, rank)) return false;
  path.push_back(rank);
  for (std::uint32_t i = 0; i < line->state.n; ++i) {
    const int next = line->state.waits[i].rank;
    if (next == start || (next >= 0 && find_cycle(lines, start, next, path))) return true;
  }
  path.pop_back();
  return false;
}

std::string cycle_text(const std::vector<StallLine>& lines, const std::vector<int>& path) {
  std::string text;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const int next = path[(i + 1) % path.size()];
    const StallState& state = line_of(lines, path[i])->state;
    const auto* wait =
        std::find_if(state.waits, state.waits + state.n, [&](const StallWait& w) { return w.rank == next; });
    text += fmt::format("{}{} waits for {}", i == 0 ? "rank " : "; rank ", path[i], what(*wait));
  }
  return text;
}

}  // namespace

std::string stall_waits(const StallLine& line) {
  std::string text;
  for (std::uint32_t i = 0; line.answered && i < line.state.n; ++i)
    text += (text.empty() ? " for " : ", and for ") + what(line.state.waits[i]);
  return text;
}

std::string stall_verdict(const std::vector<StallLine>& lines) {
  const std::vector<int> all = deadlocked(lines);
  for (const StallLine& line : lines) {
    std::vector<int> path;
    if (!find_cycle(lines, line.rank, line.rank, path)) continue;
    const bool sure = std::all_of(path.begin(), path.end(), [&](int rank) { return in(all, rank); });
    return fmt::format("ulfm: stall: {}: {}\n", sure ? "deadlock" : "a cycle of waits, perhaps a deadlock",
                       cycle_text(lines, path));
  }
  std::string ended;
  for (const StallLine& line : lines)
    if (line.process == "has ended") ended += fmt::format("{}{}", ended.empty() ? "" : ", ", line.rank);
  if (!ended.empty()) return fmt::format("ulfm: stall: ended: rank {}\n", ended);
  if (all.empty()) return "";
  std::string ranks;
  for (const int rank : all) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  return fmt::format("ulfm: stall: deadlock: ranks {} wait, and nobody else could end that\n", ranks);
}

namespace {

using Columns = std::array<std::string, 7>;
const Columns kTitles{"rank", "process", "state", "since", "waits for", "who", "queues"};

void add_rows(const std::vector<StallLine>& lines, const StallLine& line, std::int64_t now,
              std::vector<Columns>& rows) {
  const StallState& state = line.state;
  const std::string rank = fmt::format("{}", line.rank), pid = state.pid > 0 ? fmt::format("{}", state.pid) : "-";
  if (!line.answered) {
    rows.push_back({rank, pid, state_of(line), "-", "it makes no calls", "-", "-"});
    return;
  }
  const std::string queues = fmt::format("{} posted, {} arrived, {} unsent", state.posted, state.arrived, state.unsent);
  rows.push_back({rank, pid, state_of(line), seconds(now - state.since), "nothing known", "-", queues});
  for (std::uint32_t i = 0; i < state.n; ++i) {
    const StallLine* peer = line_of(lines, state.waits[i].rank);
    if (i != 0) rows.push_back({});
    rows.back()[4] = what(state.waits[i]);
    rows.back()[5] = peer != nullptr ? state_of(*peer) : "-";
  }
  if (state.more != 0) rows.push_back({"", "", "", "", fmt::format("and {} more", state.more), "", ""});
}

std::string aligned(const std::vector<Columns>& rows) {
  std::array<std::size_t, 7> width{};
  for (const Columns& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const Columns& row : rows) {
    std::string line = "ulfm: stall:";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("  {}{}", row[i], std::string(width[i] - row[i].size(), ' '));
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{}\n", line);
  }
  return text;
}

}  // namespace

std::string stall_table(const std::vector<StallLine>& lines, std::int64_t now) {
  std::vector<Columns> rows{kTitles};
  for (const StallLine& line : lines) add_rows(lines, line, now, rows);
  return aligned(rows) + stall_verdict(lines);
}

// ---- the shared page ----------------------------------------------------------------------------------------------

struct StallBoard::Header {
  std::uint64_t magic;
  std::uint32_t ranks;
  std::atomic<std::uint32_t> question;  ///< its number; release, so that asked_at belongs to it
  std::atomic<std::uint32_t> printed;   ///< the last question whose table somebody prints
  std::atomic<std::int64_t> asked_at;
};

struct StallBoard::Row {
  std::atomic<std::uint32_t> answered;  ///< to which question; release, pairs with table()
  StallState state;
};

StallBoard::StallBoard(void* memory, std::size_t bytes, int rank, std::string place)
    : memory_(memory), bytes_(bytes), rank_(rank), place_(std::move(place)) {}

StallBoard::StallBoard(StallBoard&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      rank_(other.rank_),
      place_(std::move(other.place_)) {}

StallBoard::~StallBoard() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

StallBoard::Header& StallBoard::header() const noexcept { return *static_cast<Header*>(memory_); }

StallBoard::Row& StallBoard::row(int rank) const noexcept {
  return reinterpret_cast<Row*>(static_cast<std::byte*>(memory_) + sizeof(Header))[rank];
}

Result<StallBoard> StallBoard::create(int ranks) {
  const std::size_t bytes = sizeof(Header) + sizeof(Row) * static_cast<std::size_t>(ranks);
  const int fd = memfd_create("ulfm-stall", 0);
  if (fd < 0) return fail_errno("the table of waits");
  void* memory = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0 && fchmod(fd, 0600) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    auto error = fail_errno("the table of waits");
    close(fd);
    return error;
  }
  StallBoard board(memory, bytes, -1, fmt::format("{}:{}", getpid(), fd));
  board.header().ranks = static_cast<std::uint32_t>(ranks);
  board.header().magic = kMagic;
  return board;
}

// Spawned processes have ranks of another job, and report for themselves.
Result<StallBoard> StallBoard::attach(int rank, int ranks) {
  const char* place = std::getenv("ULFM_STALL_BOARD");
  const char* spawned = std::getenv("PMI_SPAWNED");
  int pid = 0, number = 0;
  if (place == nullptr || (spawned != nullptr && std::strcmp(spawned, "0") != 0) ||
      std::sscanf(place, "%d:%d", &pid, &number) != 2)
    return fail(Errc::not_found, "there is no table of waits");
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, number);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail_errno(path);
  const std::size_t bytes = sizeof(Header) + sizeof(Row) * static_cast<std::size_t>(ranks);
  struct stat found {};
  void* memory = MAP_FAILED;
  if (fstat(fd, &found) == 0 && found.st_uid == geteuid() && static_cast<std::size_t>(found.st_size) == bytes)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return fail(Errc::not_found, fmt::format("{} is not this job's table of waits", path));
  StallBoard board(memory, bytes, rank, place);
  if (board.header().magic != kMagic || rank < 0 || rank >= ranks)
    return fail(Errc::not_found, fmt::format("{} is not this job's table of waits", path));
  board.row(rank).state.pid = getpid();
  return board;
}

bool StallBoard::asked() const noexcept {
  return header().question.load(std::memory_order_acquire) != row(rank_).answered.load(std::memory_order_relaxed);
}

void StallBoard::ask(std::int64_t now) noexcept {
  Header& h = header();
  std::int64_t before = h.asked_at.load(std::memory_order_relaxed);
  const bool open = h.printed.load(std::memory_order_relaxed) != h.question.load(std::memory_order_relaxed);
  if (before != 0 && now - before < (open ? kGivenUp : kPatience)) return;
  if (h.asked_at.compare_exchange_strong(before, now, std::memory_order_relaxed))
    h.question.fetch_add(1, std::memory_order_release);  // pairs with asked()
}

void StallBoard::answer(const StallState& state) noexcept {
  Row& mine = row(rank_);
  const std::uint32_t question = header().question.load(std::memory_order_acquire);
  mine.state = state;
  mine.answered.store(question, std::memory_order_release);  // pairs with table()
}

std::vector<StallLine> StallBoard::lines() const {
  const Header& h = header();
  const std::uint32_t question = h.question.load(std::memory_order_acquire);
  std::vector<StallLine> all;
  for (int rank = 0; rank < static_cast<int>(h.ranks); ++rank) {
    const bool answered = row(rank).answered.load(std::memory_order_acquire) == question && question != 0;
    StallState state = row(rank).state;
    state.n = std::min<std::uint32_t>(state.n, kMostStallWaits);
    for (StallWait& wait : state.waits) wait.name[kStallName - 1] = '\0';
    all.push_back({rank, answered, process_state(state.pid), state});
  }
  return all;
}

std::string StallBoard::table(std::int64_t now) {
  Header& h = header();
  std::uint32_t printed = h.printed.load(std::memory_order_relaxed);
  const std::uint32_t question = h.question.load(std::memory_order_acquire);
  if (printed == question) return "";
  const int ranks = static_cast<int>(h.ranks);
  int answers = 0;
  for (int rank = 0; rank < ranks; ++rank)
    answers += row(rank).answered.load(std::memory_order_acquire) == question ? 1 : 0;
  if (answers < ranks && now - h.asked_at.load(std::memory_order_relaxed) < kPatience) return "";
  if (!h.printed.compare_exchange_strong(printed, question, std::memory_order_relaxed)) return "";
  return stall_table(lines(), now);
}

}  // namespace ulfm
