// SPDX-License-Identifier: Apache-2.0
//
// Products by MKL, on its own team of the process's OpenMP. A packed operand stays at the address
// where it was packed, for MKL keeps addresses in it.
#include "providers/blas/Methods.h"

namespace dovetail::blas {
namespace {

int asInt(int64_t number) { return static_cast<int>(number); }

class MklMultiplication : public Multiplication {
public:
  MklMultiplication(const Mkl &mkl, Form form, const Operands &operands)
      : Multiplication(operands), mkl(mkl), form(form) {}

  bool pack(const Packing &packing, std::string &reason) {
    providers::PackingClock clock(&packing.args);
    packsA = isConstantMatrix(packing.problem, operands.product.a);
    const Source &source = packsA ? operands.a : operands.b;
    const int which = packsA ? MatrixA : MatrixB;
    const int m = operands.rows(), n = operands.columns(), k = operands.depth();
    const int before = mkl.setThreads(asInt(operands.team));
    float *place =
        static_cast<float *>(packing.memory.take(&packing.args, mkl.packBytes(which, m, n, k)));
    if (place)
      mkl.pack(RowMajor, which, source.matrix.transposed ? Transposed : NoTranspose, m, n, k,
               operands.product.alpha, source.constant, asInt(source.matrix.leading), place);
    mkl.setThreads(before);
    packed = place;
    if (!place)
      reason = "out of memory while packing constants";
    return place;
  }

  void run(const float *a, const float *b, float *c, void *workspace,
           const dvt_parallel *) const override {
    const int before = mkl.setThreads(asInt(operands.team));
    multiply(a, b, c, workspace);
    mkl.setThreads(before);
  }

private:
  void multiply(const float *x, const float *y, float *result, void *workspace) const {
    const int m = operands.rows(), n = operands.columns(), k = operands.depth();
    const int transA = operands.a.matrix.transposed ? Transposed : NoTranspose,
              transB = operands.b.matrix.transposed ? Transposed : NoTranspose;
    const int lda = asInt(operands.a.matrix.leading), ldb = asInt(operands.b.matrix.leading),
              ldc = asInt(operands.c.matrix.leading);
    const float alpha = operands.product.alpha, beta = operands.beta();
    const size_t count = operands.c.offsets.size();
    if (form == Form::Gemv)
      return multiplyVector(mkl.sgemv, operands, x, y, result, 0, n == 1 ? m : n);
    if (form == Form::BatchGemm) {
      const float **as = static_cast<const float **>(workspace), **bs = as + count;
      float **cs = const_cast<float **>(bs + count);
      for (size_t i = 0; i < count; ++i) {
        as[i] = x + operands.a.offsets[i];
        bs[i] = y + operands.b.offsets[i];
        cs[i] = result + operands.c.offsets[i];
      }
      const int size = asInt(static_cast<int64_t>(count));
      mkl.sgemmBatch(RowMajor, &transA, &transB, &m, &n, &k, &alpha, as, &lda, bs, &ldb, &beta, cs,
                     &ldc, 1, &size);
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      const float *left = x + operands.a.offsets[i], *right = y + operands.b.offsets[i];
      float *c = result + operands.c.offsets[i];
      if (form == Form::PackedGemm)
        mkl.compute(RowMajor, packsA ? Packed : transA, packsA ? transB : Packed, m, n, k,
                    packsA ? packed : left, lda, packsA ? right : packed, ldb, beta, c, ldc);
      else
        mkl.sgemm(RowMajor, transA, transB, m, n, k, alpha, left, lda, right, ldb, beta, c, ldc);
    }
  }

  const Mkl &mkl;
  Form form;
  bool packsA = false;
  const float *packed = nullptr;
};

} // namespace

void offerMkl(const Mkl &mkl, const ProblemReader &problem, const Product &product,
              std::vector<Method> &methods) {
  auto offer = [&](Form form, const char *name, double efficiency) -> Method & {
    methods.push_back({Library::Mkl, form, name, efficiency});
    methods.back().bringsTeam = true;
    return methods.back();
  };
  offer(Form::Gemm, product.batch() > 1 ? "mkl:gemm-loop" : "mkl:gemm", 0.65);
  const bool constantA = isConstantMatrix(problem, product.a),
             constantB = isConstantMatrix(problem, product.b);
  if (constantA != constantB)
    offer(Form::PackedGemm, "mkl:gemm-packed", 0.75).packedBytes =
        mkl.packBytes(constantA ? MatrixA : MatrixB, asInt(product.rows()),
                      asInt(product.columns()), asInt(product.depth()));
  if (product.batch() > 1)
    offer(Form::BatchGemm, "mkl:gemm-batch", 0.6).workspaceBytes =
        (3 * sizeof(float *) * static_cast<uint64_t>(product.batch()) + 63) / 64 * 64;
  else if (product.rows() == 1 || product.columns() == 1)
    offer(Form::Gemv, "mkl:gemv", 0.3);
}

std::unique_ptr<Multiplication> multiplyByMkl(const Mkl &mkl, Form form, const Operands &operands,
                                              const Packing &packing, std::string &reason) {
  auto made = std::make_unique<MklMultiplication>(mkl, form, operands);
  return form != Form::PackedGemm || made->pack(packing, reason) ? std::move(made) : nullptr;
}

} // namespace dovetail::blas
