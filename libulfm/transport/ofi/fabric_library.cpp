#include "transport/ofi/fabric_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include <fmt/core.h>

namespace ulfm::ofi {
namespace {

constexpr const char* kName = "libfabric.so.1";

Result<FabricLibrary> open_library() {
  // Providers for hardware that we do not use catch SIGSEGV, SIGABRT and others when they are loaded, and exit: a crash
  // would look like an exit, without a core.
  setenv("IPATH_NO_BACKTRACE", "1", 0);
  setenv("HFI_NO_BACKTRACE", "1", 0);
  // Not to be fooled by a provider that looks for devices at load time: nothing of it is needed here.
  void* library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(Errc::unavailable,
                fmt::format("libfabric is not installed ({}); on Debian: apt install libfabric1", dlerror()));
  FabricLibrary f;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  if (!find(f.getinfo, "fi_getinfo") || !find(f.freeinfo, "fi_freeinfo") || !find(f.dupinfo, "fi_dupinfo") ||
      !find(f.fabric, "fi_fabric") || !find(f.strerror, "fi_strerror") || !find(f.version, "fi_version"))
    return fail(Errc::unavailable, fmt::format("{} has not the functions of libfabric", kName));
  if (FI_VERSION_LT(f.version(), FI_VERSION(1, 11)))
    return fail(Errc::unavailable, "libfabric is too old: 1.11 or later is needed");
  return f;
}

// Frees what libfabric allocated, as it does itself.
void set_address(void*& where, std::size_t& length, const SocketAddress& address) noexcept {
  std::free(where);
  where = std::malloc(address.size());
  length = where == nullptr ? 0 : address.size();
  if (where != nullptr) std::memcpy(where, address.get(), length);
}

void drop_address(void*& where, std::size_t& length) noexcept {
  std::free(std::exchange(where, nullptr));
  length = 0;
}

}  // namespace

Result<const FabricLibrary*> fabric_library() {
  static const Result<FabricLibrary> library = open_library();
  if (!library) return fail(library.error());
  return &*library;
}

void InfoFreer::operator()(fi_info* info) const noexcept {
  if (auto library = fabric_library()) (*library)->freeinfo(info);
}

void set_source(fi_info& info, const SocketAddress& address) noexcept {
  info.addr_format = address.is_v6() ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  set_address(info.src_addr, info.src_addrlen, address);
}

void set_destination(fi_info& info, const SocketAddress& address) noexcept {
  info.addr_format = address.is_v6() ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  drop_address(info.src_addr, info.src_addrlen);
  set_address(info.dest_addr, info.dest_addrlen, address);
}

std::string error_text(long rc) {
  auto library = fabric_library();
  return library ? (*library)->strerror(static_cast<int>(rc < 0 ? -rc : rc)) : fmt::format("{}", rc);
}

}  // namespace ulfm::ofi
