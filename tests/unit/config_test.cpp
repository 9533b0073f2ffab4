#include "base/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "environment.hpp"
#include "property.hpp"

using namespace ulfm;

namespace {

const ConfigRow& row(const std::string& name) {
  for (const ConfigRow& r : config_rows())
    if (name == r.name) return r;
  FAIL("no row " << name);
  std::abort();
}

class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    char name[] = "/tmp/ulfm-config-test-XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    close(fd);
    path = name;
    std::ofstream(path) << text;
  }
  ~ConfigFile() { unlink(path.c_str()); }
  std::string path;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every configuration row is complete and its default is acceptable", "[config]") {
  std::set<std::string> names;
  for (const ConfigRow& r : config_rows()) {
    INFO(r.name);
    CHECK(names.insert(r.name).second);
    CHECK(std::string(r.help).size() > 10);
    CHECK(r.min <= r.max);
    CHECK(parse_value(r, r.default_value).has_value());
    for (const char* c = r.name; *c != '\0'; ++c) CHECK((std::isupper(*c) || *c == '_'));
  }
}

TEST_CASE("numbers take units and keep to their range", "[config]") {
  const ConfigRow& bytes = row("LANE_BYTES");
  CHECK(parse_value(bytes, "4096") == 4096);
  CHECK(parse_value(bytes, "256K") == 256 * 1024);
  CHECK(parse_value(bytes, "256kb") == 256 * 1024);
  CHECK(parse_value(bytes, "1MiB") == 1 << 20);
  CHECK(parse_value(bytes, "8192B") == 8192);
  const ConfigRow& time = row("PARK_AFTER");
  CHECK(parse_value(time, "5") == 5);
  CHECK(parse_value(time, "5ms") == 5);
  CHECK(parse_value(time, "2s") == 2000);
  for (const char* bad : {"", " ", "x", "-1", "4095", "1T", "4096 K", "1e6", "0x1000", "99999999999999999999", "1.5M",
                          "9223372036854775807K", "+8192"}) {
    INFO(bad);
    const auto value = parse_value(bytes, bad);
    REQUIRE_FALSE(value);
    CHECK(value.error().code == Errc::invalid);
    CHECK(has(value.error().what, "ULFM_LANE_BYTES="));
    CHECK(has(value.error().what, "from 4096 to"));
  }
  CHECK_FALSE(parse_value(row("DEPTH"), "4K"));
  CHECK_FALSE(parse_value(time, "5K"));
}

TEST_CASE("booleans take the usual words", "[config]") {
  for (const char* yes : {"1", "yes", "On", "TRUE"}) CHECK(parse_value(row("STATS"), yes) == 1);
  for (const char* no : {"0", "no", "off", "False", ""}) CHECK(parse_value(row("STATS"), no) == 0);
  CHECK_FALSE(parse_value(row("STATS"), "2"));
}

TEST_CASE("a choice is one of its words", "[config]") {
  const ConfigRow colour{"COLOUR", RowType::choice, "", "red", 0, 0, "red|green|blue", "for this test"};
  CHECK(parse_value(colour, "red") == 0);
  CHECK(parse_value(colour, "Blue") == 2);
  const auto bad = parse_value(colour, "pink");
  REQUIRE_FALSE(bad);
  CHECK(has(bad.error().what, "red|green|blue"));
}

TEST_CASE("a long bad value does not make a long message", "[config]") {
  const auto value = parse_value(row("DEPTH"), std::string(1000000, 'x'));
  REQUIRE_FALSE(value);
  CHECK(value.error().what.size() < 300);
}

TEST_CASE("any text for any row is a number in range or an error", "[config]") {
  test::property("texts made of numbers, units and noise", [](test::Draw& draw) {
    const std::string alphabet = "0123456789-+.kKmMgGsb xX\t";
    std::string text;
    for (std::uint32_t n = draw.below(12); n > 0; --n)
      text += alphabet[draw.below(static_cast<std::uint32_t>(alphabet.size()))];
    for (const ConfigRow& r : config_rows()) {
      const auto value = parse_value(r, text);
      const bool unset = text.empty() && r.default_value[0] == '\0';
      if (value && r.type != RowType::text && !unset)
        test::must(*value >= r.min && *value <= r.max, std::string(r.name) + "=" + text);
    }
  });
}

TEST_CASE("the nearest name is found, a far one is not", "[config]") {
  const std::vector<std::string> names{"TRANSPORT", "TOPOLOGY", "DEPTH", "LANES"};
  CHECK(nearest("TRANSPROT", names) == "TRANSPORT");
  CHECK(nearest("transport", names) == "TRANSPORT");
  CHECK(nearest("DEPHT", names) == "DEPTH");
  CHECK(nearest("LANE", names) == "LANES");
  CHECK(nearest("SOMETHING_ELSE", names).empty());
  CHECK(nearest("", names).empty());
}

TEST_CASE("without settings there are the defaults", "[config]") {
  test::Environment environment;
  const auto config = Config::load();
  REQUIRE(config);
  CHECK(config->number("DEPTH") == 32);
  CHECK(config->text("TRANSPORT") == "auto");
  CHECK_FALSE(config->flag("STATS"));
  CHECK(config->number("SPIN") == -1);
  CHECK(config->origin("DEPTH") == Origin::default_value);
  CHECK(config->warnings().empty());
}

TEST_CASE("the environment is read, and unknown names are warnings with the nearest one", "[config]") {
  test::Environment environment;
  environment.set("ULFM_DEPTH", "8");
  environment.set("ULFM_TRANSPROT", "direct");
  environment.set("ULFM_", "x");
  environment.set("ULFMX", "x");
  const auto config = Config::load();
  REQUIRE(config);
  CHECK(config->number("DEPTH") == 8);
  CHECK(config->origin("DEPTH") == Origin::environment);
  CHECK(config->where("DEPTH") == "environment");
  REQUIRE(config->warnings().size() == 2);
  CHECK(std::any_of(config->warnings().begin(), config->warnings().end(), [](const std::string& w) {
    return has(w, "TRANSPROT") && has(w, "did you mean ULFM_TRANSPORT?");
  }));
}

TEST_CASE("a bad value names variable, value and what is accepted", "[config]") {
  test::Environment environment;
  environment.set("ULFM_DEPTH", "many");
  const auto config = Config::load();
  REQUIRE_FALSE(config);
  CHECK(config.error().code == Errc::invalid);
  CHECK(has(config.error().what,
            "environment: ULFM_DEPTH=\"many\": needs a whole number from 1 to " + std::to_string(row("DEPTH").max)));
}

TEST_CASE("the file is weaker than the environment, the command line stronger", "[config]") {
  test::Environment environment;
  ConfigFile file("depth = 16\nslot = \"4K\"\nstats = true\n# a comment\nlanes = 3\n");
  environment.set("ULFM_CONFIG", file.path);
  environment.set("ULFM_DEPTH", "8");
  auto config = Config::load();
  REQUIRE(config);
  CHECK(config->number("DEPTH") == 8);
  CHECK(config->number("SLOT") == 4096);
  CHECK(config->origin("SLOT") == Origin::file);
  CHECK(config->where("SLOT") == file.path + ":2");
  CHECK(config->flag("STATS"));
  CHECK(config->number("LANES") == 3);

  REQUIRE(config->set("DEPTH", "32", Origin::command_line, "--depth"));
  CHECK(config->number("DEPTH") == 32);
  REQUIRE(config->set("DEPTH", "4", Origin::environment, "environment"));
  CHECK(config->number("DEPTH") == 32);
  CHECK(config->where("DEPTH") == "--depth");
  REQUIRE(config->set("depth", "64", Origin::command_line, "--depth"));
  CHECK(config->number("DEPTH") == 64);
  CHECK_FALSE(config->set("DEPTH", "x", Origin::command_line, "--depth"));
  CHECK(config->number("DEPTH") == 64);
}

TEST_CASE("errors of a file name file and line", "[config]") {
  test::Environment environment;
  const auto load = [&](const std::string& text) {
    ConfigFile file(text);
    environment.set("ULFM_CONFIG", file.path);
    auto config = Config::load();
    REQUIRE_FALSE(config);
    CHECK(has(config.error().what, file.path));
    return config.error().what;
  };
  CHECK(has(load("depth = 8\nslot = \n"), ":2"));
  CHECK(has(load("\n\ndepth = \"many\"\n"), ":3"));
  const std::string flat =
      ":1: needs key = value, found an array or a table; a setting is a string, a number or a boolean";
  CHECK(has(load("depth = [1, 2]\n"), flat));
  CHECK(has(load("depth = {a = 1}\n"), flat));
  CHECK(has(load("depth = [}"), flat));
  const std::string date = ":1: needs key = value, found a dash or a colon inside a value";
  CHECK(has(load("depth = 1117-12-j2 2 .Ej=4\n"), date));
  CHECK(has(load("depth = 11ab-cd-ef 1 0\n"), date));
  CHECK(has(load("depth = 07:32\n"), date));
  CHECK(has(load("depth = 11\x7f\n"), ":1: needs key = value, found a control character"));
  CHECK(has(load("depth = 1.5e-3 # 07:32\n"), "depth needs a string, number or boolean"));
  CHECK(has(load("depth = 1.5\n"), "depth needs a string, number or boolean"));
  CHECK(has(load("depth = 8\ndepth = 9\n"), ":2"));
}

// toml++ 3.3 must not see them elsewhere.
TEST_CASE("letters beyond ASCII stand in quotes and comments of a file", "[config]") {
  test::Environment environment;
  const auto load = [&](const std::string& text) {
    ConfigFile file(text);
    environment.set("ULFM_CONFIG", file.path);
    auto config = Config::load();
    return config ? config->text("TOPOLOGY") : config.error().what.substr(file.path.size());
  };
  CHECK(load("\xef\xbb\xbftopology = \"\xc3\xa4.toml\"  # \xd0\xb9 ' \"\n") == "\xc3\xa4.toml");
  CHECK(load("topology = '\xc3\xa4\\'  # \xc3\xa4\ndepth = 8\n") == "\xc3\xa4\\");
  CHECK(load("topology = '''\n\xc3\xa4''''' # \xc3\xa4") == "\xc3\xa4''");
  CHECK(load("topology = \"\"\"\\\"\\\n  x\xc3\xa4\n\"\"\"") == "\"x\xc3\xa4\n");
  const std::string refused = "needs key = value, found a character that is not ASCII outside quotes and comments";
  CHECK(load("d\xc3\xa4pth = 8\n") == ":1: " + refused);
  CHECK(load("depth = 8 \xc3\xa4\n") == ":1: " + refused);
  CHECK(load("\n\xd0\xb9_depth = 8\n") == ":2: " + refused);
  CHECK(load("topology = \"\"\"\n\"\"\"\" \xc3\xa4") == ":2: " + refused);
  CHECK(load("topology = \"\"\"\\\n  \xc3\xa4\"\"\"") == ":2: " + refused);
  CHECK(load("topology = \"\"\"\\\n\\ \n \xc3\xa4\"\"\"") == ":3: " + refused);
  CHECK(load("topology = \"\"\"x\\\n\"\"\" # \xc3\xa4") == "x");
  // In what toml++ goes through for its message, quotes are none.
  const std::string misplaced =
      "needs key = value, found a character that is not ASCII in quotes that do not begin a key or a value";
  CHECK(load("depth = 0?b'\xc3\xa4'\n") == ":1: " + misplaced);
  CHECK(load("\ndepth = 0='\xc3\xa4'\n") == ":2: " + misplaced);
  CHECK(load("\"topology\" =\t'\xc3\xa4'\n") == "\xc3\xa4");
}

TEST_CASE("an unknown key of a file is a warning, a missing file an error", "[config]") {
  test::Environment environment;
  {
    ConfigFile file("dpeth = 8\n");
    environment.set("ULFM_CONFIG", file.path);
    const auto config = Config::load();
    REQUIRE(config);
    REQUIRE(config->warnings().size() == 1);
    CHECK(has(config->warnings()[0], file.path + ":1: no setting is called dpeth; did you mean ULFM_DEPTH?"));
  }
  environment.set("ULFM_CONFIG", "/nowhere/ulfm.toml");
  const auto config = Config::load();
  REQUIRE_FALSE(config);
  CHECK(config.error().code == Errc::not_found);
  CHECK(has(config.error().what, "/nowhere/ulfm.toml"));
}

TEST_CASE("an environment block is read as it is", "[config]") {
  test::Environment environment;
  auto config = Config::load();
  REQUIRE(config);
  const char* block[] = {"PATH=/bin", "ULFM_LANES=5", "ULFM_NOVALUE", "=", "", "ULFM_SLOT=1K", nullptr};
  REQUIRE(config->read_environment(block));
  CHECK(config->number("LANES") == 5);
  CHECK(config->number("SLOT") == 1024);
  REQUIRE(config->read_environment(nullptr));
  const char* bad[] = {"ULFM_LANES=", nullptr};
  CHECK_FALSE(config->read_environment(bad));
}
