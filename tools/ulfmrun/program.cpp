#include "program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/core.h>

#include "elf.hpp"
#include "failure.hpp"

namespace fs = std::filesystem;

namespace ulfmrun {
namespace {

/// With the compiler of this installation.
std::string rebuild() {
  std::error_code none;
  return fmt::format("rebuild it with {}", (fs::read_symlink("/proc/self/exe", none).parent_path() / "mpicc").string());
}

bool is_file(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

std::vector<std::string> split_path(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ':');) parts.push_back(part.empty() ? "." : part);
  return parts;
}

/// The first executable file of that name on PATH, else the first that is there at all (126 is then the
/// answer).
std::optional<std::string> search(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::optional<std::string> second_best;
  for (const auto& directory : split_path(path ? path : "/bin:/usr/bin")) {
    const std::string candidate = fmt::format("{}/{}", directory, name);
    if (!is_file(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (!second_best) second_best = candidate;
  }
  return second_best;
}

[[noreturn]] void fail_absent(const Program& program, const std::string& tried) {
  if (program.name.find('/') != std::string::npos)
    fail(kNotFound, fmt::format("program {}: {}", tried, std::strerror(errno ? errno : ENOENT)));
  fail(kNotFound, fmt::format("program {} is in no directory of PATH{}", program.name,
                              is_file(fmt::format("./{}", program.name))
                                  ? fmt::format("; it is in this directory: write ./{}", program.name)
                                  : ""));
}

/// Ranks change to it before they start the program.
void check_folder(const std::string& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) errno = ENOTDIR;
  else if (access(folder.c_str(), X_OK) == 0) return;
  fail(kUsage, fmt::format("-wdir {}: {}; a folder is needed", folder, std::strerror(errno)));
}

/// Where the program is; nothing when it may be on another host.
std::optional<std::string> find(const Program& program, bool elsewhere) {
  if (!elsewhere && !program.working_directory.empty()) check_folder(program.working_directory);
  std::string path = program.name;
  if (path.find('/') == std::string::npos) {
    const auto found = search(path);
    path = found.value_or("");
  } else if (!program.working_directory.empty() && path.front() != '/') {
    path =
        fmt::format("{}/{}", program.working_directory, path);  // ranks change directory before they start the program
  }
  struct stat status;
  errno = 0;
  if (path.empty() || stat(path.c_str(), &status) != 0) {
    if (elsewhere) return std::nullopt;
    fail_absent(program, path);
  }
  if (S_ISDIR(status.st_mode)) fail(kCannotExecute, fmt::format("program {} is a directory; a file is needed", path));
  if (access(path.c_str(), X_OK) != 0)
    fail(kCannotExecute,
         fmt::format("program {} is not executable ({}); chmod +x makes it so", path, std::strerror(errno)));
  return path;
}

/// A file in memory, read-only.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      start_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    readable_ = fd >= 0;
    if (fd >= 0) close(fd);
  }
  ~Mapping() {
    if (start_ != MAP_FAILED) munmap(start_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool readable() const { return readable_ && (start_ != MAP_FAILED || size_ == 0); }
  std::span<const std::byte> bytes() const {
    if (start_ == MAP_FAILED) return {};
    return {static_cast<const std::byte*>(start_), size_};
  }

 private:
  void* start_ = MAP_FAILED;
  std::size_t size_ = 0;
  bool readable_ = false;
};

/// The shell's rule for a file without a known magic: text is a script (execvp gives it to sh), binary is
/// not.
bool looks_like_text(std::span<const std::byte> bytes) {
  const auto head = bytes.first(std::min<std::size_t>(bytes.size(), 80));
  const auto line_end = std::find(head.begin(), head.end(), std::byte{'\n'});
  return std::find(head.begin(), line_end, std::byte{0}) == line_end;
}

/// The machine that ulfmrun itself was built for, by the same reader.
std::uint16_t own_machine() {
  const Mapping self("/proc/self/exe");
  return parse_elf(self.bytes()).machine;
}

void check_machine(const std::string& path, const Elf& elf) {
  const std::string start = fmt::format("program {}: Exec format error: ", path);
  if (elf.status == Elf::Status::damaged)
    fail(kCannotExecute, fmt::format("{}the ELF file is damaged, {}", start, elf.damage));
  if (elf.bits != 64) fail(kCannotExecute, fmt::format("{}a 32-bit program; ULFM runs 64-bit ones", start));
  if (!elf.little_endian)
    fail(kCannotExecute, fmt::format("{}a big-endian program; ULFM runs little-endian ones", start));
  if (const auto own = own_machine(); elf.machine != own)
    fail(kCannotExecute,
         fmt::format("{}built for another machine (ELF machine {}, this one is {})", start, elf.machine, own));
  if (elf.type != ET_EXEC && elf.type != ET_DYN)
    fail(kCannotExecute, fmt::format("{}not a program but an object or core file; link it first", start));
}

/// N of "libmpi.so.N" for the stem "libmpi.so."; nothing for another name.
std::optional<int> version_of(std::string_view library, std::string_view stem) {
  library.remove_prefix(std::min(library.rfind('/') + 1, library.size()));
  if (!library.starts_with(stem)) return std::nullopt;
  int number = 0;
  const auto digits = library.substr(stem.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || (end != digits.data() + digits.size() && *end != '.')) return std::nullopt;
  return number;
}

bool is_mpich_library(std::string_view library) {
  return version_of(library, "libmpi.so.") == 12 || version_of(library, "libmpich.so.") == 12;
}

void check_abi(const std::string& path, const Elf& elf) {
  for (const auto& library : elf.needed) {
    const auto mpi = version_of(library, "libmpi.so.");
    // Open MPI 1.10 called its library libmpi.so.12 too; its symbols tell it apart.
    if (mpi && (*mpi != 12 || elf.open_mpi_symbols))
      fail(kCannotExecute, fmt::format("program {} was built for Open MPI (needs {}); ULFM runs MPICH-ABI programs "
                                       "(libmpi.so.12, libmpich.so.12): {}",
                                       path, library, rebuild()));
    const auto mpich = version_of(library, "libmpich.so.");
    if (mpich && *mpich != 12)
      fail(kCannotExecute,
           fmt::format(
               "program {} was built for another MPICH (needs {}); ULFM offers libmpi.so.12 and libmpich.so.12: {}",
               path, library, rebuild()));
  }
}

/// $ORIGIN in a search path is the directory of the program.
std::string expand_origin(std::string directory, const std::string& program) {
  std::error_code ignored;
  const std::string origin = fs::canonical(program, ignored).parent_path();
  for (const std::string_view variable : {"$ORIGIN", "${ORIGIN}"}) {
    for (std::size_t at; (at = directory.find(variable)) != std::string::npos;)
      directory.replace(at, variable.size(), origin);
  }
  return directory;
}

/// The file that the loader would take before it looks at LD_LIBRARY_PATH; "" when it gets as far as that.
std::string built_in_library(const std::string& path, const Elf& elf, const std::string& needed) {
  if (needed.find('/') != std::string::npos) return needed;
  if (!elf.runpath.empty()) return "";  // RUNPATH comes after LD_LIBRARY_PATH and turns RPATH off
  for (const auto& directory : split_path(elf.rpath)) {
    std::string candidate = fmt::format("{}/{}", expand_origin(directory, path), needed);
    if (is_file(candidate)) return candidate;
  }
  return "";
}

Inspection check_libraries(const std::string& path, const Elf& elf, const fs::path& libraries) {
  Inspection result;
  for (const auto& needed : elf.needed) {
    if (!is_mpich_library(needed)) continue;
    const fs::path ours = libraries / fs::path(needed).filename();
    // Without this the loader would quietly take another MPI, and the job would not run over ULFM.
    if (!is_file(ours))
      fail(kInstallation,
           fmt::format("program {} needs {}, and {} is not there; install again", path, needed, ours.string()));
    const std::string other = built_in_library(path, elf, needed);
    std::error_code ignored;
    if (other.empty() || fs::equivalent(other, ours, ignored)) continue;
    result.preload = libraries / "libmpi.so.12";
    result.remark =
        fmt::format("program {} names its own MPI, {} (DT_RPATH goes before LD_LIBRARY_PATH); preloading {}", path,
                    other, result.preload);
  }
  return result;
}

}  // namespace

Inspection inspect(const Program& program, const fs::path& libraries, bool elsewhere) {
  const auto path = find(program, elsewhere);
  if (!path) return {};
  const Mapping file(*path);
  if (!file.readable()) return {};  // execute without read permission is legal; there is nothing to look at
  const Elf elf = parse_elf(file.bytes());
  if (elf.status == Elf::Status::not_elf) {
    if (!looks_like_text(file.bytes()))
      fail(kCannotExecute, fmt::format("program {}: Exec format error: neither an ELF program nor a script", *path));
    return {};
  }
  check_machine(*path, elf);
  check_abi(*path, elf);
  return check_libraries(*path, elf, libraries);
}

}  // namespace ulfmrun
