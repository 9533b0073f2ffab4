#include "host_list.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/core.h>

namespace tools {

namespace {

// What stands behind the host on a line of a file.
void take_settings(std::string_view line, ListedHost& host) {
  std::istringstream words{std::string(line.substr(0, line.find('#')))};
  std::string word;
  words >> word;  // the host
  while (words >> word) {
    const bool is_user = word.starts_with("user=");
    if (is_user) host.user = word.substr(5);
    if (host.setting.empty() && ((!word.starts_with("binding=") && !is_user) || word.ends_with('=')))
      host.setting = word;
  }
}

}  // namespace

std::optional<ListedHost> listed_host(std::string_view word) {
  const std::size_t begin = word.find_first_not_of(" \t\r");
  if (begin == word.npos || word[begin] == '#') return std::nullopt;
  word.remove_prefix(begin);
  word = word.substr(0, word.find_first_of(" \t\r#"));
  std::string host(word);
  const std::size_t open = host.find('['), close = host.find(']');
  std::size_t colon = host.npos;
  if (open != host.npos && close != host.npos && open < close && (open == 0 || host[open - 1] == '@')) {
    if (host.substr(close + 1).starts_with(':')) colon = close - 1;  // without the brackets
    host.erase(close, 1).erase(open, 1);
  } else if (std::count(host.begin(), host.end(), ':') == 1) {  // an address of IPv6 has more
    colon = host.find(':');
  }
  if (colon == host.npos) return ListedHost{host, false, "", "", ""};
  return ListedHost{host.substr(0, colon), true, host.substr(colon + 1), "", ""};
}

std::vector<ListedHost> hosts_of_list(std::string_view list) {
  std::vector<ListedHost> hosts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    if (auto host = listed_host(list.substr(at, comma - at))) hosts.push_back(std::move(*host));
    else if (!list.empty()) hosts.emplace_back();
    at = comma + 1;
  }
  return hosts;
}

std::optional<std::vector<ListedHost>> hosts_of_file(const std::string& file) {
  struct stat info {};
  errno = 0;
  if (stat(file.c_str(), &info) != 0) return std::nullopt;
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return std::nullopt;
  }
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::vector<ListedHost> hosts;
  bool is_first = true;
  for (std::string line; std::getline(in, line);) {
    if (std::exchange(is_first, false) && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // the mark of UTF-8
    auto host = listed_host(line);
    if (!host) continue;
    take_settings(line, *host);
    hosts.push_back(std::move(*host));
  }
  return hosts;
}

std::string what_mpiexec_refuses(const ListedHost& host) {
  if (host.name.empty()) return "between commas, and before a colon, a host is needed; found nothing";
  if (host.name.find('\0') != host.name.npos) return "a host's name is needed; found a byte 0";
  if (host.name.find(',') != host.name.npos)
    return fmt::format("one host is needed on a line; found \"{}\"", host.name);
  int number = 0;
  const char* const last = host.processes.data() + host.processes.size();
  const auto [end, error] = std::from_chars(host.processes.data(), last, number);
  if (host.has_processes && (error != std::errc{} || end != last || number < 1))
    return fmt::format("behind {}: a number of processes, 1 or more, is needed; found \"{}\"", host.name,
                       host.processes);
  if (host.setting.empty()) return "";
  if (host.setting == "binding=" || host.setting == "user=")
    return fmt::format("behind {} {} needs a value; found none", host.name, host.setting);
  const std::size_t equals = host.setting.find('=');
  const bool counts = host.setting.starts_with("slots=") || host.setting.starts_with("max");
  return fmt::format("behind {} mpiexec takes binding= and user=; found \"{}\"{}", host.name, host.setting,
                     counts && equals != host.setting.npos
                         ? fmt::format(", for which it wants {}:{}", host.name, host.setting.substr(equals + 1))
                         : "");
}

// Of a range that it cannot read it shows a trace of its functions.
std::string what_mpiexec_refuses_of_ports() {
  for (const char* name : {"MPIEXEC_PORT_RANGE", "MPIEXEC_PORTRANGE"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    int low = 0, high = 0, length = 0;
    const bool is_range = std::sscanf(text, "%5d:%5d%n", &low, &high, &length) == 2 && text[length] == '\0';
    if (!is_range || low < 1 || high < low || high > 65535)
      return fmt::format("{} needs a range of ports, as in 50000:50999; found \"{}\"", name, text);
  }
  return "";
}

std::string why_unknown(const std::string& name) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int rc = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (rc != 0) return gai_strerror(rc);
  freeaddrinfo(found);
  return "";
}

}  // namespace tools
