#include <charconv>
#include <cstdlib>

#include "transport/ofi/network.hpp"

namespace ulfm::ofi {
namespace {

/// "5000-5100".
Result<void> read_ports(const std::string& text, OfiSettings& settings) {
  if (text.empty()) return {};
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, settings.first_port);
  bool good = first.ec == std::errc{} && first.ptr != end && *first.ptr == '-';
  if (good) {
    const auto last = std::from_chars(first.ptr + 1, end, settings.last_port);
    good = last.ec == std::errc{} && last.ptr == end && settings.first_port != 0 &&
           settings.last_port >= settings.first_port;
  }
  if (good) return {};
  return fail(Errc::invalid, "ULFM_PORTS=\"" + text + "\": two TCP ports are needed, as in 50000-50999");
}

/// "ofi,provider=tcp".
Result<void> read_options(std::string_view transport, OfiSettings& settings) {
  const std::size_t comma = transport.find(',');
  if (comma == transport.npos) return {};
  const std::string_view option = transport.substr(comma + 1);
  if (!option.starts_with("provider=") || option.size() == 9 || option.find(',') != option.npos)
    return fail(Errc::invalid, "\"" + std::string(option.substr(0, 60)) +
                                   "\" is no option of ofi; there is: provider=NAME (fi_info -l lists them)");
  settings.provider = option.substr(9);
  return {};
}

}  // namespace

Result<OfiSettings> settings_from(const Config& config) {
  OfiSettings settings;
  if (auto ok = read_ports(config.text("PORTS"), settings); !ok) return fail(ok.error());
  if (auto ok = read_options(config.text("TRANSPORT"), settings); !ok) return fail(ok.error());
  settings.interface = config.text("INTERFACE");
  settings.max_frame = static_cast<std::size_t>(config.number("FRAME"));
  settings.give_up = std::chrono::milliseconds(config.number("GIVE_UP"));
  settings.peers = static_cast<std::uint32_t>(config.number("PEERS"));
  if (const char* secret = std::getenv("ULFM_JOB_KEY")) settings.job_secret = secret;
  return settings;
}

}  // namespace ulfm::ofi
