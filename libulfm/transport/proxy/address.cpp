#include "transport/proxy/address.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "job/liveness.hpp"

namespace ulfm::proxy {
namespace {

template <typename Number>
bool read(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

// The next word, up to `separator` or the end; it is taken off.
std::string_view word(std::string_view& text, char separator) {
  const std::string_view first = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), first.size() + 1));
  return first;
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  const auto end = std::to_chars(text, text + sizeof text, number, 16).ptr;
  return {text, end};
}

}  // namespace

std::string encode(const DoorAddress& address) {
  std::string text = fmt::format("{}|{}|", hexadecimal(address.host), address.frame);
  for (std::size_t i = 0; i < address.nodes.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", address.nodes[i]);
  return fmt::format("{}|{}", text, address.card);
}

Result<DoorAddress> decode(std::string_view text) {
  DoorAddress address;
  std::string_view rest = text;
  bool good = read(word(rest, '|'), address.host, 16) && read(word(rest, '|'), address.frame) && address.frame != 0;
  for (std::string_view nodes = word(rest, '|'); good && !nodes.empty();)
    good = read(word(nodes, ','), address.nodes.emplace_back());
  address.card = rest;
  if (good && !address.nodes.empty() && encode(address) == text) return address;
  return fail(Errc::protocol,
              fmt::format("ULFM_FABRIC_DOOR=\"{}\" names no door of an emulated interconnect; ulfmrun sets it",
                          text.substr(0, 60)));
}

Result<const DoorAddress*> door_of_this_job() {
  static const auto& door = *new const Result<std::optional<DoorAddress>>([]() -> Result<std::optional<DoorAddress>> {
    const char* text = std::getenv("ULFM_FABRIC_DOOR");
    if (text == nullptr || *text == 0) return std::nullopt;
    auto read = decode(text);
    if (!read) return fail(read.error());
    if (read->host == host_identity()) return std::nullopt;
    return std::move(*read);
  }());
  if (!door) return fail(door.error());
  return *door ? &**door : nullptr;
}

}  // namespace ulfm::proxy
