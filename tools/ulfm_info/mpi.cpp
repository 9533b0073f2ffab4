#include "mpi.hpp"

#include <dlfcn.h>

#include <array>
#include <filesystem>

#include <fmt/core.h>

namespace info {
namespace {

constexpr std::size_t kLongestVersion = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH

std::string last_dl_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "unknown reason";
}

// The line our build adds. The device's name alone would not do: a program could be looking at someone else's "ulfm".
bool names_ulfm(const std::string& version) {
  constexpr std::string_view kTitle = "MPICH Custom Information:";
  const std::size_t at = version.find(kTitle);
  if (at == std::string::npos) return false;
  const std::size_t value = version.find_first_not_of(" \t", at + kTitle.size());
  return value != std::string::npos && version.compare(value, 5, "ULFM ") == 0;
}

}  // namespace

MpiLibrary find_mpi() {
  namespace fs = std::filesystem;
  MpiLibrary mpi;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  mpi.path = program.parent_path().parent_path() / "lib/libmpi.so.12";
  if (!fs::exists(mpi.path, error)) {
    mpi.problem = fmt::format("there is no {}; `./dev setup` builds it", mpi.path);
    return mpi;
  }
  void* library = dlopen(mpi.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    mpi.problem = fmt::format("cannot load it: {}", last_dl_error());
    return mpi;
  }
  using Ask = int (*)(char*, int*);
  const auto ask = reinterpret_cast<Ask>(dlsym(library, "MPI_Get_library_version"));
  std::array<char, kLongestVersion> text{};
  int length = 0;
  if (ask == nullptr || ask(text.data(), &length) != 0) {
    mpi.problem = fmt::format("it does not tell its version: {}", last_dl_error());
    return mpi;
  }
  mpi.version = text.data();
  mpi.is_ulfm = names_ulfm(mpi.version);
  return mpi;
}

}  // namespace info
