#include "job/pmi.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/core.h>

namespace ulfm {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;

Result<int> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fail(Errc::not_found, fmt::format("{} is not set", name));
  int value = 0;
  const std::string_view view(text);
  const auto [end, ec] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (ec != std::errc{} || end != view.data() + view.size() || value < 0)
    return fail(Errc::invalid, fmt::format("{}=\"{}\" from the launcher is not a number", name, text));
  return value;
}

// PMI_PORT=host:port, for launchers that do not pass a descriptor.
Result<int> connect_to(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return fail(Errc::invalid, fmt::format("PMI_PORT=\"{}\": needs host:port", place));
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int rc = getaddrinfo(place.substr(0, colon).c_str(), place.substr(colon + 1).c_str(), &hints, &found);
  if (rc != 0) return fail(Errc::not_found, fmt::format("PMI_PORT={}: {}", place, gai_strerror(rc)));
  int fd = -1;
  for (addrinfo* a = found; a != nullptr && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    const int on = 1;  // its port may be one of ULFM_PORTS
    if (fd >= 0) (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  if (fd < 0) return fail_errno(fmt::format("connecting to the launcher at {}", place));
  return fd;
}

}  // namespace

Result<std::map<std::string, std::string>> parse_pmi_line(std::string_view line) {
  std::map<std::string, std::string> pairs;
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  while (!line.empty()) {
    if (line.front() == ' ') {
      line.remove_prefix(1);
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(Errc::protocol, fmt::format("PMI line holds no key=value at \"{}\"", line.substr(0, 40)));
    const std::string key(line.substr(0, equals));
    line.remove_prefix(equals + 1);
    // These two run to the end of the line; everything else ends at a blank.
    const bool to_end = key == "value" || key == "msg";
    std::size_t end = to_end ? line.size() : line.find(' ');
    if (key == "msg" && line.find(" value=") != std::string_view::npos) end = line.find(" value=");
    if (end == std::string_view::npos) end = line.size();
    pairs[key] = std::string(line.substr(0, end));
    line.remove_prefix(end);
  }
  if (pairs.count("cmd") == 0) return fail(Errc::protocol, "PMI line has no cmd");
  return pairs;
}

Result<std::unique_ptr<Pmi>> Pmi::join() {
  const char* place = std::getenv("PMI_PORT");
  const bool has_descriptor = std::getenv("PMI_FD") != nullptr;
  if (!has_descriptor && place == nullptr) return std::unique_ptr<Pmi>{};
  auto fd = has_descriptor ? environment_number("PMI_FD") : connect_to(place);
  if (!fd) return fail(fd.error());
  auto pmi = with(*fd, true);
  if (!pmi) return pmi;
  auto ok = (*pmi)->greet();
  if (ok) ok = (*pmi)->learn();
  if (!ok) return fail(std::move(ok.error()).within("joining the job"));
  return pmi;
}

Result<std::unique_ptr<Pmi>> Pmi::borrow() {
  if (std::getenv("PMI_FD") == nullptr) return std::unique_ptr<Pmi>{};
  auto fd = environment_number("PMI_FD");
  if (!fd) return fail(fd.error());
  auto pmi = with(*fd, false);
  if (!pmi) return pmi;
  if (auto ok = (*pmi)->learn(); !ok) return fail(std::move(ok.error()).within("asking the launcher"));
  return pmi;
}

Result<std::unique_ptr<Pmi>> Pmi::with(int fd, bool is_ours) {
  std::unique_ptr<Pmi> pmi(new Pmi);
  pmi->fd_ = fd;
  pmi->is_ours_ = is_ours;
  auto rank = environment_number("PMI_RANK");
  if (!rank) return fail(rank.error());
  auto size = environment_number("PMI_SIZE");
  if (!size) return fail(size.error());
  if (*rank >= *size)
    return fail(Errc::invalid, fmt::format("the launcher gave PMI_RANK={} of PMI_SIZE={}", *rank, *size));
  pmi->rank_ = *rank;
  pmi->size_ = *size;
  return pmi;
}

Result<void> Pmi::greet() {
  auto init = ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  if (!init) return fail(init.error());
  return {};
}

Result<void> Pmi::learn() {
  auto maxes = ask("cmd=get_maxes", "maxes");
  if (!maxes) return fail(maxes.error());
  const auto limit = [&](const char* key, std::size_t& out) {
    if (auto it = maxes->find(key); it != maxes->end())
      std::from_chars(it->second.data(), it->second.data() + it->second.size(), out);
  };
  limit("keylen_max", key_limit_);
  limit("vallen_max", value_limit_);
  auto kvs = ask("cmd=get_my_kvsname", "my_kvsname");
  if (!kvs) return fail(kvs.error());
  kvs_ = (*kvs)["kvsname"];
  return {};
}

Pmi::~Pmi() {
  if (fd_ >= 0 && is_ours_) close(fd_);
}

Result<std::string> Pmi::read_line() {
  for (;;) {
    if (const std::size_t newline = buffer_.find('\n'); newline != std::string::npos) {
      std::string line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return line;
    }
    if (buffer_.size() > kLongestLine) return fail(Errc::protocol, "the launcher sent a line without end");
    char chunk[4096];
    const ssize_t got = read(fd_, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("reading from the launcher");
    if (got == 0) return fail(Errc::peer_failed, "the launcher closed its connection");
    buffer_.append(chunk, static_cast<std::size_t>(got));
  }
}

Result<void> Pmi::write_line(const std::string& line) {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t put = send(fd_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno("writing to the launcher");
    done += static_cast<std::size_t>(put);
  }
  return {};
}

// One of the threads that wait reads for all of them: the end of a barrier can come before or behind an answer.
void Pmi::read_for_all(std::unique_lock<std::mutex>& lock) {
  reading_ = true;
  lock.unlock();
  auto line = read_line();
  lock.lock();
  reading_ = false;
  if (!line) {
    broken_ = std::move(line.error());
  } else {
    const bool ends_barrier = barrier_.busy && (line->rfind("cmd=barrier_out", 0) == 0 || !question_.busy);
    Asked& whose = ends_barrier ? barrier_ : question_;
    whose.line = std::move(*line);
    whose.answered = true;
  }
  news_.notify_all();
}

Result<std::string> Pmi::exchange(Asked& mine, const std::string& request) {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return !mine.busy; });
  if (!broken_.what.empty()) return fail(broken_);
  if (auto ok = write_line(fmt::format("{}\n", request)); !ok) return fail(ok.error());
  mine.busy = true;
  mine.answered = false;
  while (!mine.answered && broken_.what.empty()) {
    if (reading_) news_.wait(lock);
    else read_for_all(lock);
  }
  mine.busy = false;
  news_.notify_all();
  if (!mine.answered) return fail(broken_);
  return std::move(mine.line);
}

Result<std::map<std::string, std::string>> Pmi::ask(const std::string& request, const std::string& expected) {
  auto answer = exchange(expected == "barrier_out" ? barrier_ : question_, request);
  if (!answer) return fail(answer.error());
  auto pairs = parse_pmi_line(*answer);
  if (!pairs) return pairs;
  if ((*pairs)["cmd"] != expected)
    return fail(Errc::protocol, fmt::format("asked \"{}\", expected {}, the launcher answered \"{}\"", request,
                                            expected, answer->substr(0, 100)));
  if (auto rc = pairs->find("rc"); rc != pairs->end() && rc->second != "0")
    return fail(Errc::not_found, fmt::format("\"{}\" failed: {}", request, (*pairs)["msg"]));
  return pairs;
}

Result<void> Pmi::check(const std::string& key) const {
  if (key.size() >= key_limit_)
    return fail(Errc::too_large,
                fmt::format("a key of {} bytes: the launcher takes keys below {} bytes", key.size(), key_limit_));
  // A newline would begin a command of its own.
  const bool printable = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~' && c != '='; });
  if (key.empty() || !printable)
    return fail(Errc::invalid, fmt::format("key \"{}\": a key is printable and holds neither blanks nor '='", key));
  return {};
}

Result<void> Pmi::put(const std::string& key, const std::string& value) {
  if (auto ok = check(key); !ok) return ok;
  if (value.size() >= value_limit_)
    return fail(Errc::too_large, fmt::format("key \"{}\" with {} bytes: the launcher takes values below {} bytes", key,
                                             value.size(), value_limit_));
  if (value.find_first_of(std::string_view(" \n\0", 3)) != value.npos)
    return fail(Errc::invalid, fmt::format("the value of key \"{}\" holds a blank, a newline or a zero byte", key));
  auto answer = ask(fmt::format("cmd=put kvsname={} key={} value={}", kvs_, key, value), "put_result");
  if (!answer) return fail(answer.error());
  return {};
}

Result<std::string> Pmi::get(const std::string& key) {
  if (auto ok = check(key); !ok) return fail(ok.error());
  auto answer = ask(fmt::format("cmd=get kvsname={} key={}", kvs_, key), "get_result");
  if (!answer) return fail(answer.error());
  return (*answer)["value"];
}

Result<void> Pmi::barrier() {
  auto answer = ask("cmd=barrier_in", "barrier_out");
  if (!answer) return fail(answer.error());
  return {};
}

Result<void> Pmi::finalize() {
  auto answer = ask("cmd=finalize", "finalize_ack");
  if (!answer) return fail(answer.error());
  return {};
}

}  // namespace ulfm
