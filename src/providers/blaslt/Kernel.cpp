// SPDX-License-Identifier: Apache-2.0
//
// Preparing asks the heuristics with the workspace that the plan has set aside, and takes the first
// algorithm that they say will run, or times some. A run only hands over addresses.
#include "providers/blaslt/Kernel.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace dovetail::blaslt {
namespace {

constexpr int kMostAnswers = 8;

template <typename Set, typename Value>
void set(Calls &calls, Set function, void *descriptor, int attribute, const Value &value,
         const char *doing) {
  if (calls.ok() && attribute != kAbsent)
    calls.check(function(descriptor, attribute, &value, sizeof value), doing);
}

int elementType(dvt_type type) {
  return type == DVT_F16    ? dialect().float16
         : type == DVT_BF16 ? dialect().bfloat16
                            : dialect().float32;
}

} // namespace

Descriptor Kernel::layout(Calls &calls, const Form &form, const Operand &operand, int64_t rows,
                          int64_t columns) const {
  if (operand.isTransposed)
    std::swap(rows, columns);
  void *made = nullptr;
  if (!calls.ok() || !calls.check(library().MatrixLayoutCreate(
                                      &made, elementType(form.type), static_cast<uint64_t>(rows),
                                      static_cast<uint64_t>(columns), operand.leading),
                                  "describing a matrix"))
    return {};
  Descriptor layout(made, library().MatrixLayoutDestroy);
  if (form.batch > 1) {
    const auto &attributes = dialect().layout;
    set(calls, library().MatrixLayoutSetAttribute, made, attributes.batchCount,
        static_cast<int32_t>(form.batch), "describing a batch");
    set(calls, library().MatrixLayoutSetAttribute, made, attributes.batchStride,
        operand.batchStride, "describing a batch");
  }
  return layout;
}

void Kernel::describeMatmul(Calls &calls, const Form &form) {
  void *made = nullptr;
  const int compute = form.isTf32 ? dialect().computeTf32 : dialect().computeFloat32;
  if (!calls.ok() || !calls.check(library().MatmulDescCreate(&made, compute, dialect().float32),
                                  "describing the product"))
    return;
  matmul = Descriptor(made, library().MatmulDescDestroy);
  const auto &attributes = dialect().matmul;
  const auto setter = library().MatmulDescSetAttribute;
  const auto transpose = static_cast<int32_t>(dialect().transpose);
  if (form.a.isTransposed)
    set(calls, setter, made, attributes.transA, transpose, "transposing");
  if (form.b.isTransposed)
    set(calls, setter, made, attributes.transB, transpose, "transposing");
  set(calls, setter, made, attributes.epilogue, form.epilogue, "setting the epilogue");
  if (form.bias.isPresent()) {
    // Only its alignment counts until there is a run.
    bias = reinterpret_cast<const void *>(uintptr_t{form.bias.alignment});
    set(calls, setter, made, attributes.biasPointer, bias, "setting the bias");
    set(calls, setter, made, attributes.biasType, static_cast<int32_t>(elementType(form.type)),
        "setting the bias's type");
  }
}

void Kernel::describe(Calls &calls, const Form &form) {
  layouts[A] = layout(calls, form, form.a, form.rows, form.depth);
  layouts[B] = layout(calls, form, form.b, form.depth, form.columns);
  layouts[C] = layout(calls, form, form.c.isPresent() ? form.c : form.d, form.rows, form.columns);
  layouts[D] = layout(calls, form, form.d, form.rows, form.columns);
  describeMatmul(calls, form);
}

Descriptor Kernel::preference(Calls &calls, const Form &form) const {
  void *made = nullptr;
  if (!calls.ok() ||
      !calls.check(library().MatmulPreferenceCreate(&made), "describing what is wanted"))
    return {};
  Descriptor preference(made, library().MatmulPreferenceDestroy);
  const auto &attributes = dialect().preference;
  const auto setter = library().MatmulPreferenceSetAttribute;
  set(calls, setter, made, attributes.workspaceBytes, form.workspaceBytes, "bounding workspace");
  set(calls, setter, made, attributes.reductions, dialect().reductionsInFloat32,
      "keeping sums in f32");
  const Operand *operands[] = {&form.a, &form.b, form.c.isPresent() ? &form.c : &form.d, &form.d};
  for (size_t i = 0; i < 4; ++i)
    set(calls, setter, made, attributes.alignments[i], operands[i]->alignment,
        "stating alignments");
  return preference;
}

std::vector<Kernel::Algorithm> Kernel::find(Calls &calls, const Form &form,
                                            std::string &reason) const {
  const Descriptor wanted = preference(calls, form);
  const size_t bytes = dialect().answerBytes;
  std::vector<uint64_t> answers(bytes * kMostAnswers / sizeof(uint64_t));
  int count = 0;
  if (calls.ok())
    calls.check(library().MatmulAlgoGetHeuristic(handle->get(), matmul.get(), layouts[A].get(),
                                                 layouts[B].get(), layouts[C].get(),
                                                 layouts[D].get(), wanted.get(), kMostAnswers,
                                                 answers.data(), &count),
                "asking for algorithms");
  std::vector<Algorithm> found;
  for (int i = 0; calls.ok() && i < std::min(count, kMostAnswers); ++i) {
    const char *answer =
        reinterpret_cast<const char *>(answers.data()) + static_cast<size_t>(i) * bytes;
    size_t needed = 0;
    Status state = 0;
    std::memcpy(&needed, answer + dialect().workspaceOffset, sizeof needed);
    std::memcpy(&state, answer + dialect().stateOffset, sizeof state);
    if (state != 0 || needed > form.workspaceBytes)
      continue;
    found.push_back({std::vector<uint64_t>(bytes / sizeof(uint64_t)), needed});
    std::memcpy(found.back().words.data(), answer, bytes);
  }
  if (found.empty())
    reason = std::string(dialect().library) + " " + handle->versionText() +
             " has no algorithm for this product on this device within " +
             std::to_string(form.workspaceBytes) + " bytes of workspace" +
             (calls.ok() ? "" : " (" + calls.reason() + ")");
  return found;
}

std::optional<size_t> Kernel::fastest(const Form &form, const std::vector<Algorithm> &among,
                                      const std::string &drivers, std::string &reason) {
  const std::shared_ptr<const Driver> driver = Driver::open(drivers, reason);
  if (!driver)
    return std::nullopt;
  // Memory as large as the operands, with ordinary numbers: zeros take less power and less time.
  const auto element = static_cast<uint64_t>(providers::elementBytes(form.type));
  auto bytesOf = [&](const Operand &operand, int64_t rows, int64_t columns) {
    if (operand.isTransposed)
      std::swap(rows, columns);
    return static_cast<uint64_t>((form.batch - 1) * operand.batchStride +
                                 (columns - 1) * operand.leading + rows) *
           element;
  };
  uint64_t workspace = 0;
  for (const Algorithm &algorithm : among)
    workspace = std::max(workspace, algorithm.workspace);
  const uint64_t sizes[kRoles + 1] = {
      bytesOf(form.a, form.rows, form.depth),
      bytesOf(form.b, form.depth, form.columns),
      form.c.isPresent() ? bytesOf(form.c, form.rows, form.columns) : 0,
      bytesOf(form.d, form.rows, form.columns),
      form.bias.isPresent() ? static_cast<uint64_t>(form.rows) * element : 0,
      workspace};
  std::vector<Scratch> memory;
  for (uint64_t size : sizes)
    if (!memory.emplace_back(driver).allocate(size, reason))
      return std::nullopt;
  Addresses data{};
  for (size_t role = 0; role < kRoles; ++role)
    data[role] = memory[role].get();
  return findFastest(
      *driver, among.size(),
      [&](size_t number) {
        Calls calls;
        multiply(calls, data, among[number], memory[kRoles].get(), nullptr);
        return calls.reason();
      },
      reason);
}

void Kernel::keep(Algorithm chosen) {
  algorithm = std::move(chosen);
  reserved = algorithm.workspace ? algorithm.workspace + dialect().workspaceAlignment : 0;
}

std::unique_ptr<Kernel> Kernel::make(std::shared_ptr<OpenedHandle> handle, const Form &form,
                                     const ProblemReader &problem, const std::string &drivers,
                                     dvt_code &code, std::string &reason) {
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(handle)));
  Calls calls;
  kernel->describe(calls, form);
  code = DVT_FAILED;
  reason = calls.reason();
  if (!calls.ok())
    return nullptr;
  kernel->alpha = form.alpha;
  kernel->beta = form.c.isPresent() ? form.beta : 0;
  code = DVT_UNSUPPORTED;
  std::vector<Algorithm> found = kernel->find(calls, form, reason);
  if (found.empty())
    return nullptr;
  code = DVT_FAILED;
  const std::optional<size_t> chosen =
      form.isMeasured ? kernel->fastest(form, found, drivers, reason) : std::optional<size_t>(0);
  if (!chosen)
    return nullptr;
  kernel->keep(std::move(found[*chosen]));
  kernel->locate(form, problem);
  code = DVT_OK;
  return kernel;
}

void Kernel::locate(const Form &form, const ProblemReader &problem) {
  const Operand *operands[kRoles] = {&form.a, &form.b, &form.c, &form.d, &form.bias};
  for (size_t role = 0; role < kRoles; ++role) {
    const Operand &operand = *operands[role];
    Place &place = places[role];
    place.isPresent = operand.isPresent();
    if (!place.isPresent)
      continue;
    place.isResult = problem.outputPosition(operand.value) >= 0;
    place.position = static_cast<uint32_t>(place.isResult ? problem.outputPosition(operand.value)
                                                          : problem.inputPosition(operand.value));
    for (int64_t start : operand.starts)
      place.starts.push_back(start * static_cast<int64_t>(providers::elementBytes(form.type)));
  }
  callCount = form.calls();
  inputCount = problem.raw().input_count;
  outputCount = problem.raw().output_count;
}

dvt_code Kernel::address(const dvt_run_args &args, Role role, void *&data,
                         std::string &reason) const {
  const Place &place = places[role];
  if (!place.isPresent) {
    data = nullptr;
    return DVT_OK;
  }
  const dvt_tensor &tensor =
      place.isResult ? args.outputs[place.position] : args.inputs[place.position];
  data = tensor.data;
  if (tensor.memory == DVT_MEMORY_DEVICE && data)
    return DVT_OK;
  reason = "operands and results are taken in device memory only";
  return DVT_BAD_INPUT;
}

dvt_code Kernel::run(const dvt_run_args &args, std::string &reason) {
  const bool isWhole = args.input_count == inputCount && args.output_count == outputCount;
  if (!isWhole || args.workspace_bytes < reserved || (reserved && !args.workspace)) {
    reason = isWhole ? "the workspace is smaller than workspace_bytes says"
                     : "run with another number of operands or results than the problem's";
    return DVT_BAD_INPUT;
  }
  Addresses data{};
  for (size_t role = 0; role < kRoles; ++role)
    if (dvt_code code = address(args, static_cast<Role>(role), data[role], reason); code != DVT_OK)
      return code;
  const uintptr_t step = dialect().workspaceAlignment,
                  begin = reinterpret_cast<uintptr_t>(args.workspace);
  void *scratch =
      reserved ? static_cast<char *>(args.workspace) + (step - begin % step) % step : nullptr;
  Calls calls;
  for (size_t call = 0; call < callCount; ++call) {
    Addresses from = data;
    for (size_t role = 0; role < kRoles; ++role)
      if (from[role] && !places[role].starts.empty())
        from[role] = static_cast<char *>(from[role]) + places[role].starts[call];
    multiply(calls, from, algorithm, scratch, args.stream);
  }
  reason = calls.reason();
  return calls.ok() ? DVT_OK : DVT_FAILED;
}

void Kernel::multiply(Calls &calls, const Addresses &data, const Algorithm &with, void *scratch,
                      DeviceStream stream) {
  const std::lock_guard guard(mutex);
  if (data[Bias] && bias != data[Bias]) {
    bias = data[Bias];
    set(calls, library().MatmulDescSetAttribute, matmul.get(), dialect().matmul.biasPointer, bias,
        "setting the bias");
  }
  if (calls.ok())
    calls.check(library().Matmul(handle->get(), matmul.get(), &alpha, data[A], layouts[A].get(),
                                 data[B], layouts[B].get(), &beta, data[C] ? data[C] : data[D],
                                 layouts[C].get(), data[D], layouts[D].get(), with.words.data(),
                                 scratch, with.workspace, stream),
                "multiplying");
}

} // namespace dovetail::blaslt
