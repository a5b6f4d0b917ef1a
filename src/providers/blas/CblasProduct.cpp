// SPDX-License-Identifier: Apache-2.0
//
// Products by OpenBLAS and BLIS: a call on one thread for each tile.
#include "providers/blas/Methods.h"
#include "providers/blas/Tiles.h"

namespace dovetail::blas {
namespace {

class CblasMultiplication : public Multiplication {
public:
  CblasMultiplication(const Cblas &library, Form form, const Operands &operands)
      : Multiplication(operands), library(library), form(form),
        tiles(tilesFor(operands.product.batch(), operands.rows(), operands.columns(), operands.team,
                       16)) {}

  void run(const float *a, const float *b, float *c, void *,
           const dvt_parallel *parallel) const override {
    spread(parallel, tiles.size(), [&](size_t i) {
      for (int64_t k = 0; k < tiles[i].matrices; ++k)
        multiply(tiles[i], static_cast<size_t>(tiles[i].firstMatrix + k), a, b, c);
    });
  }

private:
  void multiply(const Tile &tile, size_t element, const float *x, const float *y,
                float *result) const {
    const Source &a = operands.a, &b = operands.b, &c = operands.c;
    x += a.offsets[element];
    y += b.offsets[element];
    result += c.offsets[element];
    if (form == Form::Gemv) {
      const bool column = operands.columns() == 1;
      multiplyVector(library.sgemv, operands, x, y, result, column ? tile.row : tile.column,
                     column ? tile.rows : tile.columns);
      return;
    }
    library.sgemm(
        RowMajor, a.matrix.transposed ? Transposed : NoTranspose,
        b.matrix.transposed ? Transposed : NoTranspose, tile.rows, tile.columns, operands.depth(),
        operands.product.alpha, x + tile.row * (a.matrix.transposed ? 1 : a.matrix.leading),
        static_cast<int>(a.matrix.leading),
        y + tile.column * (b.matrix.transposed ? b.matrix.leading : 1),
        static_cast<int>(b.matrix.leading), operands.beta(),
        result + tile.row * c.matrix.leading + tile.column, static_cast<int>(c.matrix.leading));
  }

  const Cblas &library;
  Form form;
  std::vector<Tile> tiles;
};

} // namespace

void offerCblas(const Cblas &library, Library which, const Product &product,
                std::vector<Method> &methods) {
  const std::string name = which == Library::OpenBlas ? "openblas:" : "blis:";
  const double wide = library.lanes == 16 ? 1 : library.lanes == 8 ? 0.7 : 0.25;
  if (product.batch() == 1 && (product.rows() == 1 || product.columns() == 1))
    methods.push_back({which, Form::Gemv, name + "sgemv", 0.28 * wide});
  else
    methods.push_back({which, Form::Gemm, name + "sgemm", 0.6 * wide});
}

std::unique_ptr<Multiplication> multiplyByCblas(const Cblas &library, Form form,
                                                const Operands &operands) {
  return std::make_unique<CblasMultiplication>(library, form, operands);
}

} // namespace dovetail::blas
