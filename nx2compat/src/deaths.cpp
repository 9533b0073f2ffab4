#include "deaths.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "node.hpp"

namespace nx2 {
namespace {

struct Death {
  int signal;
  const char* words;
};
constexpr Death kDeaths[] = {{SIGABRT, "Aborted"},
                             {SIGSEGV, "Segmentation fault"},
                             {SIGBUS, "Bus error"},
                             {SIGFPE, "Arithmetic exception"},
                             {SIGILL, "Illegal instruction"}};

pid_t g_process = 0;

/// A line that a signal handler may put together.
class Line {
 public:
  Line& operator<<(const char* text) noexcept {
    for (; *text != '\0' && length_ < sizeof text_; ++text) text_[length_++] = *text;
    return *this;
  }
  Line& operator<<(int number) noexcept {
    char digits[12];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    unsigned left = number < 0 ? 0u - static_cast<unsigned>(number) : static_cast<unsigned>(number);
    do *--first = static_cast<char>('0' + left % 10);
    while ((left /= 10) != 0);
    if (number < 0) *--first = '-';
    return *this << static_cast<const char*>(first);
  }
  void write_out() const noexcept { (void)!write(STDERR_FILENO, text_, length_); }

 private:
  char text_[160];
  std::size_t length_ = 0;
};

// The default action is back: what fails in here ends the process.
void on_death(int number) {
  const Node* node = Node::if_started();
  if (node == nullptr || getpid() != g_process) {
    raise(number);
    return;
  }
  const char* words = "";
  for (const Death& death : kDeaths)
    if (death.signal == number) words = death.words;
  Line line;
  line << "(node " << node->self() << ", pid " << (node->engine() ? node->engine()->ptype : 0) << ") " << words << "\n";
  line.write_out();
  end_all(128 + number);
}

}  // namespace

void report_deaths() noexcept {
  rlimit cores{};
  if (std::getenv("PMI_FD") == nullptr || getrlimit(RLIMIT_CORE, &cores) != 0 || cores.rlim_cur != 0) return;
  g_process = getpid();
  for (const Death& death : kDeaths) {
    struct sigaction before {};
    struct sigaction action {};
    action.sa_handler = on_death;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    if (sigaction(death.signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(death.signal, &action, nullptr);
  }
}

}  // namespace nx2
