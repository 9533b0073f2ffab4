#include "server.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iterator>

#include <fmt/core.h>

#include "job/pmi.hpp"

namespace pmi {
namespace {

using Pairs = std::map<std::string, std::string>;

constexpr std::size_t kLongestLine = 64 * 1024;

std::string value_of(const Pairs& pairs, const char* key) {
  const auto found = pairs.find(key);
  return found == pairs.end() ? "" : found->second;
}

}  // namespace

void Server::say(const std::string& line) {
  std::lock_guard lock(writing_);  // the end of a barrier comes from another thread
  const std::string text = fmt::format("{}\n", line);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return;  // the program has gone; serve() sees it
    done += static_cast<std::size_t>(put);
  }
}

void Server::explain(const char* what, const char* why) {
  if (explained_.insert(what).second)
    std::fprintf(stderr, "ulfm_pmi: rank %d: %s: %s; ulfmrun can\n", launcher_.rank(), what, why);
}

bool Server::hear(std::string& said) const {
  pollfd sources[] = {{fd_, POLLIN, 0}, {program_, POLLIN, 0}};
  if (poll(sources, std::size(sources), -1) < 0) return errno == EINTR;
  char chunk[4096];
  const ssize_t got = recv(fd_, chunk, sizeof chunk, MSG_DONTWAIT);  // what it said before it ended is there
  if (got < 0) return errno == EINTR || (errno == EAGAIN && sources[1].revents == 0);
  said.append(chunk, static_cast<std::size_t>(got));
  return got > 0;
}

void Server::serve() {
  std::string buffer, spawn;
  while (hear(buffer) && buffer.size() <= kLongestLine) {
    for (std::size_t end; (end = buffer.find('\n')) != buffer.npos;) {
      const std::string line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      // A spawn is many lines, the last of which is "endcmd".
      if (line.starts_with("mcmd=") || !spawn.empty()) {
        spawn = line == "endcmd" ? "" : "open";
        if (!spawn.empty()) continue;
        explain("MPI_Comm_spawn", "this launcher starts no further processes");
        say("cmd=spawn_result rc=-1 msg=this_launcher_starts_no_further_processes;_use_ulfmrun");
        continue;
      }
      auto asked = ulfm::parse_pmi_line(line);
      const std::string answered = asked ? answer(*asked) : "cmd=unknown rc=-1 msg=no_command";
      if (!answered.empty()) say(answered);
    }
  }
}

std::string Server::get(const std::string& key) {
  if (key == "PMI_dead_processes") return "cmd=get_result rc=0 msg=success value=";  // Hydra's list: here there is none
  if (const auto own = own_.find(key); own != own_.end())
    return fmt::format("cmd=get_result rc=0 msg=success value={}", own->second);
  if (key == "PMI_process_mapping" && !launcher_.mapping().empty())
    return fmt::format("cmd=get_result rc=0 msg=success value={}", launcher_.mapping());
  const auto value = launcher_.get(key);
  return value ? fmt::format("cmd=get_result rc=0 msg=success value={}", *value)
               : "cmd=get_result rc=-1 msg=key_not_found value=unknown";
}

std::string Server::answer(const Pairs& asked) {
  const std::string command = value_of(asked, "cmd");
  if (command == "init") {
    joined_ = true;
    return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
  }
  if (command == "get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024";
  if (command == "get_appnum") return fmt::format("cmd=appnum appnum={}", launcher_.program_number());
  if (command == "get_my_kvsname") return fmt::format("cmd=my_kvsname kvsname={}", launcher_.job_name());
  if (command == "get_universe_size") return fmt::format("cmd=universe_size size={}", launcher_.size());
  if (command == "get") return get(value_of(asked, "key"));
  if (command == "put") {
    const std::string key = value_of(asked, "key"), value = value_of(asked, "value");
    if (auto ok = launcher_.put(key, value); !ok) return fmt::format("cmd=put_result rc=-1 msg={}", ok.error().what);
    own_[key] = value;
    return "cmd=put_result rc=0 msg=success";
  }
  if (command == "barrier_in") {
    launcher_.fence(
        [this](bool good) { say(good ? "cmd=barrier_out rc=0" : "cmd=barrier_out rc=-1 msg=fence_failed"); });
    return "";
  }
  if (command == "finalize") {
    finalized_ = true;
    return "cmd=finalize_ack rc=0";
  }
  if (command == "abort") {
    int code = 1;
    const std::string text = value_of(asked, "exitcode");
    std::from_chars(text.data(), text.data() + text.size(), code);
    aborted_ = true;
    if ((code & 0xff) == 0 && code != 0) code = 1;  // a status of 0 would be a success
    launcher_.abort(code, fmt::format("rank {} called MPI_Abort", launcher_.rank()));
    return "";
  }
  for (const char* name : {"publish", "lookup", "unpublish"})
    if (command.starts_with(name)) {
      explain("names of ports (MPI_Publish_name and its kind)", "this launcher keeps none");
      return fmt::format("cmd={}_result rc=-1 msg=this_launcher_has_no_names", name);
    }
  return "cmd=unknown rc=-1 msg=no_such_command";
}

}  // namespace pmi
