#include "fabric/pcie/packet.hpp"

namespace ulfm::fabric::pcie {
namespace {

constexpr std::byte kControl{0}, kData{1};

template <typename T>
void put(std::byte* to, T value) noexcept {
  for (std::size_t i = 0; i < sizeof value; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}
template <typename T>
T get(const std::byte* from) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value = static_cast<T>(value | static_cast<T>(from[i]) << (8 * i));
  return value;
}

}  // namespace

std::array<std::byte, kControlBytes> encode(const ControlPacket& p) noexcept {
  std::array<std::byte, kControlBytes> bytes{};
  bytes[0] = kControl;
  bytes[1] = static_cast<std::byte>(p.inner_port);
  put(&bytes[4], p.sequence);
  put(&bytes[8], p.source_port);
  put(&bytes[10], p.destination_port);
  put(&bytes[12], p.source_process);
  put(&bytes[14], p.destination_process);
  put(&bytes[16], p.length);
  return bytes;
}

std::array<std::byte, kDataHeaderBytes> encode(const DataHeader& h) noexcept {
  std::array<std::byte, kDataHeaderBytes> bytes{};
  bytes[0] = kData;
  put(&bytes[4], h.sequence);
  put(&bytes[8], h.fragment);
  put(&bytes[12], h.length);
  return bytes;
}

bool decode(std::span<const std::byte> bytes, ControlPacket& packet) noexcept {
  if (bytes.size() < kControlBytes || bytes[0] != kControl || get<std::uint16_t>(&bytes[2]) != 0) return false;
  packet = {static_cast<std::uint8_t>(bytes[1]), get<std::uint32_t>(&bytes[4]),  get<std::uint16_t>(&bytes[8]),
            get<std::uint16_t>(&bytes[10]),      get<std::uint16_t>(&bytes[12]), get<std::uint16_t>(&bytes[14]),
            get<std::uint32_t>(&bytes[16])};
  return true;
}

bool decode(std::span<const std::byte> bytes, DataHeader& header) noexcept {
  if (bytes.size() < kDataHeaderBytes || bytes[0] != kData || bytes[1] != std::byte{0} ||
      get<std::uint16_t>(&bytes[2]) != 0 || get<std::uint16_t>(&bytes[10]) != 0)
    return false;
  header = {get<std::uint32_t>(&bytes[4]), get<std::uint16_t>(&bytes[8]), get<std::uint32_t>(&bytes[12])};
  return true;
}

}  // namespace ulfm::fabric::pcie
