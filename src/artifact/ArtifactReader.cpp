// SPDX-License-Identifier: Apache-2.0
//
// File -> plan. The header, the table and the kernels are checked in full; weights are only
// located, so that opening a model of many gigabytes reads none of them.
#include <algorithm>
#include <cstring>
#include <set>

#include "artifact/Artifact.h"
#include "artifact/ArtifactFormat.h"
#include "artifact/PlanCheck.h"
#include "artifact/Table.h"

namespace dovetail {

namespace {

/// Whether `inner` lies in `outerBytes` bytes.
bool fits(uint64_t offset, uint64_t bytes, uint64_t outerBytes) {
  return offset <= outerBytes && bytes <= outerBytes - offset;
}

bool isZero(const uint8_t *from, uint64_t bytes) {
  return std::all_of(from, from + bytes, [](uint8_t byte) { return byte == 0; });
}

/// Whether the bytes between the sections are zero, as they were written.
bool gapsAreZero(const MappedFile &file, const ArtifactHeader &header) {
  std::vector<ArtifactSection> sections(std::begin(header.sections), std::end(header.sections));
  sections.push_back({header.fileBytes, 0});
  std::sort(sections.begin(), sections.end(),
            [](const auto &a, const auto &b) { return a.offset < b.offset; });
  uint64_t at = sizeof(header);
  for (const ArtifactSection &section : sections) {
    if (section.offset > at && !isZero(file.data() + at, section.offset - at))
      return false;
    at = std::max(at, section.offset + section.bytes);
  }
  return true;
}

/// For each constant, the bytes between its end and what is stored next.
std::vector<uint64_t> gapsAfter(const std::vector<StoredBytes> &constants, uint64_t sectionBytes) {
  std::set<uint64_t> starts{sectionBytes};
  for (const StoredBytes &constant : constants)
    starts.insert(constant.offset);
  std::vector<uint64_t> gaps;
  for (const StoredBytes &constant : constants) {
    uint64_t end = constant.offset + constant.bytes;
    gaps.push_back(*starts.lower_bound(end) - end);
  }
  return gaps;
}

Expected<ArtifactHeader> readHeader(const MappedFile &file) {
  const std::string &path = file.path();
  if (file.size() < sizeof(ArtifactHeader::magic) ||
      std::memcmp(file.data(), kArtifactMagic.data(), kArtifactMagic.size()) != 0)
    return badInput("{}: not a compiled model", path);
  ArtifactHeader header{};
  std::memcpy(&header, file.data(), std::min<uint64_t>(file.size(), sizeof(header)));
  if (file.size() < 16)
    return badInput("{}: cut short, {} bytes are left; compile the model again", path, file.size());
  if (header.formatVersion != kFormatVersion)
    return badInput("{}: written in format version {}, this is version {}; compile the model again",
                    path, header.formatVersion, kFormatVersion);
  if (file.size() < sizeof(header))
    return badInput("{}: cut short, {} bytes are left; compile the model again", path, file.size());
  if (header.headerDigest != digestOf(&header, offsetof(ArtifactHeader, headerDigest)) ||
      header.sectionCount != SectionCount)
    return badInput("{}: its header was altered or is damaged; compile the model again", path);
  if (file.size() < header.fileBytes)
    return badInput("{}: cut short, {} of {} bytes are left; compile the model again", path,
                    file.size(), header.fileBytes);
  if (file.size() > header.fileBytes)
    return badInput("{}: {} bytes were appended to it; compile the model again", path,
                    file.size() - header.fileBytes);
  for (const ArtifactSection &section : header.sections)
    if (!fits(section.offset, section.bytes, header.fileBytes) ||
        section.offset % kSectionAlignment != 0)
      return badInput("{}: a section lies outside the file; compile the model again", path);
  if (!gapsAreZero(file, header))
    return badInput("{}: bytes between its sections were altered or are damaged; compile the model "
                    "again",
                    path);
  return header;
}

} // namespace

Status Artifact::checkConstant(uint32_t index) const {
  const PlanConstant &constant = plan.constants[index];
  const auto *begin = static_cast<const uint8_t *>(constant.data);
  file->populate(begin - file->data(), constant.bytes);
  if (digestOf(begin, constant.bytes) == constantDigests[index] &&
      isZero(begin + constant.bytes, constantGaps[index]))
    return Status::success();
  return badInput("{}: the bytes of constant '{}' were altered or are damaged; compile the model "
                  "again",
                  file->path(), constant.name);
}

Expected<Artifact> readArtifact(const std::string &path, const ReadOptions &options) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return readArtifact(std::move(*file), options);
}

Expected<Artifact> readArtifact(std::shared_ptr<MappedFile> file, const ReadOptions &options) {
  auto header = readHeader(*file);
  if (!header)
    return header.takeError();
  const std::string &path = file->path();
  auto at = [&](SectionKind kind) { return file->data() + header->sections[kind].offset; };
  auto sizeOf = [&](SectionKind kind) { return header->sections[kind].bytes; };
  auto damaged = [&](const std::string &why) {
    return badInput("{}: {}; compile the model again", path, why);
  };

  Hasher planHash;
  planHash.update(at(TableSection), sizeOf(TableSection));
  planHash.update(at(KernelSection), sizeOf(KernelSection));
  if (planHash.digest() != header->planDigest)
    return damaged("its table or its kernels were altered or are damaged");

  Artifact artifact;
  artifact.file = file;
  artifact.digest = hexText(header->planDigest);
  artifact.kernelOffset = header->sections[KernelSection].offset;
  artifact.kernelBytes = header->sections[KernelSection].bytes;
  Plan &plan = artifact.plan;
  std::vector<StoredBytes> constants, kernels;
  if (Status status =
          readPlanTable(at(TableSection), sizeOf(TableSection), plan, constants, kernels);
      !status)
    return damaged(status.error().message);
  uint64_t kernelBytes = 0;
  for (const StoredBytes &kernel : kernels) {
    // Kernels do not share bytes, so all together fit, too.
    bool isInside = fits(kernel.offset, kernel.bytes, sizeOf(KernelSection));
    kernelBytes += isInside ? kernel.bytes : 0;
    if (!isInside || kernelBytes > sizeOf(KernelSection))
      return damaged("a kernel lies outside its section");
    plan.kernels.emplace_back(at(KernelSection) + kernel.offset, kernel.bytes, file);
  }
  for (size_t i = 0; i < constants.size(); ++i) {
    if (!fits(constants[i].offset, constants[i].bytes, sizeOf(WeightSection)) ||
        constants[i].offset % 64 != 0)
      return damaged("a constant lies outside its section");
    plan.constants[i].data = at(WeightSection) + constants[i].offset;
    plan.constants[i].owner = file;
    artifact.constantDigests.push_back(constants[i].digest);
  }
  artifact.constantGaps = gapsAfter(constants, sizeOf(WeightSection));
  // Figures that were measured are for people, and may have been left out.
  if (digestOf(at(MeasuredSection), sizeOf(MeasuredSection)) != header->measuredDigest)
    return damaged("its measured figures were altered or are damaged");
  if (Plan measured; sizeOf(MeasuredSection) > 0) {
    if (!readMeasuredTable(at(MeasuredSection), sizeOf(MeasuredSection), options.alternatives,
                           measured))
      return damaged("its measured figures cannot be read");
    plan.reports = std::move(measured.reports);
    plan.timings = std::move(measured.timings);
    plan.planningSeconds = measured.planningSeconds;
    plan.runsPerLoad = measured.runsPerLoad;
    plan.problemsTimed = measured.problemsTimed;
    plan.problemsFromCache = measured.problemsFromCache;
    plan.problemsEstimated = measured.problemsEstimated;
    plan.typicalSizes = std::move(measured.typicalSizes);
  }
  auto problems = checkPlan(plan);
  if (!problems)
    return damaged("its plan is not sound: " + problems.error().message);
  artifact.problems = std::move(*problems);
  return artifact;
}

} // namespace dovetail
