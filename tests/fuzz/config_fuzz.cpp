// Settings: the text of a file, and values of the environment. The first byte says which.
#include "base/config.hpp"
#include "fuzz.hpp"

using namespace ulfm;

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds{
      "0depth = 16\nslot = \"4K\"\nstats = true\n# comment\n[table]\nx = [1, 2.5, {a = 1979-05-27}]\n",
      "0transport = 'direct'\ntopology = \"\"\"\nx\"\"\"\n\"quoted key\" = -0x1f\n", "0dpeth=1e9999\nLANES = 3"};
  for (const ConfigRow& row : config_rows())
    seeds.push_back(std::string("1ULFM_") + row.name + "=" + row.default_value);
  // What the TOML parser must not get to see.
  seeds.insert(seeds.end(), {"01=1117-12-j2 2 .Ej=4",
                             "0a =11\x7f\x0f-\x7f\x0f-\x11"
                             "1 0\x0c",
                             "0\"\"\"\"\\\n\\ \n\xcc\x81 "});
  seeds.emplace_back("1ULFM_LANE_BYTES=9223372036854775807K");
  return seeds;
}

namespace {
const Config& defaults() {
  // What happens to be in the environment of whoever runs this must not matter.
  static const Config config = [] {
    for (const ConfigRow& row : config_rows()) unsetenv((std::string("ULFM_") + row.name).c_str());
    return Config::load().value();
  }();
  return config;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzInput input(bytes, size);
  Config config = defaults();
  Result<void> read;
  const auto how = input.take<char>();
  if (how % 2 == 0) {
    read = config.read_file_text(input.rest(), "file.toml");
  } else {
    const std::string entry(input.rest());
    const char* block[] = {entry.c_str(), nullptr};
    read = config.read_environment(block);
  }
  if (!read) must(!read.error().what.empty(), "an error has a text");
  for (const ConfigRow& row : config_rows()) {
    const std::int64_t number = config.number(row.name);
    const bool unset = number == -1 && row.default_value[0] == '\0';
    must(row.type == RowType::text || row.type == RowType::choice || unset || (number >= row.min && number <= row.max),
         "a setting is in its range");
  }
  return 0;
}
