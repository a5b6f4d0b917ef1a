// SPDX-License-Identifier: Apache-2.0
//
// Plan -> file, front to back in one go: kernels, weights, table, measured figures; the header, for
// which room is left at the front, comes last. Constants with the same bytes are stored once.
#include <cstring>
#include <map>

#include "artifact/Artifact.h"
#include "artifact/ArtifactFormat.h"
#include "artifact/PlanCheck.h"
#include "artifact/Table.h"

namespace dovetail {

namespace {

constexpr uint64_t kKernelAlignment = 64;
constexpr uint64_t kSmallConstant = 4096; // below this, constants share pages

class ArtifactWriter {
public:
  ArtifactWriter(const Plan &plan, AtomicFile &file) : plan(plan), file(file) {}
  Status write(const ArtifactOptions &options);

private:
  Status open(SectionKind kind) {
    if (Status status = file.pad(kSectionAlignment); !status)
      return status;
    header.sections[kind].offset = file.position();
    return Status::success();
  }
  void close(SectionKind kind) {
    header.sections[kind].bytes = file.position() - header.sections[kind].offset;
  }
  Status section(SectionKind kind, std::string_view content) {
    if (Status status = open(kind); !status)
      return status;
    if (Status status = file.write(content); !status)
      return status;
    close(kind);
    return Status::success();
  }
  Status kernelSection();
  Status weightSection();

  const Plan &plan;
  AtomicFile &file;
  ArtifactHeader header{};
  std::vector<StoredBytes> kernels, constants;
  std::string kernelBytes;
};

Status ArtifactWriter::kernelSection() {
  for (const KernelBytes &kernel : plan.kernels) {
    kernelBytes.resize((kernelBytes.size() + kKernelAlignment - 1) / kKernelAlignment *
                       kKernelAlignment);
    kernels.push_back({kernelBytes.size(), kernel.size(), {}});
    kernelBytes.append(reinterpret_cast<const char *>(kernel.data()), kernel.size());
  }
  return section(KernelSection, kernelBytes);
}

Status ArtifactWriter::weightSection() {
  if (Status status = open(WeightSection); !status)
    return status;
  uint64_t start = file.position();
  std::map<std::pair<Digest, uint64_t>, uint64_t> stored;
  for (const PlanConstant &constant : plan.constants) {
    Digest digest = digestOf(constant.data, constant.bytes);
    auto [found, isNew] = stored.try_emplace({digest, constant.bytes}, 0);
    if (isNew) {
      if (Status status = file.pad(constant.bytes < kSmallConstant ? 64 : kSectionAlignment);
          !status)
        return status;
      found->second = file.position() - start;
      if (Status status = file.write(constant.data, constant.bytes); !status)
        return status;
    }
    constants.push_back({found->second, constant.bytes, digest});
  }
  close(WeightSection);
  return Status::success();
}

Status ArtifactWriter::write(const ArtifactOptions &options) {
  header.magic = kArtifactMagic;
  header.formatVersion = kFormatVersion;
  header.sectionCount = SectionCount;
  if (Status status = file.write(&header, sizeof(header)); !status)
    return status;
  if (Status status = kernelSection(); !status)
    return status;
  if (Status status = weightSection(); !status)
    return status;
  std::string table = planTable(plan, constants, kernels);
  if (table.size() > INT32_MAX)
    return badInput("the plan's table has {} bytes: at most 2 GiB are supported", table.size());
  if (Status status = section(TableSection, table); !status)
    return status;
  std::string measured;
  if (options.measured)
    measured = measuredTable(plan);
  if (Status status = section(MeasuredSection, measured); !status)
    return status;

  Hasher planHash;
  planHash.update(table);
  planHash.update(kernelBytes);
  header.planDigest = planHash.digest();
  header.measuredDigest = digestOf(measured.data(), measured.size());
  header.fileBytes = file.position();
  header.headerDigest = digestOf(&header, offsetof(ArtifactHeader, headerDigest));
  if (Status status = file.rewrite(0, &header, sizeof(header)); !status)
    return status;
  return file.commit();
}

} // namespace

Status writeArtifact(const Plan &plan, const std::string &path, const ArtifactOptions &options) {
  if (auto checked = checkPlan(plan); !checked)
    return internalError("the plan cannot be written: {}", checked.error().message);
  auto file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  return ArtifactWriter(plan, **file).write(options);
}

} // namespace dovetail
