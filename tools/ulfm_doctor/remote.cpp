#include "remote.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "agent.hpp"
#include "base/argv.hpp"

extern char** environ;

namespace doctor {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using ulfm::Errc;
using ulfm::fail;

std::string quoted(const std::string& word) {
  std::string text = "'";
  // csh looks for ! in quotes, too
  for (const char c : word) text += c == '\'' || c == '!' ? fmt::format("'\\{}'", c) : std::string(1, c);
  return fmt::format("{}'", text);
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

// Hydra hands the environment on; here goes what changes the answers.
std::string remote_command() {
  std::string command = "/usr/bin/env";  // there may be no PATH
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view one = *variable;
    if (one.starts_with("ULFM_") || one.starts_with("FI_") || one.starts_with("MPIEXEC_PORT_RANGE="))
      command += fmt::format(" {}", quoted(*variable));
  }
  return fmt::format("{} {} --agent", command, quoted(own_path()));
}

std::string last_line(const std::string& text) {
  std::string line = text.substr(0, text.find_last_not_of("\r\n \t") + 1);
  return line.substr(line.find_last_of('\n') + 1);
}

}  // namespace

Remote::Remote(std::string host, bool local, const Launcher& launcher) : host_(std::move(host)), local_(local) {
  std::vector<std::string> command;
  if (local) {
    command = {own_path(), "--agent"};
  } else {
    command = {launcher.program, "-x"};
    if (launcher.is_ssh) command.insert(command.end(), {"-oBatchMode=yes", "-oConnectTimeout=5"});
    command.insert(command.end(), {host_, remote_command()});
  }
  start(command);
}

void Remote::start(const std::vector<std::string>& command) {
  std::array<int, 2> in{}, out{}, errors{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(errors.data(), O_CLOEXEC) != 0) {
    status_ = 126;
    complaints_ = std::strerror(errno);
    return;
  }
  std::vector<char*> argv = ulfm::argv_of(command);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(errors[1], STDERR_FILENO);
    execvp(argv[0], argv.data());
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], std::strerror(errno));
    _exit(127);
  }
  in_ = ulfm::control::Fd(in[1]);
  out_ = ulfm::control::Fd(out[0]);
  errors_ = ulfm::control::Fd(errors[0]);
  close(in[0]);
  close(out[1]);
  close(errors[1]);
}

Remote::~Remote() {
  in_.reset();  // the agent ends
  if (pid_ <= 0) return;
  for (int i = 0; i < 50; ++i) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
    usleep(100000);
  }
  kill(pid_, SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
}

ulfm::Error Remote::ended() {
  std::array<char, 4096> chunk{};
  for (ssize_t got = 0; errors_ && (got = read(errors_.get(), chunk.data(), chunk.size())) > 0;)
    complaints_.append(chunk.data(), static_cast<std::size_t>(got));
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, 0) == pid_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = -1;
  }
  return {Errc::unavailable, last_line(complaints_)};
}

// Of what has come, without the lines of others.
std::optional<json> Remote::next_answer() {
  for (std::size_t end; (end = buffer_.find('\n')) != buffer_.npos;) {
    const std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    const std::size_t mark = line.find(kMark);  // a shell may have printed something without an end of line
    if (mark == line.npos) continue;
    json answer = json::parse(line.substr(mark + kMark.size()), nullptr, false);
    if (answer.is_object()) return answer;
  }
  return std::nullopt;
}

ulfm::Result<json> Remote::ask(const json& question, std::chrono::milliseconds patience) {
  if (!out_ || status_ >= 0) return fail(ended());
  json numbered = question;
  numbered["id"] = ++questions_;
  const std::string line = fmt::format("{}\n", numbered.dump());
  if (write(in_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) return fail(ended());
  const auto until = Clock::now() + patience;
  for (;;) {
    while (auto answer = next_answer()) {
      if (!answer->contains("id")) return fail(Errc::protocol, kOtherVersion);
      if ((*answer)["id"] == questions_) return std::move(*answer);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return fail(Errc::timed_out, fmt::format("no answer in {} s", patience.count() / 1000));
    pollfd set[2] = {{out_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}};
    (void)poll(set, 2, static_cast<int>(left));
    std::array<char, 4096> chunk{};
    if ((set[1].revents & POLLIN) != 0)
      if (const ssize_t got = read(errors_.get(), chunk.data(), chunk.size()); got > 0)
        complaints_.append(chunk.data(), static_cast<std::size_t>(got));
    if (set[0].revents == 0) {
      if ((set[1].revents & (POLLIN | POLLHUP)) == POLLHUP) usleep(1000);  // only the other one can say more
      continue;
    }
    const ssize_t got = read(out_.get(), chunk.data(), chunk.size());
    if (got <= 0) return fail(ended());
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace doctor
