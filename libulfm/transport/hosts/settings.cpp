#include "transport/hosts/settings.hpp"

#include <charconv>
#include <cstdlib>

#include <fmt/core.h>

namespace ulfm::hosts {
namespace {

/// "ofi,provider=tcp" and "mux,provider=tcp".
Result<void> read_options(std::string_view transport, NetworkSettings& settings) {
  const std::size_t comma = transport.find(',');
  if (comma == transport.npos) return {};
  const std::string_view option = transport.substr(comma + 1);
  if (!option.starts_with("provider=") || option.size() == 9 || option.find(',') != option.npos)
    return fail(Errc::invalid, fmt::format("\"{}\" is no option of {}; there is: provider=NAME (fi_info -l lists them)",
                                           option.substr(0, 60), transport.substr(0, comma)));
  settings.provider = option.substr(9);
  return {};
}

}  // namespace

Result<PortRange> parse_ports(const std::string& text) {
  PortRange ports;
  if (text.empty()) return ports;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, ports.first);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '-') {
    const auto last = std::from_chars(first.ptr + 1, end, ports.last);
    if (last.ec == std::errc{} && last.ptr == end && ports.first != 0 && ports.last >= ports.first) return ports;
  }
  return fail(Errc::invalid, fmt::format("ULFM_PORTS=\"{}\": two TCP ports are needed, as in 50000-50999", text));
}

Result<NetworkSettings> settings_from(const Config& config) {
  NetworkSettings settings;
  auto ports = parse_ports(config.text("PORTS"));
  if (!ports) return fail(ports.error());
  settings.first_port = ports->first;
  settings.last_port = ports->last;
  if (auto ok = read_options(config.text("TRANSPORT"), settings); !ok) return fail(ok.error());
  settings.interface = config.text("INTERFACE");
  settings.congestion = config.text("CONGESTION");
  if (config.origin("FRAME") != Origin::default_value)
    settings.max_frame = static_cast<std::size_t>(config.number("FRAME"));
  settings.give_up = std::chrono::milliseconds(config.number("GIVE_UP"));
  settings.peers = static_cast<std::uint32_t>(config.number("PEERS"));
  if (const char* secret = std::getenv("ULFM_JOB_KEY")) settings.job_secret = secret;
  return settings;
}

}  // namespace ulfm::hosts
