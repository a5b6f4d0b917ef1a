// SPDX-License-Identifier: Apache-2.0
//
// Paths are resolved before they are compared, so that neither ".." nor a symbolic link leads out
// of the model's folder, and only regular files are mapped: opening a pipe or a device would wait
// or have effects.
#include "import/ExternalData.h"

#include <filesystem>

#include "support/File.h"

namespace dovetail::importer {

namespace fs = std::filesystem;

Expected<Bytes> mapFile(const std::string &path) {
  std::error_code code;
  fs::file_status status = fs::status(path, code);
  if (!fs::exists(status))
    return badInput("there is no such file");
  if (!fs::is_regular_file(status))
    return badInput("it is {}, not a file", fs::is_directory(status) ? "a folder" : "special");
  if (fs::file_size(path, code) == 0 && !code)
    return Bytes{};
  Expected<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  const char *data = reinterpret_cast<const char *>((*file)->data());
  return Bytes{{data, (*file)->size()}, *file};
}

Expected<Bytes> mapBeside(const std::string &folder, const std::string &location) {
  if (location.empty() || location.find('\0') != std::string::npos)
    return badInput("its location is not a file name");
  fs::path relative(location);
  if (relative.is_absolute())
    return badInput(
        "its location '{}' is an absolute path; it must be relative to the model's folder",
        location);
  for (const fs::path &part : relative)
    if (part == "..")
      return badInput("its location '{}' leads out of the model's folder", location);

  std::error_code code;
  fs::path base = fs::canonical(folder, code);
  if (code)
    return badInput("cannot resolve the model's folder '{}': {}", folder, code.message());
  fs::path resolved = fs::canonical(base / relative, code);
  if (code)
    return badInput("cannot find '{}' in the model's folder '{}': {}", location, base.string(),
                    code.message());
  fs::path inside = resolved.lexically_relative(base);
  if (inside.empty() || *inside.begin() == "..")
    return badInput("its location '{}' is a link that leads out of the model's folder", location);
  return mapFile(resolved.string());
}

} // namespace dovetail::importer
