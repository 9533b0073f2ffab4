#include "base/config.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#define TOML_EXCEPTIONS 0
#include <fmt/core.h>
#include <toml++/toml.h>

extern char** environ;

namespace ulfm {
namespace {

constexpr std::int64_t kMax = std::int64_t{1} << 40;

constexpr ConfigRow kRows[] = {
    {"TRANSPORT", RowType::text, "", "auto", 0, 0, "",
     "transport that carries messages; auto takes direct on one host and mux on several"},
    {"TOPOLOGY", RowType::text, "", "", 0, 0, "", "shape of an emulated interconnect; direct has none"},
    {"SHARE", RowType::choice, "", "node", 0, 0, "node|host",
     "neighbours for MPI on an emulated interconnect: the processes of a node, or all processes of the host"},
    {"ENGINE", RowType::choice, "", "inline", 0, 0, "inline|process",
     "what runs an emulated interconnect: the processes that send or wait, or a process of its own"},
    {"FAULT", RowType::text, "", "", 0, 0, "",
     "faults to inject, such as drop=1e-3,corrupt=1e-4,seed=42; see ulfm-fault(7)"},
    {"PROTOCOL", RowType::choice, "", "auto", 0, 0, "auto|always",
     "when the protocol for bad networks is used: auto with faults or a transport that may lose frames"},
    {"WINDOW", RowType::count, "frames", "64", 2, 64, "",
     "most frames to a port that are sent and not yet acknowledged"},
    {"GIVE_UP", RowType::milliseconds, "ms", "10s", 10, 86400000, "",
     "time without acknowledgement after which a peer is given up; the default is longer on a crowded host"},
    {"CONTROL", RowType::choice, "", "auto", 0, 0, "auto|tcp|unix",
     "control channel between processes; auto is tcp for a transport that needs one (pcie; unix where there is no "
     "loopback), and none otherwise"},
    {"COLLECTIVES", RowType::choice, "", "auto", 0, 0, "off|auto|on",
     "MPI's collectives through shared segments: never, after a communicator's first calls, or from the first on"},
    {"ONE_COPY", RowType::choice, "", "auto", 0, 0, "off|auto|on",
     "MPI messages longer than EAGER, one-sided transfers of 8 KB or more, and long collectives are copied once, by "
     "the kernel from process to process of a host: never, where that is faster, or wherever it may; not with --ft"},
    {"INTERFACE", RowType::text, "", "", 0, 0, "",
     "network interface, address (10.1.0.2) or network (10.1.0.0/16) to use between hosts; empty: all, best first"},
    {"PORTS", RowType::text, "", "", 0, 0, "", "TCP ports to listen at between hosts, as 50000-50999; empty: any"},
    {"CONGESTION", RowType::text, "", "", 0, 0, "",
     "TCP's congestion control between hosts, as cubic or bbr; empty: the system's, but reno where a round trip takes "
     "less than 1 ms"},
    {"CONFIG", RowType::text, "", "", 0, 0, "", "TOML file with settings, keys as these names in lower case"},
    {"STATS", RowType::boolean, "", "0", 0, 1, "", "print counters on standard error when the job ends"},
    {"STATS_FILE", RowType::text, "", "", 0, 0, "",
     "file for the counters of all ranks in one table, written when the job ends; .json and .csv choose the form"},
    {"STALL_REPORT", RowType::count, "s", "0", 0, 86400, "",
     "seconds after which a wait reports on standard error what it waits for, and again at twice the time and at "
     "SIGUSR2; 0: never"},
    {"TRACE", RowType::text, "", "", 0, 0, "",
     "file for a trace of control, data and waits of all ranks; for Perfetto or chrome://tracing"},
    {"SLOT", RowType::bytes, "bytes", "2048", 384, 1 << 20, "", "size of one slot of an open port, cell included"},
    {"DEPTH", RowType::count, "slots", "32", 1, 32768, "", "buffers of a port each way"},
    {"LANES", RowType::count, "lanes", "64", 0, 4096, "",
     "lanes that a port grants to frequent senders; other senders use the open ring"},
    {"LANE_CELLS", RowType::count, "cells", "256", 8, 65536, "", "cells of a lane, one small message each"},
    {"LANE_BYTES", RowType::bytes, "bytes", "4M", 4096, 1 << 26, "",
     "most bytes of a lane for larger messages; they get memory as they are needed"},
    {"LANE_AFTER", RowType::count, "messages", "8", 0, 1000000000, "",
     "messages to a destination before a lane is claimed"},
    {"EXCHANGE", RowType::count, "slots", "16", 0, 32, "",
     "slots of 32 KB, and 8 times as many of 4 KB, in which the two directions of a connection write in turn, and a "
     "cell for short messages; 0: none of these"},
    {"FRAME", RowType::bytes, "bytes", "32K", 256, 1 << 22, "",
     "largest piece of a message in a lane; longer messages are divided"},
    {"PEERS", RowType::count, "peers", "4096", 2, 65536, "", "senders a port can know at one time"},
    {"CACHE", RowType::bytes, "bytes", "0", 0, kMax, "", "limit of a port's message cache; 0 is what memory allows"},
    {"EAGER", RowType::bytes, "bytes", "", 0, 1 << 30, "",
     "MPI messages longer than this are sent by rendezvous, when the receiver is ready; empty: 64K, and 320K over tcp"},
    {"SPIN", RowType::count, "turns", "", 0, 1000000000, "",
     "turns of a wait before it yields; empty: chosen by the numbers of processes and cores"},
    {"PARK_AFTER", RowType::milliseconds, "ms", "2", 0, 1000000, "", "time for which a wait yields before it sleeps"},
    {"PARK_LIMIT", RowType::milliseconds, "ms", "100", 1, 1000000, "", "longest single sleep of a wait"},
};

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}
std::string upper(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

std::string accepted(const ConfigRow& row) {
  switch (row.type) {
    case RowType::boolean: return "0 or 1 (also no/yes, off/on, false/true)";
    case RowType::choice: return fmt::format("one of {}", row.choices);
    case RowType::text: return "text";
    case RowType::bytes: return fmt::format("bytes, with K, M or G, from {} to {}", row.min, row.max);
    case RowType::milliseconds: return fmt::format("milliseconds, with ms or s, from {} to {} ms", row.min, row.max);
    case RowType::count: return fmt::format("a whole number from {} to {}", row.min, row.max);
  }
  return "";
}

std::int64_t scale_of(RowType type, std::string_view suffix, bool& known) {
  known = true;
  const std::string s = lower(suffix);
  if (s.empty()) return 1;
  if (type == RowType::bytes) {
    if (s == "k" || s == "kb" || s == "kib") return 1 << 10;
    if (s == "m" || s == "mb" || s == "mib") return 1 << 20;
    if (s == "g" || s == "gb" || s == "gib") return 1 << 30;
    if (s == "b") return 1;
  }
  if (type == RowType::milliseconds) {
    if (s == "ms") return 1;
    if (s == "s") return 1000;
  }
  known = false;
  return 1;
}

const std::vector<std::string>& row_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const ConfigRow& row : kRows) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

std::string suggestion(std::string_view word) {
  const std::string near = nearest(word, row_names());
  return near.empty() ? "; `ulfm_info` lists what there is" : fmt::format("; did you mean ULFM_{}?", near);
}

// Variables of our tools that are no settings of the library.
bool is_tool_variable(std::string_view name) {
  constexpr std::array<std::string_view, 13> known{
      "STAGE",       "SOURCE",      "BUILD",       "MPICH_SOURCE", "MPICH_PROFILE", "NETMOD_LIBRARY", "FABRIC",
      "FABRIC_RANK", "FABRIC_HOST", "FABRIC_DOOR", "JOB_KEY",      "RECORD",        "STALL_BOARD"};
  return std::find(known.begin(), known.end(), name) != known.end();
}

}  // namespace

std::span<const ConfigRow> config_rows() { return kRows; }

const char* name(Origin origin) noexcept {
  switch (origin) {
    case Origin::default_value: return "default";
    case Origin::file: return "file";
    case Origin::environment: return "environment";
    case Origin::command_line: return "command line";
  }
  return "";
}

std::string nearest(std::string_view word, std::span<const std::string> names) {
  std::string best;
  std::size_t best_distance = std::min<std::size_t>(word.size() / 3 + 1, 3);
  for (const std::string& candidate : names) {
    const std::size_t distance = edit_distance(lower(word), lower(candidate));
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

Result<std::int64_t> parse_value(const ConfigRow& row, std::string_view value) {
  const auto refuse = [&] {
    return fail(Errc::invalid, fmt::format("ULFM_{}=\"{}\": needs {}", row.name, value.substr(0, 80), accepted(row)));
  };
  if (row.type == RowType::text) return 0;
  if (value.empty() && row.default_value[0] == '\0') return -1;  // "unset" for rows that may be
  if (row.type == RowType::boolean) {
    const std::string v = lower(value);
    if (v == "1" || v == "yes" || v == "on" || v == "true") return 1;
    if (v == "0" || v == "no" || v == "off" || v == "false" || v.empty()) return 0;
    return refuse();
  }
  if (row.type == RowType::choice) {
    std::istringstream in(row.choices);
    std::string one;
    for (std::int64_t i = 0; std::getline(in, one, '|'); ++i)
      if (one == lower(value)) return i;
    return refuse();
  }
  std::int64_t number = 0;
  const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), number);
  bool known = false;
  const std::int64_t scale =
      scale_of(row.type, std::string_view(end, static_cast<std::size_t>(value.data() + value.size() - end)), known);
  if (ec != std::errc{} || !known) return refuse();
  std::int64_t scaled = 0;
  if (__builtin_mul_overflow(number, scale, &scaled) || scaled < row.min || scaled > row.max) return refuse();
  return scaled;
}

Config::Config() : values_(std::size(kRows)) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    values_[i].text = kRows[i].default_value;
    values_[i].number = parse_value(kRows[i], kRows[i].default_value).value_or(0);
  }
}

Result<Config> Config::load() {
  const char* path = std::getenv("ULFM_CONFIG");
  return resolve(path != nullptr ? path : "", environ, {});
}

Result<Config> Config::resolve(const std::string& file, const char* const* environment,
                               std::span<const CommandLineSetting> line) {
  Config config;
  if (!file.empty()) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    const bool is_empty = in && in.peek() == std::ifstream::traits_type::eof() && !in.bad();
    if (!is_empty && (!in || !(text << in.rdbuf())))
      return fail(Errc::not_found,
                  fmt::format("the settings file {} cannot be read; a readable TOML file is needed", file));
    if (auto read = config.read_file_text(text.str(), file); !read) return fail(read.error());
  }
  if (auto read = config.read_environment(environment); !read) return fail(read.error());
  for (const CommandLineSetting& setting : line)
    if (auto ok = config.set(setting.row, setting.value, Origin::command_line, setting.where); !ok)
      return fail(ok.error());
  return config;
}

std::size_t Config::index(std::string_view row) const {
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    if (row == kRows[i].name) return i;
  return std::size(kRows);
}

Result<void> Config::set(std::string_view row, std::string_view value, Origin origin, const std::string& where) {
  const std::size_t i = index(upper(row));
  if (i == std::size(kRows)) {
    warnings_.push_back(fmt::format("{}: no setting is called {}{}", where, row, suggestion(row)));
    return {};
  }
  auto number = parse_value(kRows[i], value);
  if (!number) return fail(std::move(number.error()).within(where));
  if (origin < values_[i].origin) return {};
  values_[i] = {std::string(value), *number, origin, where};
  return {};
}

Result<void> Config::read_environment(const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::size_t equals = entry.find('=');
    if (entry.substr(0, 5) != "ULFM_" || equals == std::string_view::npos) continue;
    const std::string_view row = entry.substr(5, equals - 5);
    if (is_tool_variable(row)) continue;
    if (auto r = set(row, entry.substr(equals + 1), Origin::environment, "environment"); !r) return r;
  }
  return {};
}

// Behind the quoted string that begins at `at`, or at a character that toml++ 3.3 must not see there.
static std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at, 3) == three;
  for (at += is_long ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      const std::size_t behind = std::min(text.find_first_not_of(" \t\r\n", at + 1), text.size());
      if (behind < text.size() && static_cast<unsigned char>(text[behind]) > 127) return behind;
      at = behind == at + 1 ? behind : behind - 1;  // behind white space stands no character that the backslash is for
    } else if (!is_long && (text[at] == quote || text[at] == '\n')) {
      return text[at] == quote ? at + 1 : at;
    } else if (is_long && text.substr(at, 3) == three) {
      at += 3;
      for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more) ++at;  // are still of the string
      return at;
    }
  }
  return text.size();
}

// Settings are flat, so tables and arrays are a mistake, and so are dates; they are found here because toml++ 3.3 stops
// the program by an assertion on some malformed ones. So is a character beyond ASCII that is neither in a comment nor
// in quotes where a key or a value begins: toml++'s look for white space is undefined behaviour there for Latin, Greek
// and Cyrillic letters.
static Result<void> refuse_for_the_parser(std::string_view text, const std::string& path) {
  std::size_t line = 1, equals = 0;  // equals: signs in this line
  char before = '\n';                // the last character that is not white space, or the end of a line
  const auto refuse = [&](const char* found) {
    return fail(Errc::invalid, fmt::format("{}:{}: needs key = value, found {}", path, line, found));
  };
  const auto is_beyond_ascii = [](char c) { return static_cast<unsigned char>(c) > 127; };
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '[' && before == '\n') return refuse("a table header; settings have no tables");
    if (c == '[' || c == '{') return refuse("an array or a table; a setting is a string, a number or a boolean");
    if (is_beyond_ascii(c)) return refuse("a character that is not ASCII outside quotes and comments");
    const bool is_sign = c == '-' && std::string_view("= \teE").find(text[at - (at != 0)]) != std::string_view::npos;
    if (equals != 0 && (c == ':' || (c == '-' && !is_sign)))
      return refuse("a dash or a colon inside a value without quotes; a setting is a string, a number or a boolean");
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0 &&
        std::string_view("\t\r\n").find(c) == std::string_view::npos)
      return refuse("a control character");
    if (c == '"' || c == '\'') {
      const std::string_view quoted = text.substr(at, end_of_string(text, at) - at);
      if (std::any_of(quoted.begin(), quoted.end(), is_beyond_ascii) && before != '\n' &&
          (before != '=' || equals != 1))
        return refuse("a character that is not ASCII in quotes that do not begin a key or a value");
      line += static_cast<std::size_t>(std::count(quoted.begin(), quoted.end(), '\n'));
      at += quoted.size() - 1;
    }
    if (c == '#') at = std::min(text.find('\n', at), text.size()) - 1;
    if (c == '\n') ++line, equals = 0;
    equals += c == '=';
    if (c != ' ' && c != '\t' && c != '\r') before = c;
  }
  return {};
}

Result<void> Config::read_file_text(std::string_view text, const std::string& path) {
  if (auto ok = refuse_for_the_parser(text, path); !ok) return ok;
  toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(Errc::invalid, fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  for (const auto& [key, node] : parsed.table()) {
    const std::string where = fmt::format("{}:{}", path, node.source().begin.line);
    std::string value;
    if (const auto* s = node.as_string()) value = s->get();
    else if (const auto* i = node.as_integer()) value = fmt::format("{}", i->get());
    else if (const auto* b = node.as_boolean()) value = b->get() ? "1" : "0";
    else return fail(Errc::invalid, fmt::format("{}: {} needs a string, number or boolean", where, key.str()));
    if (auto r = set(key.str(), value, Origin::file, where); !r) return r;
  }
  return {};
}

std::int64_t Config::number(std::string_view row) const { return values_.at(index(row)).number; }
const std::string& Config::text(std::string_view row) const { return values_.at(index(row)).text; }
Origin Config::origin(std::string_view row) const { return values_.at(index(row)).origin; }
const std::string& Config::where(std::string_view row) const { return values_.at(index(row)).where; }

}  // namespace ulfm
