#include "elf.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace ulfmrun {
namespace {

using Bytes = std::span<const std::byte>;

/// `length` bytes at `offset`, if the file has them. Written so that no sum can overflow.
std::optional<Bytes> slice(Bytes file, std::uint64_t offset, std::uint64_t length) {
  if (offset > file.size() || length > file.size() - offset) return std::nullopt;
  return file.subspan(offset, length);
}

/// A copy, as nothing says that the structure is aligned in the file.
template <class T>
std::optional<T> read(Bytes file, std::uint64_t offset) {
  const auto bytes = slice(file, offset, sizeof(T));
  if (!bytes) return std::nullopt;
  T value;
  std::memcpy(&value, bytes->data(), sizeof value);
  return value;
}

Elf damaged(Elf elf, const char* what) {
  elf.status = Elf::Status::damaged;
  elf.damage = what;
  return elf;
}

/// The program headers; empty optional when the table lies outside the file.
std::optional<std::vector<Elf64_Phdr>> segments(Bytes file, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> all;
  if (header.e_phnum == 0) return all;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
  const auto table = slice(file, header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (!table) return std::nullopt;
  for (std::size_t i = 0; i < header.e_phnum; ++i) all.push_back(*read<Elf64_Phdr>(*table, i * sizeof(Elf64_Phdr)));
  return all;
}

/// DT_STRTAB is an address in memory; the loadable segment that covers it says where that is in the file.
std::optional<std::uint64_t> file_offset(const std::vector<Elf64_Phdr>& all, std::uint64_t address) {
  for (const auto& segment : all) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
      continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside > UINT64_MAX - segment.p_offset) return std::nullopt;
    return segment.p_offset + inside;
  }
  return std::nullopt;
}

std::vector<Elf64_Dyn> dynamic_entries(Bytes section) {
  std::vector<Elf64_Dyn> entries;
  for (std::size_t at = 0; section.size() - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
    const auto entry = *read<Elf64_Dyn>(section, at);
    if (entry.d_tag == DT_NULL) break;
    entries.push_back(entry);
  }
  return entries;
}

/// The string at `offset`, if it ends inside the table.
std::optional<std::string> text_at(std::string_view strings, std::uint64_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  const std::size_t end = strings.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(strings.substr(offset, end - offset));
}

std::optional<std::string_view> string_table(Bytes file, const std::vector<Elf64_Phdr>& all,
                                             const std::vector<Elf64_Dyn>& entries) {
  std::uint64_t address = 0, size = 0;
  for (const auto& entry : entries) {
    if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
  }
  const auto offset = file_offset(all, address);
  if (!offset) return std::nullopt;
  const auto bytes = slice(file, *offset, size);
  if (!bytes) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

/// Fills in what the dynamic section says; false when a string lies outside its table.
bool read_names(Elf& elf, const std::vector<Elf64_Dyn>& entries, std::string_view strings) {
  for (const auto& entry : entries) {
    if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH) continue;
    const auto text = text_at(strings, entry.d_un.d_val);
    if (!text) return false;
    if (entry.d_tag == DT_NEEDED) elf.needed.push_back(*text);
    if (entry.d_tag == DT_RPATH) elf.rpath = *text;
    if (entry.d_tag == DT_RUNPATH) elf.runpath = *text;
  }
  elf.open_mpi_symbols = strings.find(std::string_view("\0ompi_mpi_", 10)) != std::string_view::npos;
  return true;
}

}  // namespace

Elf parse_elf(Bytes file) {
  Elf elf;
  const auto ident = slice(file, 0, EI_NIDENT);
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) return elf;
  if (!ident) return damaged(elf, "its first 16 bytes are cut short");
  elf.bits = (*ident)[EI_CLASS] == std::byte{ELFCLASS64} ? 64 : 32;
  elf.little_endian = (*ident)[EI_DATA] == std::byte{ELFDATA2LSB};
  elf.status = Elf::Status::ok;
  if (elf.bits != 64 || !elf.little_endian) return elf;  // cannot run here: nothing more is asked of it

  const auto header = read<Elf64_Ehdr>(file, 0);
  if (!header) return damaged(elf, "its header is cut short");
  elf.type = header->e_type;
  elf.machine = header->e_machine;
  const auto all = segments(file, *header);
  if (!all) return damaged(elf, "its program headers lie outside the file");
  const auto dynamic = std::find_if(all->begin(), all->end(), [](const auto& s) { return s.p_type == PT_DYNAMIC; });
  if (dynamic == all->end()) return elf;  // static, or an object file

  const auto section = slice(file, dynamic->p_offset, dynamic->p_filesz);
  if (!section) return damaged(elf, "its dynamic section lies outside the file");
  const auto entries = dynamic_entries(*section);
  if (entries.empty()) return elf;
  const auto strings = string_table(file, *all, entries);
  if (!strings) return damaged(elf, "its dynamic strings lie outside the file");
  if (!read_names(elf, entries, *strings)) return damaged(elf, "a library's name lies outside its dynamic strings");
  return elf;
}

}  // namespace ulfmrun
