// A table of first bytes.
#include "read/foreign_file.h"

#include <algorithm>

namespace lockstep {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::string_view name;
};

constexpr Signature kSignatures[] = {
    {"\x7f"
     "ELF"sv,
     "an ELF program or library"},
    {"\x1f\x8b"sv, "a gzip archive: unpack it first"},
    {"PK\x03\x04"sv, "a zip archive: unpack it first"},
    {"\x28\xb5\x2f\xfd"sv, "a zstd archive: unpack it first"},
    {"\xfd"
     "7zXZ"sv,
     "an xz archive: unpack it first"},
    {"BZh"sv, "a bzip2 archive: unpack it first"},
    {"\x89PNG"sv, "a PNG picture"},
    {"\xff\xd8\xff"sv, "a JPEG picture"},
    {"%PDF"sv, "a PDF document"},
    {"SQLite format 3\0"sv, "an SQLite database, as Nsight Systems exports"},
    {"\x89HDF"sv, "an HDF5 file"},
    {"\xff\xfe"sv, "UTF-16 text: convert it to UTF-8 first"},
    {"\xfe\xff"sv, "UTF-16 text: convert it to UTF-8 first"},
    {"\x80\x02"sv, "a Python pickle"},
    {"\x80\x04"sv, "a Python pickle"},
    {"\x80\x05"sv, "a Python pickle"},
    {"#!"sv, "a script"},
    {"<!DOCTYPE"sv, "a web page"},
    {"<html"sv, "a web page"},
};

bool is_text(unsigned char c) { return c >= ' ' ? c != 0x7f : c == '\n' || c == '\r' || c == '\t' || c == 0x1b; }

}  // namespace

std::string_view what_it_looks_like(std::string_view head) {
  if (head.empty()) return "empty";
  if (std::ranges::all_of(head, [](char c) { return c == '\0'; })) return "nothing but NUL bytes";
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return "a tar archive: unpack it first";
  for (const Signature& signature : kSignatures) {
    if (head.starts_with(signature.bytes)) return signature.name;
  }
  const auto odd = std::ranges::count_if(head, [](char c) { return !is_text(static_cast<unsigned char>(c)); });
  return static_cast<std::size_t>(odd) * 20 > head.size() ? "binary data of no known form" : "text of no known form";
}

}  // namespace lockstep
