// SPDX-License-Identifier: Apache-2.0
//
// Bytes as an artifact: reading never crashes, and what passes the checks loads and runs or is
// refused. Half of the mutations make the digests fit again, so that the table's verifier and the
// plan's checks are what stands between the damage and the runtime.
#include <filesystem>
#include <random>

#include <sys/mman.h>
#include <unistd.h>

#include "artifact/Reseal.h"
#include "fuzz/FuzzTarget.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

uint64_t readCount = 0;

/// A plan with a bit of everything: symbols, views, shape data, a fallback, bodies.
Plan samplePlan() {
  PlanMaker maker;
  Extent n = Extent::symbol("N");
  maker.plan.symbols["N"] = {1, 64, 1};
  uint32_t x = maker.input("x", {n, 3});
  maker.symbol("N", x, 0, {1, 64, 1});
  uint32_t w = maker.constant(noise(12), {3, 4});
  uint32_t t = maker.value({n, 4}), u = maker.value({n, 4});
  maker.step("mat_mul", {x, w}, {t});
  PlanStep &relu = maker.step("relu", {t}, {u}, "transposed");
  relu.fallback = relu.choice;
  relu.fallback->candidate.provider = "spare";
  uint32_t v = maker.view(u, {Extent(2) * n, 2});
  maker.step("add", {v, v}, {maker.outputValue("y", {Extent(2) * n, 2})});
  maker.shapeData({n}, maker.outputValue("s", {1}, DVT_I64));
  // A scan over the rows of t, with the sum of those so far, doubled where one is the other.
  uint32_t first = maker.constant(noise(4), {4});
  uint32_t total = maker.outputValue("total", {4}), sums = maker.outputValue("sums", {4, n});
  uint32_t body = maker.beginBody();
  uint32_t sum = maker.input("sum", {4}), row = maker.input("row", {4});
  uint32_t flag = maker.input("flag", {}, DVT_BOOL);
  uint32_t next = maker.value({4}), kept = maker.outputValue("kept", {4});
  maker.step("add", {sum, row}, {next});
  std::vector<uint32_t> branches;
  for (const char *op : {"relu", "add"}) {
    branches.push_back(maker.beginBody());
    uint32_t taken = maker.input("taken", {4});
    maker.step(op, op == std::string("add") ? std::vector{taken, taken} : std::vector{taken},
               {maker.outputValue("given", {4})});
  }
  maker.continueBlock(body);
  maker.control(StepKind::If, {flag, next}, {kept}, branches);
  maker.copy(next, maker.outputValue("shown", {4}));
  maker.continueBlock(0);
  uint32_t condition = maker.outputValue("condition", {}, DVT_BOOL);
  maker.copy(maker.input("given condition", {}, DVT_BOOL), condition);
  maker.control(StepKind::Scan, {first, t, condition}, {total, sums}, {body}, 1,
                {{0, true}, {1, false}});
  maker.plan.kernels = {{1, 2, 3, 4}};
  maker.plan.reports.emplace_back().ops = "x";
  return maker.take();
}

void damage(std::string &bytes, const ArtifactSection &table, fuzz::Random &random) {
  auto at = [&]() -> size_t {
    switch (random() % 4) {
    case 0:
      return random() % sizeof(ArtifactHeader);
    case 1:
      return random() % bytes.size();
    default: // most of what can go wrong stands in the table
      return table.offset + random() % table.bytes;
    }
  };
  switch (random() % 6) {
  case 0:
    bytes.resize(random() % bytes.size() + 1);
    break;
  case 1: {
    size_t from = at(), to = at(), count = random() % 32;
    for (size_t i = 0; i < count && std::max(from, to) + i < bytes.size(); ++i)
      bytes[to + i] = bytes[from + i];
    break;
  }
  case 2: {
    static const uint64_t numbers[] = {0, 1, 0x7fffffff, 0xffffffff, UINT64_MAX, uint64_t(1) << 46};
    uint64_t number = numbers[random() % std::size(numbers)];
    size_t place = at() / 4 * 4;
    if (place + 8 <= bytes.size())
      std::memcpy(bytes.data() + place, &number, random() % 2 ? 8 : 4);
    break;
  }
  default:
    bytes[at() % bytes.size()] ^= 1 << random() % 8;
  }
}

/// One file in memory, written anew for each input: thousands of files would keep the disk busy.
class MemoryFile {
public:
  MemoryFile() : descriptor(::memfd_create("artifact", 0)) {}
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }
  bool hold(const uint8_t *data, size_t size) const {
    return ::ftruncate(descriptor, static_cast<off_t>(size)) == 0 &&
           ::pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size);
  }

private:
  int descriptor;
};

void loadAndRun(const std::string &path) {
  static const ModelOptions options = toyOptions();
  auto model = Model::load(path, options);
  if (!model)
    return;
  const PlanBlock &block = (*model)->plan().blocks[0];
  auto session = Session::create(*model);
  if (!session || block.inputs.size() != 2 || block.values[block.inputs[0]].extents.size() != 2)
    return;
  for (const PlanBlock &each : (*model)->plan().blocks)
    for (const PlanStep &step : each.steps)
      if (step.kind == StepKind::Loop)
        return; // it may have no end
  Aligned<float> x(64 * 64), condition(64 * 64);
  const int64_t extents[] = {5, 3};
  if ((*session)->bindInput(0, x.data(), extents) && (*session)->bindInput(1, condition.data(), {}))
    (void)bool((*session)->run());
}

} // namespace

std::vector<std::string> fuzz::seeds() {
  std::string path =
      std::filesystem::temp_directory_path() / fmt::format("dovetail-fuzz-{}.dvt", ::getpid());
  fuzz::require(bool(writeArtifact(samplePlan(), path)), "the sample plan cannot be written");
  std::string bytes = *readFile(path);
  std::filesystem::remove(path);
  return {bytes};
}

uint64_t fuzz::accepted() { return readCount; }

void fuzz::mutate(std::string &bytes, Random &random) {
  if (bytes.size() < sizeof(ArtifactHeader))
    return;
  ArtifactHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  ArtifactSection table = header.sections[TableSection];
  if (table.bytes == 0 || table.offset > bytes.size() || table.bytes > bytes.size() - table.offset)
    table = {0, bytes.size()};
  for (unsigned k = random() % 3 + 1; k > 0 && !bytes.empty(); --k)
    damage(bytes, table, random);
  if (random() % 2)
    reseal(bytes);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const MemoryFile file;
  if (!file.hold(data, size))
    return 0;
  auto artifact = readArtifact(file.path());
  if (!artifact) {
    fuzz::require(!artifact.error().message.empty(), "refused without a message");
    fuzz::require(artifact.error().kind == ErrorKind::BadInput, "refused as no fault of the file");
    return 0;
  }
  ++readCount;
  loadAndRun(file.path());
  return 0;
}
