#include "job/pmi.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "environment.hpp"
#include "property.hpp"

using namespace ulfm;

TEST_CASE("a PMI line is pairs", "[pmi]") {
  const auto pairs = parse_pmi_line("cmd=get_result rc=0 value=a b=c d\n");
  REQUIRE(pairs);
  CHECK(pairs->size() == 3);
  CHECK(pairs->at("cmd") == "get_result");
  CHECK(pairs->at("rc") == "0");
  CHECK(pairs->at("value") == "a b=c d");
}

TEST_CASE("PMI lines as Hydra writes them", "[pmi]") {
  CHECK(parse_pmi_line("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")->at("rc") == "0");
  CHECK(parse_pmi_line("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n")->at("vallen_max") == "1024");
  CHECK(parse_pmi_line("cmd=barrier_out")->size() == 1);
  CHECK(parse_pmi_line("  cmd=a   x=  y=2  ")->at("x").empty());
  const auto failed = parse_pmi_line("cmd=get_result rc=-1 msg=key_x_not_found value=unknown");
  REQUIRE(failed);
  CHECK(failed->at("msg") == "key_x_not_found");
  CHECK(failed->at("value") == "unknown");
  CHECK(parse_pmi_line("cmd=x msg=several words here")->at("msg") == "several words here");
}

TEST_CASE("what is no PMI line is refused with its text", "[pmi]") {
  for (const char* line : {"", "\n", "rc=0", "cmd", "cmd=a b", "=x cmd=a", "cmd=a =b"}) {
    INFO(line);
    const auto pairs = parse_pmi_line(line);
    REQUIRE_FALSE(pairs);
    CHECK(pairs.error().code == Errc::protocol);
    CHECK_FALSE(pairs.error().what.empty());
  }
  const auto long_line = parse_pmi_line(std::string(100000, 'x'));
  REQUIRE_FALSE(long_line);
  CHECK(long_line.error().what.size() < 200);
}

TEST_CASE("any bytes are a PMI line or an error", "[pmi]") {
  test::property("random text from the protocol's own alphabet", [](test::Draw& draw) {
    const std::string alphabet = "cmd=valuemsg \n\0x0-";
    std::string line = draw.one_in(2) ? "cmd=" : "";
    while (draw.more()) line += alphabet[draw.below(static_cast<std::uint32_t>(alphabet.size()))];
    if (const auto pairs = parse_pmi_line(line)) test::must(pairs->count("cmd") == 1, "a line without cmd was taken");
  });
}

namespace {

/// A launcher of one process: answers each line by `answer(pairs of the line, the line)`.
class Launcher {
 public:
  explicit Launcher(std::function<std::string(std::map<std::string, std::string>&)> answer) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    environment_.set("PMI_FD", std::to_string(ends[0]));
    environment_.set("PMI_RANK", "0");
    environment_.set("PMI_SIZE", "1");
    thread_ = std::thread([fd = ends[1], answer = std::move(answer)] {
      std::string buffer;
      char chunk[512];
      for (ssize_t got = read(fd, chunk, sizeof chunk); got > 0; got = read(fd, chunk, sizeof chunk)) {
        buffer.append(chunk, static_cast<std::size_t>(got));
        for (std::size_t end = buffer.find('\n'); end != buffer.npos; end = buffer.find('\n')) {
          auto pairs = parse_pmi_line(std::string_view(buffer).substr(0, end));
          buffer.erase(0, end + 1);
          const std::string line = answer(*pairs);
          // Byte by byte: lines may arrive in pieces.
          for (const char c : line) (void)!send(fd, &c, 1, MSG_NOSIGNAL);
          if (line.empty()) shutdown(fd, SHUT_RDWR);
        }
      }
      close(fd);
    });
  }
  ~Launcher() { thread_.join(); }

 private:
  test::Environment environment_;
  std::thread thread_;
};

std::string hydra(std::map<std::string, std::string>& request, std::map<std::string, std::string>& store) {
  const std::string& cmd = request["cmd"];
  if (cmd == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
  if (cmd == "get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=16 vallen_max=32\n";
  if (cmd == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1\n";
  if (cmd == "put") {
    store[request["key"]] = request["value"];
    return "cmd=put_result rc=0 msg=success\n";
  }
  if (cmd == "get")
    return store.count(request["key"]) != 0 ? "cmd=get_result rc=0 msg=success value=" + store[request["key"]] + "\n"
                                            : "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
  if (cmd == "barrier_in") return "cmd=barrier_out\n";
  return "cmd=finalize_ack\n";
}

}  // namespace

TEST_CASE("a process joins, exchanges keys and leaves", "[pmi]") {
  std::map<std::string, std::string> store;
  Launcher launcher([&](auto& request) { return hydra(request, store); });
  auto joined = Pmi::join();
  REQUIRE(joined);
  Pmi& pmi = **joined;
  CHECK(pmi.rank() == 0);
  CHECK(pmi.size() == 1);
  CHECK(pmi.job_name() == "kvs_1");
  CHECK(pmi.put("a", "value-1"));
  CHECK(pmi.barrier());
  CHECK(pmi.get("a").value() == "value-1");
  const auto missing = pmi.get("nothing");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Errc::not_found);
  CHECK(pmi.put("key-of-16-bytes!", "v").error().code == Errc::too_large);
  CHECK(pmi.put("k", std::string(32, 'v')).error().code == Errc::too_large);
  for (const char* key : {"", "a b", "a=b", "a\nb"}) CHECK(pmi.put(key, "v").error().code == Errc::invalid);
  CHECK(pmi.put("k", "a b").error().code == Errc::invalid);
  CHECK(pmi.finalize());
  joined->reset();
}

TEST_CASE("a key for get is checked like one for put", "[pmi]") {
  std::map<std::string, std::string> store;
  std::size_t requests = 0;
  Launcher launcher([&](auto& request) {
    ++requests;
    return hydra(request, store);
  });
  auto joined = Pmi::join();
  REQUIRE(joined);
  Pmi& pmi = **joined;
  const std::size_t before = requests;
  for (const char* key : {"", "a b", "a=b", "a\nb", "a\ncmd=put kvsname=kvs_1 key=x value=y"})
    CHECK_FALSE(pmi.get(key));
  CHECK(pmi.get("a\nb").error().code == Errc::invalid);
  CHECK(pmi.get(std::string(16, 'k')).error().code == Errc::too_large);
  CHECK(requests == before);
  CHECK(pmi.finalize());
  joined->reset();
}

TEST_CASE("threads that ask at once get their own answers", "[pmi]") {
  std::map<std::string, std::string> store;
  Launcher launcher([&](auto& request) { return hydra(request, store); });
  auto joined = Pmi::join();
  REQUIRE(joined);
  Pmi& pmi = **joined;
  for (int i = 0; i < 4; ++i) REQUIRE(pmi.put("k" + std::to_string(i), "v" + std::to_string(i)));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::string n = std::to_string(t);
      for (int i = 0; i < 100; ++i) wrong += pmi.get("k" + n).value_or("") != "v" + n;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pmi.finalize());
  joined->reset();
}

TEST_CASE("a question does not wait for a barrier of another thread", "[pmi]") {
  std::map<std::string, std::string> store{{"a", "1"}};
  std::atomic<bool> entered{false};
  // Everybody has come to the barrier when the question is asked, as if its answer made the last one come.
  Launcher launcher([&](auto& request) -> std::string {
    if (request["cmd"] == "barrier_in") {
      entered = true;
      return " ";  // a blank in front of the next line
    }
    const std::string answer = hydra(request, store);
    return request["cmd"] == "get" ? answer + "cmd=barrier_out\n" : answer;
  });
  auto joined = Pmi::join();
  REQUIRE(joined);
  Pmi& pmi = **joined;
  bool passed = false;  // Catch's assertions are for one thread
  std::thread other([&] { passed = pmi.barrier().has_value(); });
  while (!entered) std::this_thread::yield();
  CHECK(pmi.get("a").value_or("") == "1");
  other.join();
  CHECK(passed);
  CHECK(pmi.finalize());
  joined->reset();
}

TEST_CASE("a launcher that answers nonsense is an error with its answer", "[pmi]") {
  const char* answer = GENERATE("cmd=something_else rc=0\n", "nonsense\n", "\n", "");
  Launcher launcher([&](auto&) { return answer; });
  const auto joined = Pmi::join();
  REQUIRE_FALSE(joined);
  CHECK((joined.error().code == Errc::protocol || joined.error().code == Errc::peer_failed));
  CHECK(joined.error().what.find("joining the job") != std::string::npos);
}

TEST_CASE("a launcher's environment that is no number is refused", "[pmi]") {
  test::Environment environment;
  CHECK(Pmi::join().value() == nullptr);  // nobody launched us
  environment.set("PMI_FD", "seven");
  CHECK(Pmi::join().error().what.find("PMI_FD=\"seven\"") != std::string::npos);
  environment.unset("PMI_FD");
  environment.set("PMI_PORT", "no colon");
  CHECK(Pmi::join().error().code == Errc::invalid);
}
