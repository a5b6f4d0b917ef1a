// SPDX-License-Identifier: Apache-2.0
//
// The .npy header is a Python dictionary literal of three known keys; everything else in it is
// refused.
#include "driver/Arrays.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <regex>

#include <unistd.h>
#include <zip.h>

#include "support/File.h"
#include "support/Problem.h"

namespace dovetail {
namespace {

constexpr size_t kLongestHeader = 2048;

struct TypeCode {
  const char *code; ///< as NumPy writes it on this little-endian machine
  dvt_type type;
};
constexpr TypeCode kTypes[] = {{"<f4", DVT_F32},  {"<f8", DVT_F64}, {"<f2", DVT_F16},
                               {"|b1", DVT_BOOL}, {"|i1", DVT_I8},  {"<i2", DVT_I16},
                               {"<i4", DVT_I32},  {"<i8", DVT_I64}, {"|u1", DVT_U8},
                               {"<u2", DVT_U16},  {"<u4", DVT_U32}, {"<u8", DVT_U64}};

struct NpyHeader {
  std::string code; ///< empty: the header is not understood
  std::string shape;
  bool fortran = false;
};

/// Understands exactly the three keys that the format defines, each once, in any order.
NpyHeader parseHeader(const std::string &text) {
  static const std::regex whole(
      R"(\s*\{(\s*'\w+'\s*:\s*('[^']*'|True|False|\([^()]*\))\s*,?)+\s*\}\s*)");
  static const std::regex entry(R"('(\w+)'\s*:\s*('[^']*'|True|False|\([^()]*\)))");
  NpyHeader header;
  if (text.size() > kLongestHeader || !std::regex_match(text, whole))
    return {};
  std::map<std::string, std::string> entries;
  for (std::sregex_iterator it(text.begin(), text.end(), entry), end; it != end; ++it)
    if (!entries.emplace((*it)[1], (*it)[2]).second)
      return {};
  const std::string &code = entries["descr"], &order = entries["fortran_order"];
  header.shape = entries["shape"];
  bool understood = entries.size() == 3 && code.size() > 2 && code.front() == '\'' &&
                    (order == "True" || order == "False") && header.shape.starts_with('(');
  if (!understood)
    return {};
  header.code = code.substr(1, code.size() - 2);
  header.shape = header.shape.substr(1, header.shape.size() - 2);
  header.fortran = order == "True";
  return header;
}

/// Big-endian elements to little-endian ones.
void swapBytes(std::vector<uint8_t> &bytes, size_t elementBytes) {
  for (size_t at = 0; at + elementBytes <= bytes.size(); at += elementBytes)
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                 bytes.begin() + static_cast<ptrdiff_t>(at + elementBytes));
}

/// Column-major bytes to row-major.
std::vector<uint8_t> transposed(const uint8_t *from, const std::vector<int64_t> &extents,
                                size_t elementBytes) {
  size_t count = 1;
  for (int64_t extent : extents)
    count *= static_cast<size_t>(extent);
  std::vector<uint8_t> to(count * elementBytes);
  std::vector<int64_t> index(extents.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    size_t offset = 0, stride = 1;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      offset += static_cast<size_t>(index[axis]) * stride;
      stride *= static_cast<size_t>(extents[axis]);
    }
    std::memcpy(&to[i * elementBytes], from + offset * elementBytes, elementBytes);
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (++index[axis] < extents[axis])
        break;
      index[axis] = 0;
    }
  }
  return to;
}

Expected<Array> parseNpy(const uint8_t *data, size_t size, const std::string &name) {
  auto bad = [&](const char *what) {
    return badInput("{}: {}; expected an array written by numpy.save", name, what);
  };
  if (size < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return bad("not a .npy file");
  size_t headerBytes, at;
  if (data[6] == 1 && data[7] == 0) {
    headerBytes = data[8] | data[9] << 8;
    at = 10;
  } else if ((data[6] == 2 || data[6] == 3) && data[7] == 0 && size >= 12) {
    headerBytes = data[8] | data[9] << 8 | data[10] << 16 | static_cast<size_t>(data[11]) << 24;
    at = 12;
  } else {
    return bad("an unknown version of the .npy format");
  }
  if (headerBytes > size - at)
    return bad("the file is cut short");
  std::string text(reinterpret_cast<const char *>(data + at), headerBytes);
  if (text.find("'descr': [") != std::string::npos)
    return bad("structured arrays are not supported");
  NpyHeader header = parseHeader(text);
  if (header.code.empty())
    return bad("its header is damaged");
  std::string code = header.code;
  bool bigEndian = code[0] == '>';
  if (bigEndian)
    code[0] = '<';
  auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                           [&](const TypeCode &t) { return code == t.code; });
  if (type == std::end(kTypes))
    return badInput(
        "{}: element type '{}' is not supported; use float16/32/64, int8..64, uint8..64 or bool",
        name, header.code);
  Array array;
  array.type = type->type;
  const std::string &shape = header.shape;
  uint64_t count = 1;
  for (size_t from = 0; from < shape.size();) {
    size_t comma = std::min(shape.find(',', from), shape.size());
    std::string number = shape.substr(from, comma - from);
    number.erase(std::remove(number.begin(), number.end(), ' '), number.end());
    from = comma + 1;
    if (number.empty())
      continue;
    if (number.size() > 15 || !std::all_of(number.begin(), number.end(), ::isdigit))
      return bad("its header states an impossible shape");
    array.extents.push_back(std::stoll(number));
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(array.extents.back()), &count))
      return bad("its header states an impossible shape");
  }
  size_t elementBytes = typeBits(array.type) / 8;
  size_t there = size - at - headerBytes;
  if (count > there / elementBytes)
    return bad("the file is cut short");
  if (count * elementBytes != there)
    return bad("there are more bytes than its header states");
  const uint8_t *elements = data + at + headerBytes;
  if (header.fortran && array.extents.size() > 1)
    array.bytes = transposed(elements, array.extents, elementBytes);
  else
    array.bytes.assign(elements, elements + there);
  if (bigEndian)
    swapBytes(array.bytes, elementBytes);
  return array;
}

std::string npyBytes(const Array &array) {
  dvt_type type = array.type == DVT_BF16 ? DVT_U16 : array.type;
  auto code = std::find_if(std::begin(kTypes), std::end(kTypes),
                           [&](const TypeCode &t) { return t.type == type; });
  std::string shape;
  for (int64_t extent : array.extents)
    shape += fmt::format("{}, ", extent);
  if (array.extents.size() > 1)
    shape.resize(shape.size() - 2);
  else if (!shape.empty())
    shape.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   code == std::end(kTypes) ? "|u1" : code->code, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\0", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char *>(array.bytes.data()), array.bytes.size());
  return bytes;
}

} // namespace

Expected<Array> readNpy(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return parseNpy((*file)->data(), (*file)->size(), path);
}

Expected<std::map<std::string, Array>> readNpz(const std::string &path) {
  int code = 0;
  std::unique_ptr<zip_t, void (*)(zip_t *)> archive(zip_open(path.c_str(), ZIP_RDONLY, &code),
                                                    zip_discard);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    return badInput("{}: cannot be read as .npz: {}; expected a file written by numpy.savez", path,
                    reason);
  }
  std::map<std::string, Array> arrays;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t entry;
    if (zip_stat_index(archive.get(), i, 0, &entry) != 0)
      return badInput("{}: its directory is damaged", path);
    std::string name = entry.name;
    constexpr uint64_t kLimit = uint64_t(1) << 36, kMostExpansion = 1100; // deflate's is 1032
    if (entry.size > kLimit || entry.size / kMostExpansion > entry.comp_size)
      return badInput("{}: entry '{}' states {} bytes, more than is supported", path, name,
                      entry.size);
    std::unique_ptr<zip_file_t, int (*)(zip_file_t *)> file(zip_fopen_index(archive.get(), i, 0),
                                                            zip_fclose);
    std::vector<uint8_t> bytes(entry.size);
    uint64_t have = 0;
    while (file && have < bytes.size()) {
      zip_int64_t got = zip_fread(file.get(), bytes.data() + have, bytes.size() - have);
      if (got <= 0)
        break;
      have += static_cast<uint64_t>(got);
    }
    // Only at its end is an entry's checksum compared.
    uint8_t beyond = 0;
    if (!file || have != bytes.size() || zip_fread(file.get(), &beyond, 1) != 0)
      return badInput("{}: entry '{}' is cut short or damaged", path, name);
    auto array = parseNpy(bytes.data(), bytes.size(), fmt::format("{}: entry '{}'", path, name));
    if (!array)
      return array.takeError();
    if (name.size() > 4 && name.ends_with(".npy"))
      name.resize(name.size() - 4);
    arrays[name] = std::move(*array);
  }
  return arrays;
}

Status writeNpz(const std::string &path, const std::vector<std::pair<std::string, Array>> &arrays) {
  if (Status status = checkWritable(path); !status)
    return status;
  int code = 0;
  std::string temporary = fmt::format("{}.part{}", path, ::getpid());
  std::unique_ptr<zip_t, void (*)(zip_t *)> archive(
      zip_open(temporary.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code), zip_discard);
  auto fail = [&](const std::string &reason) {
    std::error_code ignored;
    archive.reset();
    std::filesystem::remove(temporary, ignored);
    return unavailable("cannot write {}: {}", path, reason);
  };
  if (!archive)
    return fail(std::strerror(errno));
  std::vector<std::string> contents;
  contents.reserve(arrays.size());
  for (const auto &[name, array] : arrays) {
    contents.push_back(npyBytes(array));
    zip_source_t *source =
        zip_source_buffer(archive.get(), contents.back().data(), contents.back().size(), 0);
    zip_int64_t index =
        source ? zip_file_add(archive.get(), (name + ".npy").c_str(), source, ZIP_FL_OVERWRITE)
               : -1;
    if (index < 0) {
      zip_source_free(source);
      return fail(zip_strerror(archive.get()));
    }
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0)
    return fail(zip_strerror(archive.get()));
  (void)archive.release();
  std::error_code failure;
  std::filesystem::rename(temporary, path, failure);
  if (failure)
    return fail(failure.message());
  return Status::success();
}

Status writeNpy(const std::string &path, const Array &array) {
  return writeFile(path, npyBytes(array));
}

} // namespace dovetail
