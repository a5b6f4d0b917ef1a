// SPDX-License-Identifier: Apache-2.0
//
// Convolutions: their descriptors, the immediate mode, and trials by algorithm. What was compiled
// or found with one handle is not there for another.
#include "Convolution.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "Arithmetic.h"

using namespace miopen_double;

namespace miopen_double {

std::string ConvTensors::text() const {
  return x->text() + "|" + w->text() + "|" + y->text() + "|" + convolution->text();
}

ConvTensors checked(Entry &entry, Ref x, Ref w, Ref convolution, Ref y) {
  ConvTensors tensors{entry.tensor(x, "x"), entry.tensor(w, "w"), entry.tensor(y, "y"),
                      entry.described(state().convolutions, convolution, "the convolution")};
  check(entry, tensors);
  return tensors;
}

void check(Entry &entry, const ConvTensors &tensors) {
  if (!entry.isFine())
    return;
  const auto &[x, w, y, c] = tensors;
  const size_t rank = x->dims.size(), spatial = c->pads.size();
  entry.need(rank == spatial + 2 && w->dims.size() == rank && y->dims.size() == rank, BadParm,
             "tensors of {}, {} and {} dimensions for {} spatial ones", rank, w->dims.size(),
             y->dims.size(), spatial);
  entry.need(x->type == w->type && x->type == y->type, BadParm, "types do not match");
  entry.need((x->isRowMajor() && w->isRowMajor() && y->isRowMajor()) ||
                 (x->isChannelsLast() && w->isChannelsLast() && y->isChannelsLast()),
             BadParm, "tensors of one convolution lie in one layout");
  if (!entry.isFine())
    return;
  entry.need(w->dims[1] * c->groups == x->dims[1] && w->dims[0] % c->groups == 0 &&
                 y->dims[1] == w->dims[0] && y->dims[0] == x->dims[0],
             BadParm, "channels do not match");
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t room =
        x->dims[i + 2] + 2 * c->pads[i] - (w->dims[i + 2] - 1) * c->dilations[i] - 1;
    entry.need(room >= 0 && y->dims[i + 2] == room / c->strides[i] + 1, BadParm,
               "the result has {} elements in dimension {}", y->dims[i + 2], i + 2);
  }
}

std::vector<Algorithm> algorithmsFor(const ConvTensors &tensors) {
  const auto &[x, w, y, c] = tensors;
  int64_t window = 1, images = 1;
  bool isPlain = c->groups == 1 && x->type != kBFloat16;
  for (size_t i = 0; i < c->pads.size(); ++i) {
    window *= w->dims[i + 2];
    images *= y->dims[i + 2];
    isPlain &= w->dims[i + 2] == 3 && c->strides[i] == 1 && c->dilations[i] == 1;
  }
  std::vector<Algorithm> all;
  if (isPlain)
    all.push_back({11, kWinograd, 0, 0.25F});
  all.push_back({7, kImplicitGemm, x->bytes(), 0.5F});
  all.push_back(
      {5, kGemm, static_cast<uint64_t>(x->dims[1] * window * images * x->elementBytes()), 0.75F});
  all.push_back({3, kDirect, 0, 2.0F});
  return all;
}

void run(Entry &entry, const Handle &handle, const ConvTensors &tensors, const void *x,
         const void *w, void *y, void *workspace, uint64_t bytes, uint64_t needed) {
  if (!entry.isFine())
    return;
  entry.memory(*tensors.x, x, "x");
  entry.memory(*tensors.w, w, "w");
  entry.memory(*tensors.y, y, "y");
  entry.workspace(workspace, bytes, needed);
  entry.apart(*tensors.x, x, *tensors.y, y);
  entry.apart(*tensors.w, w, *tensors.y, y);
  entry.enqueue(handle,
                ranges({{"x", x, tensors.x->bytes()},
                        {"w", w, tensors.w->bytes()},
                        {"y", y, tensors.y->bytes()},
                        {"workspace", workspace, bytes}}),
                [=, xDesc = *tensors.x, wDesc = *tensors.w, yDesc = *tensors.y,
                 convolution = *tensors.convolution] {
                  // Nobody may count on what the workspace held.
                  if (needed > 0)
                    std::memset(workspace, 0x5A, needed);
                  convolve(convolution, xDesc, x, wDesc, w, yDesc, y);
                });
}

} // namespace miopen_double

namespace {

/// Null where there is none of that number; not one of `algorithm` where that is not negative.
const Algorithm *find(const std::vector<Algorithm> &all, uint64_t id, int kind = -1) {
  auto found = std::find_if(all.begin(), all.end(), [&](const Algorithm &each) {
    return kind >= 0 ? each.kind == kind : each.id == id;
  });
  return found == all.end() ? nullptr : &*found;
}

std::string keyOf(const ConvTensors &tensors, uint64_t id) {
  return tensors.text() + "#" + std::to_string(id);
}

} // namespace

MIOPEN_ENTRY int miopenCreateConvolutionDescriptor(Ref *convolution) {
  Entry entry("miopenCreateConvolutionDescriptor");
  if (entry.need(convolution, BadParm, "there is no place for the descriptor"))
    *convolution = state().convolutions.add({});
  return entry.end();
}

MIOPEN_ENTRY int miopenInitConvolutionNdDescriptor(Ref convolution, int spatial, const int *pads,
                                                   const int *strides, const int *dilations,
                                                   int mode) {
  Entry entry("miopenInitConvolutionNdDescriptor");
  Convolution *found = entry.find(state().convolutions, convolution, "convolution descriptor");
  entry.need(spatial == 2 || spatial == 3, BadParm, "{} spatial dimensions", spatial);
  entry.need(mode == 0, BadParm, "mode {} is not a forward convolution", mode);
  for (int i = 0; entry.isFine() && i < spatial; ++i)
    entry.need(pads[i] >= 0 && strides[i] >= 1 && dilations[i] >= 1, BadParm,
               "padding {}, stride {} or dilation {} is none", pads[i], strides[i], dilations[i]);
  if (entry.isFine())
    *found = {true, Dims(pads, pads + spatial), Dims(strides, strides + spatial),
              Dims(dilations, dilations + spatial), 1};
  return entry.end();
}

MIOPEN_ENTRY int miopenSetConvolutionGroupCount(Ref convolution, int groups) {
  Entry entry("miopenSetConvolutionGroupCount");
  Convolution *found = entry.described(state().convolutions, convolution, "the convolution");
  if (entry.need(groups >= 1, BadParm, "{} groups", groups) && found)
    found->groups = groups;
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyConvolutionDescriptor(Ref convolution) {
  Entry entry("miopenDestroyConvolutionDescriptor");
  entry.need(state().convolutions.remove(convolution), BadParm, "there is no such descriptor");
  return entry.end();
}

MIOPEN_ENTRY int miopenConvolutionForwardGetSolutionCount(Ref handle, Ref w, Ref x, Ref convolution,
                                                          Ref y, size_t *count) {
  Entry entry("miopenConvolutionForwardGetSolutionCount");
  entry.handle(handle);
  const ConvTensors tensors = checked(entry, x, w, convolution, y);
  if (entry.isFine())
    *count = algorithmsFor(tensors).size();
  return entry.end();
}

/// As the interface has it: milliseconds, bytes, number, algorithm.
struct ConvSolutionEntry {
  float millis;
  size_t bytes;
  uint64_t id;
  int kind;
};

MIOPEN_ENTRY int miopenConvolutionForwardGetSolution(Ref handle, Ref w, Ref x, Ref convolution,
                                                     Ref y, size_t most, size_t *count,
                                                     ConvSolutionEntry *solutions) {
  Entry entry("miopenConvolutionForwardGetSolution");
  entry.handle(handle);
  const ConvTensors tensors = checked(entry, x, w, convolution, y);
  entry.need(count && solutions, BadParm, "there is no place for the solutions");
  if (!entry.isFine())
    return entry.end();
  const std::vector<Algorithm> all = algorithmsFor(tensors);
  *count = std::min(most, all.size());
  for (size_t i = 0; i < *count; ++i)
    solutions[i] = {all[i].millis, all[i].workspaceBytes, all[i].id, all[i].kind};
  return entry.end();
}

MIOPEN_ENTRY int miopenConvolutionForwardCompileSolution(Ref handle, Ref w, Ref x, Ref convolution,
                                                         Ref y, uint64_t id) {
  Entry entry("miopenConvolutionForwardCompileSolution");
  Handle *with = entry.handle(handle);
  const ConvTensors tensors = checked(entry, x, w, convolution, y);
  if (entry.isFine() &&
      entry.need(find(algorithmsFor(tensors), id), BadParm, "there is no solution {}", id))
    with->compiled.insert(keyOf(tensors, id));
  return entry.end();
}

MIOPEN_ENTRY int miopenConvolutionForwardImmediate(Ref handle, Ref wDesc, const void *w, Ref xDesc,
                                                   const void *x, Ref convolution, Ref yDesc,
                                                   void *y, void *workspace, size_t bytes,
                                                   uint64_t id) {
  Entry entry("miopenConvolutionForwardImmediate");
  Handle *with = entry.handle(handle);
  const ConvTensors tensors = checked(entry, xDesc, wDesc, convolution, yDesc);
  if (!entry.isFine())
    return entry.end();
  const std::vector<Algorithm> all = algorithmsFor(tensors);
  const Algorithm *algorithm = find(all, id);
  entry.need(algorithm, BadParm, "there is no solution {}", id);
  entry.need(with->compiled.contains(keyOf(tensors, id)), UnknownError,
             "solution {} was not compiled with this handle", id);
  if (algorithm)
    run(entry, *with, tensors, x, w, y, workspace, bytes, algorithm->workspaceBytes);
  return entry.end();
}

MIOPEN_ENTRY int miopenConvolutionForwardGetWorkSpaceSize(Ref handle, Ref w, Ref x, Ref convolution,
                                                          Ref y, size_t *bytes) {
  Entry entry("miopenConvolutionForwardGetWorkSpaceSize");
  entry.handle(handle);
  const ConvTensors tensors = checked(entry, x, w, convolution, y);
  if (!entry.isFine())
    return entry.end();
  *bytes = 0;
  for (const Algorithm &algorithm : algorithmsFor(tensors))
    *bytes = std::max<size_t>(*bytes, algorithm.workspaceBytes);
  return entry.end();
}

/// As the interface has it.
struct FoundEntry {
  int kind;
  float millis;
  size_t bytes;
};

MIOPEN_ENTRY int miopenFindConvolutionForwardAlgorithm(Ref handle, Ref xDesc, const void *x,
                                                       Ref wDesc, const void *w, Ref convolution,
                                                       Ref yDesc, void *y, int most, int *count,
                                                       FoundEntry *found, void *workspace,
                                                       size_t bytes, bool) {
  Entry entry("miopenFindConvolutionForwardAlgorithm");
  Handle *with = entry.handle(handle);
  const ConvTensors tensors = checked(entry, xDesc, wDesc, convolution, yDesc);
  entry.need(count && found && most >= 1, BadParm, "there is no place for the algorithms");
  if (!entry.isFine())
    return entry.end();
  run(entry, *with, tensors, x, w, y, workspace, bytes, 0);
  if (!entry.isFine())
    return entry.end();
  *count = 0;
  for (const Algorithm &algorithm : algorithmsFor(tensors)) {
    if (algorithm.workspaceBytes > bytes || *count >= most)
      continue;
    found[(*count)++] = {algorithm.kind, algorithm.millis, algorithm.workspaceBytes};
    with->found.insert(keyOf(tensors, algorithm.id));
  }
  return entry.end();
}

MIOPEN_ENTRY int miopenConvolutionForward(Ref handle, const void *alpha, Ref xDesc, const void *x,
                                          Ref wDesc, const void *w, Ref convolution, int kind,
                                          const void *beta, Ref yDesc, void *y, void *workspace,
                                          size_t bytes) {
  Entry entry("miopenConvolutionForward");
  Handle *with = entry.handle(handle);
  entry.scales(alpha, beta);
  const ConvTensors tensors = checked(entry, xDesc, wDesc, convolution, yDesc);
  if (!entry.isFine())
    return entry.end();
  const std::vector<Algorithm> all = algorithmsFor(tensors);
  const Algorithm *algorithm = find(all, 0, kind);
  entry.need(algorithm && with->found.contains(keyOf(tensors, algorithm->id)), BadParm,
             "algorithm {} was not found with this handle before", kind);
  if (algorithm)
    run(entry, *with, tensors, x, w, y, workspace, bytes, algorithm->workspaceBytes);
  return entry.end();
}
