// SPDX-License-Identifier: Apache-2.0
//
// Objects and what is asked of them. LtProduct.cpp does the products.
#include "LtLibrary.h"

#include <cstdlib>
#include <cstring>

#include "LibraryWork.h"
#include "LtProduct.h"

namespace simulated::lt {
namespace {

constexpr uint64_t kAlgorithmMark = 0x4c74416c67000000;
constexpr uint64_t kPartsBytes = 4096; ///< workspace of the algorithm that adds up parts

void *disguised(uint64_t number) { return reinterpret_cast<void *>(number); }

const char *nameOf(Kind kind) {
  switch (kind) {
  case Kind::Handle:
    return "handle";
  case Kind::Layout:
    return "layout";
  case Kind::Matmul:
    return "description of a product";
  case Kind::Preference:
    break;
  }
  return "preference";
}

} // namespace

Outcome LtLibrary::refuse(Outcome outcome, const std::string &why) {
  lastReason = why;
  return outcome;
}

const char *LtLibrary::reason() { return lastReason.c_str(); }

uint64_t LtLibrary::liveObjects() {
  const std::lock_guard guard(mutex);
  return objects.size();
}

Outcome LtLibrary::create(void **to, Object object) {
  const std::lock_guard guard(mutex);
  if (!to)
    return refuse(Outcome::Invalid, std::string("no place for a ") + nameOf(object.kind));
  *to = disguised(next);
  objects[next++] = std::move(object);
  return Outcome::Success;
}

Object *LtLibrary::find(void *object, Kind kind) {
  const auto found = objects.find(reinterpret_cast<uint64_t>(object));
  if (found != objects.end() && found->second.kind == kind)
    return &found->second;
  refuse(Outcome::Invalid, std::string("there is no such ") + nameOf(kind));
  return nullptr;
}

Outcome LtLibrary::createHandle(void **handle) {
  if (!LoadedDriver::beside(reinterpret_cast<const void *>(&kPartsBytes), numbers.driver)
           .isLoaded())
    return refuse(Outcome::NotInitialized, "there is no simulated driver in this process");
  return create(handle, {});
}

Outcome LtLibrary::checkHandle(void *handle) {
  const std::lock_guard guard(mutex);
  return find(handle, Kind::Handle) ? Outcome::Success : Outcome::NotInitialized;
}

Outcome LtLibrary::createLayout(void **layout, int type, uint64_t rows, uint64_t columns,
                                int64_t leading) {
  if (!numbers.types.count(type))
    return refuse(Outcome::NotSupported, "a matrix of type " + std::to_string(type));
  if (rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows))
    return refuse(Outcome::Invalid, "a matrix of " + std::to_string(rows) + " x " +
                                        std::to_string(columns) + " with columns " +
                                        std::to_string(leading) + " apart");
  Object object;
  object.kind = Kind::Layout;
  object.type = type;
  object.rows = rows;
  object.columns = columns;
  object.leading = leading;
  object.values[Attribute::BatchCount] = 1;
  return create(layout, std::move(object));
}

Outcome LtLibrary::createMatmul(void **matmul, int compute, int scaleType) {
  const auto scale = numbers.types.find(scaleType);
  if ((compute != numbers.computeFloat32 && compute != numbers.computeTf32) ||
      scale == numbers.types.end() || scale->second != DVT_F32)
    return refuse(Outcome::NotSupported, "computing in type " + std::to_string(compute) +
                                             " with scales of type " + std::to_string(scaleType));
  Object object;
  object.kind = Kind::Matmul;
  object.compute = compute;
  object.values[Attribute::TransA] = object.values[Attribute::TransB] =
      static_cast<uint64_t>(numbers.none);
  object.values[Attribute::Epilogue] = 1;
  return create(matmul, std::move(object));
}

Outcome LtLibrary::createPreference(void **preference) {
  Object object;
  object.kind = Kind::Preference;
  object.values[Attribute::Reductions] = numbers.everyReduction;
  for (Attribute attribute :
       {Attribute::AlignmentA, Attribute::AlignmentB, Attribute::AlignmentC, Attribute::AlignmentD})
    object.values[attribute] = numbers.defaultAlignment;
  return create(preference, std::move(object));
}

Outcome LtLibrary::destroy(void *object, Kind kind) {
  const std::lock_guard guard(mutex);
  if (!find(object, kind))
    return Outcome::Invalid;
  objects.erase(reinterpret_cast<uint64_t>(object));
  return Outcome::Success;
}

Outcome LtLibrary::set(void *object, Kind kind, int attribute, const void *value, size_t bytes) {
  const std::lock_guard guard(mutex);
  Object *found = find(object, kind);
  if (!found)
    return Outcome::Invalid;
  const auto known = numbers.attributes.find({kind, attribute});
  if (known == numbers.attributes.end())
    return refuse(Outcome::Invalid, std::string("a ") + nameOf(kind) + " has no attribute " +
                                        std::to_string(attribute));
  const auto [meaning, size] = known->second;
  if (!value || bytes != size)
    return refuse(Outcome::Invalid, "attribute " + std::to_string(attribute) + " of a " +
                                        nameOf(kind) + " has " + std::to_string(size) +
                                        " bytes, given " + std::to_string(bytes));
  uint64_t number = 0;
  std::memcpy(&number, value, bytes);
  found->values[meaning] = number;
  return Outcome::Success;
}

Outcome LtLibrary::read(Product &product, void *matmul, void *const layouts[4]) {
  const Object *what = find(matmul, Kind::Matmul);
  if (!what)
    return Outcome::Invalid;
  for (size_t i = 0; i < 4; ++i) {
    const Object *layout = find(layouts[i], Kind::Layout);
    if (!layout)
      return Outcome::Invalid;
    product.matrices[i] = {numbers.types.at(layout->type),
                           layout->rows,
                           layout->columns,
                           layout->leading,
                           layout->values.at(Attribute::BatchCount),
                           layout->values.count(Attribute::BatchStride)
                               ? static_cast<int64_t>(layout->values.at(Attribute::BatchStride))
                               : 0};
  }
  for (size_t i = 0; i < 2; ++i) {
    const auto trans =
        static_cast<int>(what->values.at(i == 0 ? Attribute::TransA : Attribute::TransB));
    if (trans != numbers.none && trans != numbers.transpose)
      return refuse(Outcome::Invalid, "transposition " + std::to_string(trans) + " is none");
    product.transposed[i] = trans == numbers.transpose;
  }
  product.isTf32 = what->compute == numbers.computeTf32;
  product.epilogue = static_cast<uint32_t>(what->values.at(Attribute::Epilogue));
  if (const auto bias = what->values.find(Attribute::BiasPointer); bias != what->values.end())
    product.bias = disguised(bias->second);
  if (const auto type = what->values.find(Attribute::BiasType); type != what->values.end())
    product.biasType = numbers.types.count(static_cast<int>(type->second))
                           ? numbers.types.at(static_cast<int>(type->second))
                           : DVT_UNDEFINED;
  const std::string why = product.check();
  return why.empty() ? Outcome::Success : refuse(Outcome::Invalid, why);
}

Outcome LtLibrary::findAlgorithms(void *handle, void *matmul, void *const layouts[4],
                                  void *preference, int most, void *answers, int *count) {
  const std::lock_guard guard(mutex);
  if (!find(handle, Kind::Handle))
    return Outcome::NotInitialized;
  Product product;
  if (Outcome outcome = read(product, matmul, layouts); outcome != Outcome::Success)
    return outcome;
  const Object *wanted = find(preference, Kind::Preference);
  if (!wanted || most < 1 || !answers || !count)
    return refuse(Outcome::Invalid, "asked for no algorithm, or nowhere to put it");
  *count = 0;
  if (std::getenv("DOVETAIL_SIMULATED_LT_NO_ALGORITHM"))
    return refuse(Outcome::NotSupported, "the environment wants no algorithm");
  const auto limit = wanted->values.count(Attribute::Workspace)
                         ? wanted->values.at(Attribute::Workspace)
                         : uint64_t{0};
  // The first is one that will not run; what it needs is nonsense.
  std::vector<std::pair<uint64_t, int>> offers = {{UINT64_MAX, numbers.notSupported}};
  if (limit >= kPartsBytes)
    offers.emplace_back(kPartsBytes, 0);
  offers.emplace_back(0, 0);
  for (const auto &[workspace, state] : offers) {
    if (*count == most)
      break;
    Algorithm algorithm{product.text(), workspace, {}};
    constexpr Attribute kAlignments[] = {Attribute::AlignmentA, Attribute::AlignmentB,
                                         Attribute::AlignmentC, Attribute::AlignmentD};
    for (size_t i = 0; i < 4; ++i)
      algorithm.alignments[i] = wanted->values.at(kAlignments[i]);
    char *answer = static_cast<char *>(answers) + static_cast<size_t>(*count) * numbers.answerBytes;
    const uint64_t mark = kAlgorithmMark + algorithms.size();
    std::memset(answer, 0xCD, numbers.answerBytes);
    std::memcpy(answer, &mark, sizeof mark);
    std::memcpy(answer + numbers.workspaceOffset, &workspace, sizeof workspace);
    std::memcpy(answer + numbers.stateOffset, &state, sizeof state);
    algorithms.push_back(std::move(algorithm));
    ++*count;
  }
  return Outcome::Success;
}

Outcome LtLibrary::checkMemory(const Product &product, const Call &call,
                               const Algorithm &algorithm) {
  for (size_t i = 0; i < 4; ++i)
    if (reinterpret_cast<uint64_t>(call.data[i]) % algorithm.alignments[i] != 0)
      return refuse(Outcome::Invalid, std::string("matrix ") + "abcd"[i] +
                                          " is not aligned as the heuristics were told");
  if (call.workspaceBytes < algorithm.workspace || (algorithm.workspace && !call.workspace))
    return refuse(Outcome::Invalid, "the algorithm needs " + std::to_string(algorithm.workspace) +
                                        " bytes of workspace, given " +
                                        std::to_string(call.workspaceBytes));
  if (reinterpret_cast<uint64_t>(call.workspace) % numbers.workspaceAlignment != 0)
    return refuse(Outcome::Invalid, "the workspace is not aligned to " +
                                        std::to_string(numbers.workspaceAlignment) + " bytes");
  const std::string why = product.checkOverlap(call.data);
  return why.empty() ? Outcome::Success : refuse(Outcome::Invalid, why);
}

Outcome LtLibrary::multiply(const Call &call) {
  const std::lock_guard guard(mutex);
  if (!find(call.handle, Kind::Handle))
    return Outcome::NotInitialized;
  Product product;
  if (Outcome outcome = read(product, call.matmul, call.layouts); outcome != Outcome::Success)
    return outcome;
  if (!call.alpha || !call.beta || !call.algorithm)
    return refuse(Outcome::Invalid, "there is no scale, or no algorithm");
  uint64_t mark = 0;
  std::memcpy(&mark, call.algorithm, sizeof mark);
  if (mark - kAlgorithmMark >= algorithms.size())
    return refuse(Outcome::Invalid, "the algorithm is none that the heuristics gave");
  const Algorithm &algorithm = algorithms[mark - kAlgorithmMark];
  if (algorithm.workspace == UINT64_MAX || algorithm.product != product.text())
    return refuse(Outcome::Invalid,
                  "the algorithm is for " + algorithm.product + ", not for " + product.text());
  if (Outcome outcome = checkMemory(product, call, algorithm); outcome != Outcome::Success)
    return outcome;
  std::memcpy(&product.alpha, call.alpha, sizeof product.alpha);
  std::memcpy(&product.beta, call.beta, sizeof product.beta);
  for (size_t i = 0; i < 4; ++i)
    product.data[i] = call.data[i];
  std::vector<Range> ranges = product.ranges();
  void *workspace = call.workspace;
  const uint64_t bytes = algorithm.workspace;
  if (bytes)
    ranges.push_back({"workspace", workspace, bytes});
  const std::string refused =
      LoadedDriver::beside(reinterpret_cast<const void *>(&kPartsBytes), numbers.driver)
          .enqueue(numbers.prefix + "Matmul", call.stream, ranges, [product, workspace, bytes] {
            if (bytes)
              std::memset(workspace, 0xEE, bytes);
            product.compute();
          });
  return refused.empty() ? Outcome::Success : refuse(Outcome::Failed, refused);
}

} // namespace simulated::lt
