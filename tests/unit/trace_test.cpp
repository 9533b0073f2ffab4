// Traces: what is noted at a job's record, or kept by the process, and its text.
#include "base/trace.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/job_record.hpp"
#include "base/trace_format.hpp"
#include "child.hpp"
#include "environment.hpp"

using namespace ulfm;

namespace {

record::RecordedEvent event(record::RecordedKind kind, const char* name = "first") {
  record::RecordedEvent e;
  e.begin = 1'234'567;
  e.duration = 2'050;
  e.bytes = 40;
  e.peer = 77;
  e.own_port = 3, e.peer_port = 5;
  e.kind = kind;
  std::strncpy(e.name, name, sizeof e.name - 1);
  std::strncpy(e.over, "direct", sizeof e.over - 1);
  return e;
}

trace::Event sent(std::uint64_t bytes) {
  return {"first", trace::Channel::data, trace::Direction::sent, "direct", 77, bytes, 3, 5};
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// A folder of this test alone.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/ulfm-trace-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char* file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

/// A process has one trace and one place in a record.
void in_a_process(const std::function<void()>& body) {
  test::Child child([&](test::Pipe& parent) {
    body();
    parent.send("done");
  });
  REQUIRE(child.pipe().receive() == "done");
  CHECK(child.wait() == 0);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("an event is a slice on the track of its channel, in microseconds", "[trace]") {
  record::RecordedEvent e = event(record::RecordedKind::sent);
  const std::string data = trace::trace_event(2, e, {});
  CHECK(says(data, "\"name\":\"first sent\",\"cat\":\"data\",\"ph\":\"X\",\"ts\":1234.567,\"pid\":2,\"tid\":1"));
  CHECK(says(data, "\"bytes\":40,\"peer\":77,\"channel\":\"data\",\"over\":\"direct\",\"port\":3,\"peer_port\":5}}"));
  CHECK_FALSE(says(data, "peer_rank"));
  CHECK_FALSE(says(data, "\"id\""));
  e.control = true;
  const std::string control = trace::trace_event(2, e, {});
  CHECK(says(control, "\"cat\":\"control\""));
  CHECK(says(control, "\"tid\":0"));
  CHECK_FALSE(says(control, "peer_port"));
  const std::string wait = trace::trace_event(2, event(record::RecordedKind::waited), {});
  CHECK(wait ==
        ",\n{\"name\":\"wait\",\"cat\":\"wait\",\"ph\":\"X\",\"ts\":1234.567,\"pid\":2,\"tid\":2,\"dur\":2.050}");
}

TEST_CASE("an arrow joins the send of a frame with its arrival", "[trace]") {
  const std::string from = trace::trace_event(0, event(record::RecordedKind::sent), {1, 9});
  const std::string to = trace::trace_event(1, event(record::RecordedKind::arrived), {0, 9});
  CHECK(says(from, "\"peer_rank\":1"));
  CHECK(says(from, "\"ph\":\"s\",\"id\":9,"));
  CHECK(says(to, "\"first arrived\""));
  CHECK(says(to, "\"ph\":\"f\",\"bp\":\"e\",\"id\":9,"));
}

TEST_CASE("names out of memory that others may write do no harm to the text", "[trace]") {
  record::RecordedEvent e = event(record::RecordedKind::sent);
  std::memset(e.name, 'x', sizeof e.name);  // no end
  e.name[0] = '"', e.name[1] = '\\', e.name[2] = '\n', e.name[3] = '\x80';
  CHECK(says(trace::trace_event(0, e, {}), "\"name\":\"????xxxxxxxxxxxxxx sent\""));
  CHECK(says(trace::trace_process({4, "rank 4 a\"b", 99, 7}), "\"name\":\"rank 4 a?b (process 99)\""));
  CHECK(says(trace::trace_process({4, "rank 4", 99, 7}), "\"pid\":4,\"args\":{\"sort_index\":7}"));
  CHECK(says(trace::trace_head(5, 2), "\"events\":5,\"lost\":2"));
}

TEST_CASE("a job's record has a place for each process, with its events and counters", "[trace]") {
  test::Environment environment;
  CHECK(record::JobRecord::join().error().code == Errc::not_found);
  const bool with_events = GENERATE(false, true);
  auto made = record::JobRecord::create(2, with_events);
  REQUIRE(made);
  CHECK(made->place(0) == nullptr);
  environment.set("ULFM_RECORD", made->address());
  auto joined = record::JobRecord::join();
  REQUIRE(joined);
  CHECK(joined->places() == 2);
  CHECK(joined->has_events() == with_events);

  record::Place* const place = joined->take(5);
  REQUIRE(place != nullptr);
  record::JobRecord::put_text(*place, "counters ");
  record::JobRecord::put_text(*place, "of rank 5");
  if (with_events) {
    for (int i = 0; i < 3; ++i)
      CHECK(joined->note(*place, event(record::RecordedKind::sent, i == 2 ? "more" : "first")));
  }
  const record::Place* const seen = made->place(0);
  REQUIRE(seen != nullptr);
  CHECK(seen->rank == 5);
  CHECK(seen->pid == getpid());
  CHECK(std::string(seen->counters.data(), seen->text) == "counters of rank 5");
  if (with_events) {
    CHECK(seen->events == 3);
    CHECK(made->event(*seen, 2).name == std::string("more"));
  }
  CHECK(joined->take(6) != nullptr);
  CHECK(joined->take(7) == nullptr);
  CHECK(made->place(1) != nullptr);
  CHECK(made->place(2) == nullptr);
}

TEST_CASE("counters fill the room of a place and no more", "[trace]") {
  auto made = record::JobRecord::create(1, false);
  REQUIRE(made);
  record::Place* const place = made->take(0);
  REQUIRE(place != nullptr);
  record::JobRecord::put_text(*place, std::string(record::kMostText - 3, 'a'));
  record::JobRecord::put_text(*place, "bcdef");
  CHECK(place->text == record::kMostText);
  CHECK(std::string(place->counters.data() + record::kMostText - 4, 4) == "abcd");
  record::JobRecord::put_text(*place, "more");
  CHECK(place->text == record::kMostText);
}

TEST_CASE("what ULFM_RECORD says is checked", "[trace]") {
  test::Environment environment;
  for (const char* nonsense : {"", "x", "1", "1:", "-1:-1"}) {
    environment.set("ULFM_RECORD", nonsense);
    CHECK_FALSE(record::JobRecord::join());
  }
  auto other = Segment::create("another", 1 << 20);
  REQUIRE(other);
  REQUIRE(other->commit(0, 1 << 16));
  environment.set("ULFM_RECORD", std::to_string(getpid()) + ":" + std::to_string(other->fd()));
  CHECK(record::JobRecord::join().error().what == "another process has that number");
}

TEST_CASE("counters go to the record of the job, and to a file where there is none", "[trace]") {
  test::Environment environment;
  Folder folder;
  const std::string file = folder / "stats";
  SECTION("a record") {
    auto made = record::JobRecord::create(1, false);
    REQUIRE(made);
    environment.set("ULFM_RECORD", made->address());
    in_a_process([&] {
      record::leave_counters("", 3, "nobody wants it");
      record::leave_counters(file, 3, "text");
      record::leave_counters(file, 3, " and more");
    });
    const record::Place* const place = made->place(0);
    REQUIRE(place != nullptr);
    CHECK(place->rank == 3);
    CHECK(std::string(place->counters.data(), place->text) == "text and more");
    CHECK_FALSE(std::filesystem::exists(file));
  }
  SECTION("a file") {
    in_a_process([&] {
      record::leave_counters(file, 0, "one\n");
      record::leave_counters(file, 1, "two\n");
    });
    CHECK(text_of(file) == "one\ntwo\n");
  }
}

TEST_CASE("a process that nobody collects for keeps its events, in a file of its own", "[trace]") {
  test::Environment environment;
  Folder folder;
  const std::string file = folder / "trace";
  std::ofstream(file + ".4") << "of an earlier run";
  in_a_process([&] {
    trace::note(sent(1));  // nothing: there is no trace yet
    const bool was_on = trace::on();
    const bool begun = trace::begin(file, 4) && trace::begin(file, 5);  // the second does nothing
    trace::note(sent(40));
    trace::Event arrived = sent(41);
    arrived.way = trace::Direction::arrived;
    trace::note(arrived);
    trace::note_wait(std::chrono::steady_clock::now() - std::chrono::milliseconds(1));
    std::ofstream(folder / "said") << (!was_on && begun && trace::on() ? trace::as_json() : "not begun");
  });
  CHECK(text_of(file + ".4").empty());  // written when a process ends by exit()
  CHECK_FALSE(std::filesystem::exists(file + ".5"));
  const std::string text = text_of(folder / "said");
  INFO(text);
  CHECK(says(text, "\"events\":3,\"lost\":0"));
  CHECK(says(text, "\"name\":\"rank 4 "));
  CHECK(count(text, "\"first sent\"") == 1);
  CHECK(count(text, "\"first arrived\"") == 1);
  CHECK(count(text, "\"name\":\"wait\"") == 1);
  CHECK(says(text, std::string(trace::kTraceEnd)));
}

TEST_CASE("a trace is written through no link, and into no file of others", "[trace]") {
  test::Environment environment;
  Folder folder;
  std::ofstream(folder / "precious") << "text";
  std::filesystem::create_symlink(folder / "precious", folder / "trace.0");
  in_a_process([&] {
    const auto refused = trace::begin(folder / "trace", 0);
    std::ofstream(folder / "said") << (refused || trace::on() ? "begun" : refused.error().what);
  });
  CHECK(says(text_of(folder / "said"), "making the trace"));
  CHECK(text_of(folder / "precious") == "text");
}

TEST_CASE("with a record of the job events are noted there", "[trace]") {
  test::Environment environment;
  Folder folder;
  auto made = record::JobRecord::create(1, true);
  REQUIRE(made);
  environment.set("ULFM_RECORD", made->address());
  in_a_process([&] {
    if (trace::begin(folder / "trace", 0)) trace::note(sent(40));
  });
  const record::Place* const place = made->place(0);
  REQUIRE(place != nullptr);
  REQUIRE(place->events == 1);
  const record::RecordedEvent& noted = made->event(*place, 0);
  CHECK(noted.kind == record::RecordedKind::sent);
  CHECK(noted.bytes == 40);
  CHECK(noted.own_port == 3);
  CHECK(noted.over == std::string("direct"));
  CHECK_FALSE(std::filesystem::exists(folder / "trace.0"));
}
