// A forked child that talks with its parent over a socket, line by line, and never outlives it.
#pragma once

#include <catch2/catch.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#ifdef ULFM_COVERAGE
extern "C" void __gcov_dump();  // NOLINT(bugprone-reserved-identifier): libgcov's name
#endif

namespace test {

class Pipe {
 public:
  explicit Pipe(int fd) : fd_(fd) {}
  Pipe(const Pipe&) = delete;
  ~Pipe() { close(fd_); }
  void send(const std::string& line) {
    const std::string text = line + "\n";
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t put = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (put <= 0) return;
      done += static_cast<std::size_t>(put);
    }
  }
  /// The next line; "" when the other side has gone or says nothing for two minutes.
  std::string receive() {
    std::string line;
    for (char c = 0;;) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, 120000) <= 0 || ::read(fd_, &c, 1) <= 0) return line;
      if (c == '\n') return line;
      line += c;
    }
  }

 private:
  int fd_;
};

class Child {
 public:
  /// Runs `body(pipe to the parent)` in a new process, which ends with status 0 behind it.
  explicit Child(const std::function<void(Pipe&)>& body) : pipe_(start(body, pid_)) {}
  Child(const Child&) = delete;
  ~Child() {
    let_dump();
    kill();
  }

  pid_t pid() const { return pid_; }
  Pipe& pipe() { return pipe_; }
  /// kill -9, and its end seen.
  void kill() {
    if (!waited_) ::kill(pid_, SIGKILL);
    wait();
  }
  /// Its exit status; 128 + signal.
  int wait() {
    if (!waited_) {
      int status = 0;
      while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
      note_end(status);
    }
    return status_;
  }
  /// kill -9 and nothing more: it stays a zombie until wait().
  void strike() { ::kill(pid_, SIGKILL); }

 private:
  void note_end(int status) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    waited_ = true;
  }
  // One that has said its last word may be writing its counts.
  void let_dump() {
#ifdef ULFM_COVERAGE
    for (int i = 0; i < 200 && !waited_; ++i) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) return note_end(status);
      usleep(10000);
    }
#endif
  }
  static int start(const std::function<void(Pipe&)>& body, pid_t& pid) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      {
        Pipe parent(ends[1]);
        body(parent);
      }
#ifdef ULFM_COVERAGE
      __gcov_dump();  // _exit() writes no counts
#endif
      _exit(0);
    }
    close(ends[1]);
    return ends[0];
  }

  pid_t pid_ = 0;
  Pipe pipe_;
  bool waited_ = false;
  int status_ = 0;
};

}  // namespace test
