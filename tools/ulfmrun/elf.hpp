// What ulfmrun needs to know of an ELF file, read from bytes that nobody vouches for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ulfmrun {

struct Elf {
  enum class Status {
    ok,
    not_elf,  ///< the magic is missing
    damaged,  ///< the magic is there, but an offset or a length leads outside the file; `damage` says which
  };
  Status status = Status::not_elf;
  const char* damage = "";

  unsigned bits = 0;  ///< 32 or 64
  bool little_endian = false;
  std::uint16_t type = 0;           ///< ET_EXEC, ET_DYN ... (0 unless 64-bit little endian, as is all that follows)
  std::uint16_t machine = 0;        ///< EM_X86_64 ...
  std::vector<std::string> needed;  ///< DT_NEEDED, in order
  std::string rpath;                ///< DT_RPATH
  std::string runpath;              ///< DT_RUNPATH
  bool open_mpi_symbols = false;    ///< names such as ompi_mpi_comm_world in the dynamic strings
};

/// Reads the header, the segments and the dynamic section. A pure function: any bytes give an answer, none is
/// read outside `file`.
Elf parse_elf(std::span<const std::byte> file);

}  // namespace ulfmrun
