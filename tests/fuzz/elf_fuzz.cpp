// Programs ulfmrun is asked to start.
#include <elf.h>

#include "elf.hpp"
#include "fuzz.hpp"

namespace {

/// A small dynamic program: header, two segments, dynamic section, strings.
std::string small_program() {
  const std::string strings("\0libmpi.so.12\0$ORIGIN/../lib\0ompi_mpi_comm_world\0", 49);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  const std::size_t dynamic_at = sizeof header + 2 * sizeof(Elf64_Phdr);
  Elf64_Dyn dynamic[5]{};
  const std::size_t strings_at = dynamic_at + sizeof dynamic;
  dynamic[0].d_tag = DT_NEEDED, dynamic[0].d_un.d_val = 1;
  dynamic[1].d_tag = DT_RUNPATH, dynamic[1].d_un.d_val = 14;
  dynamic[2].d_tag = DT_STRTAB, dynamic[2].d_un.d_ptr = 0x1000 + strings_at;
  dynamic[3].d_tag = DT_STRSZ, dynamic[3].d_un.d_val = strings.size();
  Elf64_Phdr segments[2]{};
  segments[0].p_type = PT_LOAD, segments[0].p_vaddr = 0x1000, segments[0].p_filesz = strings_at + strings.size();
  segments[1].p_type = PT_DYNAMIC, segments[1].p_offset = dynamic_at, segments[1].p_filesz = sizeof dynamic;
  std::string file;
  file.append(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(segments), sizeof segments);
  file.append(reinterpret_cast<const char*>(dynamic), sizeof dynamic);
  return file + strings;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {small_program(), small_program().substr(0, 64),
          "\x7f"
          "ELF",
          "#!/bin/sh\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // A copy of exactly that size, so that the sanitizer sees a step across its end.
  const std::vector<std::byte> file(reinterpret_cast<const std::byte*>(bytes),
                                    reinterpret_cast<const std::byte*>(bytes) + size);
  const ulfmrun::Elf elf = ulfmrun::parse_elf(file);
  must(elf.status != ulfmrun::Elf::Status::damaged || *elf.damage != '\0', "damage is named");
  std::size_t names = elf.rpath.size() + elf.runpath.size();
  for (const std::string& n : elf.needed) names += n.size();
  must(elf.status == ulfmrun::Elf::Status::ok || elf.status == ulfmrun::Elf::Status::damaged || names == 0,
       "no names from what is no ELF file");
  return 0;
}
