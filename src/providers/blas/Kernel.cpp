// SPDX-License-Identifier: Apache-2.0
//
// Calls into the library. A packed operand stays at the address where it was packed, for MKL keeps
// addresses in it.
#include "providers/blas/Kernel.h"

#include <cstring>

namespace dovetail::blas {
namespace {

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

bool isOneMatrix(const View &view) {
  return providers::product(view.dims, 0, view.dims.size() - 2) == 1;
}

int asInt(int64_t number) { return static_cast<int>(number); }

/// Offset of every batch element, in row-major order of the batch of `result`.
std::vector<int64_t> batchOffsets(const View &view, const View &result) {
  std::vector<int64_t> offsets{0};
  for (size_t i = 0; i + 2 < result.dims.size(); ++i) {
    std::vector<int64_t> next;
    for (int64_t before : offsets)
      for (int64_t k = 0; k < result.dims[i]; ++k)
        next.push_back(before + (view.dims[i] == 1 ? 0 : k * view.strides[i]));
    offsets = std::move(next);
  }
  return offsets;
}

} // namespace

std::string algorithmName(Call call, const Product &product) {
  switch (call) {
  case Call::Gemm:
    return product.batch() > 1 ? "gemm-loop:mkl" : "gemm:mkl";
  case Call::PackedGemm:
    return "gemm-packed:mkl";
  case Call::BatchGemm:
    return "gemm-batch:mkl";
  case Call::Gemv:
    return "gemv:mkl";
  }
  return "";
}

std::vector<Call> callsFor(const ProblemReader &problem, const Product &product) {
  std::vector<Call> calls{Call::Gemm};
  const bool constantA = problem.isConstant(product.a.value) && isOneMatrix(product.a),
             constantB = problem.isConstant(product.b.value) && isOneMatrix(product.b);
  if (constantA != constantB)
    calls.push_back(Call::PackedGemm);
  if (product.batch() > 1)
    calls.push_back(Call::BatchGemm);
  else if (product.rows() == 1 || product.columns() == 1)
    calls.push_back(Call::Gemv);
  return calls;
}

uint64_t packedBytesOf(const Library &library, const ProblemReader &problem,
                       const Product &product) {
  const bool packsA = problem.isConstant(product.a.value) && isOneMatrix(product.a);
  return library.packBytes(packsA ? MatrixA : MatrixB, asInt(product.rows()),
                           asInt(product.columns()), asInt(product.depth()));
}

uint64_t workspaceBytesOf(Call call, const Product &product) {
  return call == Call::BatchGemm
             ? aligned(3 * sizeof(float *) * static_cast<uint64_t>(product.batch()))
             : 0;
}

bool Kernel::bind(const ProblemReader &problem, const View &view, const dvt_prepare_args &args,
                  Source &source, std::string &reason) {
  source.offsets = batchOffsets(view, product.c);
  source.input = problem.inputPosition(view.value);
  if (!problem.isConstant(view.value))
    return true;
  if (source.input >= 0) {
    source.constant =
        args.constants ? static_cast<const float *>(args.constants[source.input]) : nullptr;
    source.input = -1;
  } else {
    const dvt_value &literal = problem.value(view.value);
    const bool uniform = (literal.flags & DVT_VALUE_UNIFORM) != 0;
    const uint64_t count = static_cast<uint64_t>(providers::product(problem.extents(view.value)));
    if (literal.literal && literal.literal_bytes >= (uniform ? 1 : count) * sizeof(float)) {
      float *copy = static_cast<float *>(constantMemory.take(&args, count * sizeof(float)));
      if (copy)
        for (uint64_t i = 0; i < count; ++i)
          std::memcpy(copy + i, static_cast<const float *>(literal.literal) + (uniform ? 0 : i),
                      sizeof(float));
      source.constant = copy;
    }
  }
  if (!source.constant)
    reason = "a constant operand came without bytes";
  return source.constant != nullptr;
}

bool Kernel::packOperand(const ProblemReader &problem, const dvt_prepare_args &args,
                         std::string &reason) {
  providers::PackingClock clock(&args);
  packsA = problem.isConstant(product.a.value) && isOneMatrix(product.a);
  Source &packed = packsA ? a : b;
  float *place =
      static_cast<float *>(constantMemory.take(&args, packedBytesOf(*library, problem, product)));
  if (!place) {
    reason = "out of memory while packing constants";
    return false;
  }
  library->pack(RowMajor, packsA ? MatrixA : MatrixB,
                packed.matrix.transposed ? Transposed : NoTranspose, asInt(product.rows()),
                asInt(product.columns()), asInt(product.depth()), product.alpha, packed.constant,
                asInt(packed.matrix.leading), place);
  packed.constant = place;
  return true;
}

std::unique_ptr<Kernel> Kernel::make(std::shared_ptr<const Library> library,
                                     const ProblemReader &problem, const Product &product,
                                     Call call, const dvt_prepare_args &args, uint32_t threads,
                                     std::string &reason) {
  std::unique_ptr<Kernel> kernel(
      new Kernel(std::move(library), product, call, threads ? threads : 1));
  const dvt_problem &raw = problem.raw();
  for (uint32_t i = 0; i < raw.input_count; ++i) {
    kernel->inputExtents.push_back(problem.extents(raw.inputs[i]));
    kernel->inputConstant.push_back(problem.isConstant(raw.inputs[i]));
  }
  kernel->outputExtents = problem.extents(raw.outputs[0]);
  if (!kernel->bind(problem, product.a, args, kernel->a, reason) ||
      !kernel->bind(problem, product.b, args, kernel->b, reason) ||
      (product.addend && !kernel->bind(problem, *product.addend, args, kernel->addend, reason)))
    return nullptr;
  kernel->c.offsets = batchOffsets(product.c, product.c);
  kernel->a.matrix = *asMatrix(product.a);
  kernel->b.matrix = *asMatrix(product.b);
  kernel->c.matrix = *asMatrix(product.c);
  const int before = kernel->library->setThreads(asInt(kernel->threads));
  const bool packed = call != Call::PackedGemm || kernel->packOperand(problem, args, reason);
  kernel->library->setThreads(before);
  return packed ? std::move(kernel) : nullptr;
}

/// The addend, broadcast, into the result.
void Kernel::fillResult(const float *from, float *result) const {
  const View &view = *product.addend;
  const size_t rank = view.dims.size();
  const int64_t rows = product.rows(), columns = product.columns(), all = product.batch() * rows;
  const int64_t rowStride = view.dims[rank - 2] == 1 ? 0 : view.strides[rank - 2],
                columnStride = view.dims[rank - 1] == 1 ? 0 : view.strides[rank - 1];
  // Few elements are written faster by one thread than a team wakes up.
  const int team = all * columns < 32768 ? 1 : asInt(threads);
#pragma omp parallel for num_threads(team) schedule(static)
  for (int64_t i = 0; i < all; ++i) {
    const size_t element = static_cast<size_t>(i / rows);
    const float *source = from + addend.offsets[element] + i % rows * rowStride;
    float *row = result + c.offsets[element] + i % rows * c.matrix.leading;
    if (columnStride == 1)
      std::memcpy(row, source, static_cast<size_t>(columns) * sizeof(float));
    else
      for (int64_t k = 0; k < columns; ++k)
        row[k] = source[k * columnStride];
  }
}

void Kernel::multiply(const float *x, const float *y, float *result, void *workspace) const {
  const Library &mkl = *library;
  const int m = asInt(product.rows()), n = asInt(product.columns()), k = asInt(product.depth());
  const int transA = a.matrix.transposed ? Transposed : NoTranspose,
            transB = b.matrix.transposed ? Transposed : NoTranspose;
  const int lda = asInt(a.matrix.leading), ldb = asInt(b.matrix.leading),
            ldc = asInt(c.matrix.leading);
  const float beta = product.addend ? product.beta : 0;
  const size_t count = c.offsets.size();
  if (call == Call::Gemv) {
    // A column of results is a b with b a vector; a row of them is b^T a^T.
    const bool column = n == 1;
    const Matrix &matrix = column ? a.matrix : b.matrix;
    const Matrix &vector = column ? b.matrix : a.matrix;
    const int stored = column ? m : k, width = column ? k : n;
    const int trans = column ? transA : (transB == Transposed ? NoTranspose : Transposed);
    // Steps along the vector: a column steps by its leading dimension unless it is stored as a row.
    const int step = column == vector.transposed ? 1 : asInt(vector.leading);
    mkl.sgemv(RowMajor, trans, matrix.transposed ? width : stored,
              matrix.transposed ? stored : width, product.alpha, column ? x : y,
              asInt(matrix.leading), column ? y : x, step, beta, result, column ? ldc : 1);
    return;
  }
  if (call == Call::BatchGemm) {
    const float **as = static_cast<const float **>(workspace), **bs = as + count;
    float **cs = const_cast<float **>(bs + count);
    for (size_t i = 0; i < count; ++i) {
      as[i] = x + a.offsets[i];
      bs[i] = y + b.offsets[i];
      cs[i] = result + c.offsets[i];
    }
    const int size = asInt(static_cast<int64_t>(count));
    mkl.sgemmBatch(RowMajor, &transA, &transB, &m, &n, &k, &product.alpha, as, &lda, bs, &ldb,
                   &beta, cs, &ldc, 1, &size);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const float *left = x + a.offsets[i], *right = y + b.offsets[i];
    if (call == Call::PackedGemm)
      mkl.compute(RowMajor, packsA ? Packed : transA, packsA ? transB : Packed, m, n, k, left, lda,
                  right, ldb, beta, result + c.offsets[i], ldc);
    else
      mkl.sgemm(RowMajor, transA, transB, m, n, k, product.alpha, left, lda, right, ldb, beta,
                result + c.offsets[i], ldc);
  }
}

dvt_code Kernel::run(const dvt_run_args &args, std::string &reason) const {
  auto fits = [](const dvt_tensor &tensor, const Dims &extents) {
    if (!tensor.data || tensor.rank != extents.size())
      return false;
    for (size_t i = 0; i < extents.size(); ++i)
      if (tensor.extents && tensor.extents[i] != extents[i])
        return false;
    return true;
  };
  if (args.input_count != inputExtents.size() || args.output_count != 1) {
    reason = "run: wrong number of operands or results";
    return DVT_BAD_INPUT;
  }
  for (uint32_t i = 0; i < args.input_count; ++i)
    if (!inputConstant[i] && !fits(args.inputs[i], inputExtents[i])) {
      reason =
          "run: operand " + std::to_string(i) + " has no memory or other extents than the problem";
      return DVT_BAD_INPUT;
    }
  if (!fits(args.outputs[0], outputExtents) || args.workspace_bytes < workspaceBytes() ||
      (workspaceBytes() > 0 && !args.workspace)) {
    reason = "run: the result or the workspace has no memory, or the result has other extents than "
             "the problem";
    return DVT_BAD_INPUT;
  }
  auto memory = [&](const Source &source) {
    return source.constant ? source.constant
                           : static_cast<const float *>(args.inputs[source.input].data);
  };
  float *result = static_cast<float *>(args.outputs[0].data);
  if (product.addend && memory(addend) != result)
    fillResult(memory(addend), result);
  const int before = library->setThreads(asInt(threads));
  multiply(memory(a), memory(b), result, args.workspace);
  library->setThreads(before);
  return DVT_OK;
}

} // namespace dovetail::blas
