// SPDX-License-Identifier: Apache-2.0
//
// Products by kernels of libxsmm. A small one is a single kernel for each tile. Others are cut into
// pieces of the result that stay in registers and level 1 while a kernel sums over blocks of the
// depth; a stretch of the depth is done for all pieces before the next, so that what they share
// stays in level 2. A constant right operand is packed into panels, which makes its blocks
// contiguous.
#include <algorithm>
#include <map>
#include <tuple>

#include "providers/blas/Methods.h"
#include "providers/blas/Tiles.h"

namespace dovetail::blas {
namespace {

constexpr int kPieceRows = 24, kPanel = 64; ///< of a piece; 24 x 64 keep 24 registers busy
constexpr int kBlock = 64, kStretch = 8;    ///< depth of a block, blocks of a stretch
constexpr int64_t kMostSmall = 256, kMostSmallDepth = 512;
/// Beyond this a general product does better, as nothing but the right operand is packed here.
constexpr double kMostOperations = 2.0 * 1024 * 1024 * 1024;

class XsmmMultiplication : public Multiplication {
public:
  XsmmMultiplication(const Xsmm &library, Form form, const Operands &operands)
      : Multiplication(operands), library(library), single(form == Form::Gemm),
        block(single ? operands.depth() : std::min(kBlock, operands.depth())),
        blocks(operands.depth() / block), tail(operands.depth() % block),
        stretch(operands.rows() <= kPieceRows ? blocks : kStretch) {}

  bool pack(const Packing &packing, std::string &reason) {
    providers::PackingClock clock(&packing.args);
    const int64_t columns = operands.columns(), depth = operands.depth();
    const uint64_t bytes = packedBytes(columns, depth);
    float *place = static_cast<float *>(packing.memory.take(&packing.args, bytes));
    if (!place) {
      reason = "out of memory while packing constants";
      return false;
    }
    const Source &b = operands.b;
    const int64_t rowStride = b.matrix.transposed ? 1 : b.matrix.leading,
                  columnStride = b.matrix.transposed ? b.matrix.leading : 1;
    for (int64_t first = 0; first < columns; first += kPanel)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < std::min<int64_t>(kPanel, columns - first); ++j)
          place[first * depth + k * kPanel + j] =
              operands.product.alpha * b.constant[k * rowStride + (first + j) * columnStride];
    packed = place;
    return true;
  }

  static uint64_t packedBytes(int64_t columns, int64_t depth) {
    return static_cast<uint64_t>((columns + kPanel - 1) / kPanel * kPanel * depth) * sizeof(float);
  }

  /// Makes all kernels; false where the library cannot make one.
  bool makeKernels(std::string &reason) {
    for (const Tile &tile : tilesFor(operands.product.batch(), operands.rows(), operands.columns(),
                                     operands.team, kPanel)) {
      parts.push_back({tile, {}});
      const int height = single ? tile.rows : kPieceRows, width = single ? tile.columns : kPanel;
      for (int column = 0; column < tile.columns; column += width)
        for (int row = 0; row < tile.rows; row += height) {
          const int rows = std::min(height, tile.rows - row),
                    columns = std::min(width, tile.columns - column);
          const Kernels *kernels = kernelsFor(rows, columns);
          if (!kernels) {
            reason = "libxsmm makes no kernel of " + std::to_string(rows) + " x " +
                     std::to_string(columns) + " x " + std::to_string(block);
            return false;
          }
          parts.back().pieces.push_back({tile.row + row, tile.column + column, kernels});
        }
    }
    return true;
  }

  void run(const float *a, const float *b, float *c, void *,
           const dvt_parallel *parallel) const override {
    spread(parallel, parts.size(), [&](size_t i) {
      for (int64_t k = 0; k < parts[i].tile.matrices; ++k) {
        const size_t element = static_cast<size_t>(parts[i].tile.firstMatrix + k);
        multiply(parts[i], a + operands.a.offsets[element],
                 packed ? packed : b + operands.b.offsets[element],
                 c + operands.c.offsets[element]);
      }
    });
  }

private:
  /// Of one size of piece: for the first stretch of the depth, further ones, and what is left over.
  struct Kernels {
    XsmmKernel first, next, last;
  };
  struct Piece {
    int row, column;
    const Kernels *kernels;
  };
  struct Part {
    Tile tile;
    std::vector<Piece> pieces;
  };

  const Kernels *kernelsFor(int rows, int columns) {
    auto [place, isNew] = made.try_emplace({rows, columns});
    Kernels &kernels = place->second;
    if (isNew) {
      const int lda = static_cast<int>(operands.a.matrix.leading);
      XsmmRequest request{};
      request.rows = rows;
      request.columns = columns;
      request.depth = block;
      request.leadingA = lda;
      request.leadingB = packed ? kPanel : static_cast<int>(operands.b.matrix.leading);
      request.leadingC = static_cast<int>(operands.c.matrix.leading);
      request.transposedA = operands.a.matrix.transposed;
      request.accumulates = operands.beta() == 1;
      if (!single) {
        request.strideA = stepA(block) * static_cast<int>(sizeof(float));
        request.strideB = stepB(block) * static_cast<int>(sizeof(float));
      }
      kernels.first = library.kernelFor(request);
      request.accumulates = true;
      if (blocks > stretch)
        kernels.next = library.kernelFor(request);
      request.depth = tail;
      if (tail)
        kernels.last = library.kernelFor(request);
    }
    const bool whole = kernels.first.isThere() && (blocks <= stretch || kernels.next.isThere()) &&
                       (!tail || kernels.last.isThere());
    return whole ? &kernels : nullptr;
  }

  /// Elements from one place along the depth to another `depth` further on.
  int stepA(int depth) const {
    return operands.a.matrix.transposed ? depth * static_cast<int>(operands.a.matrix.leading)
                                        : depth;
  }
  int stepB(int depth) const {
    return depth * (packed ? kPanel : static_cast<int>(operands.b.matrix.leading));
  }

  void multiply(const Part &part, const float *a, const float *b, float *c) const {
    const int64_t lda = operands.a.matrix.leading, ldc = operands.c.matrix.leading;
    const int64_t rowStep = operands.a.matrix.transposed ? 1 : lda,
                  depthA = operands.a.matrix.transposed ? lda : 1,
                  depthB = packed ? kPanel : operands.b.matrix.leading,
                  columnStep = packed ? operands.depth() : 1;
    for (int done = 0; done < blocks; done += stretch) {
      const int count = std::min(stretch, blocks - done);
      const int64_t depth = int64_t(done) * block;
      for (const Piece &piece : part.pieces)
        (done ? piece.kernels->next : piece.kernels->first)(
            a + piece.row * rowStep + depth * depthA,
            b + piece.column * columnStep + depth * depthB, c + piece.row * ldc + piece.column,
            static_cast<unsigned long long>(count));
    }
    if (!tail)
      return;
    const int64_t depth = int64_t(blocks) * block;
    for (const Piece &piece : part.pieces)
      piece.kernels->last(a + piece.row * rowStep + depth * depthA,
                          b + piece.column * columnStep + depth * depthB,
                          c + piece.row * ldc + piece.column, 1);
  }

  const Xsmm &library;
  bool single; ///< a kernel for each tile
  int block, blocks, tail;
  int stretch; ///< blocks summed at a time; all where a panel serves one piece only
  const float *packed = nullptr;
  std::map<std::pair<int, int>, Kernels> made;
  std::vector<Part> parts;
};

} // namespace

void offerXsmm(const Xsmm &library, const ProblemReader &problem, const Product &product,
               std::vector<Method> &methods) {
  const double operations = 2.0 * static_cast<double>(product.rows()) *
                            static_cast<double>(product.columns()) *
                            static_cast<double>(product.depth());
  const int64_t leading = std::max(asMatrix(product.a)->leading, asMatrix(product.b)->leading);
  constexpr int64_t kMostLeading = INT32_MAX / int64_t(kBlock * sizeof(float));
  if (operations == 0 || operations > kMostOperations || leading > kMostLeading ||
      (product.addend && product.beta != 1) || !library.refusal().empty())
    return;
  const bool plain = product.alpha == 1 && !asMatrix(product.b)->transposed;
  const bool small = product.rows() <= kMostSmall && product.columns() <= kMostSmall &&
                     product.depth() <= kMostSmallDepth;
  // A long matrix that meets one vector is read at half the pace of others.
  if (!small && product.rows() == 1)
    return;
  if (small && plain)
    methods.push_back({Library::Xsmm, Form::Gemm, "xsmm:gemm", 0.55});
  if (isConstantMatrix(problem, product.b)) {
    methods.push_back({Library::Xsmm, Form::PackedBlockGemm, "xsmm:brgemm-packed", 0.6});
    methods.back().packedBytes =
        XsmmMultiplication::packedBytes(product.columns(), product.depth());
  } else if (plain && !small) {
    methods.push_back({Library::Xsmm, Form::BlockGemm, "xsmm:brgemm", 0.5});
  }
}

std::unique_ptr<Multiplication> multiplyByXsmm(const Xsmm &library, Form form,
                                               const Operands &operands, const Packing &packing,
                                               std::string &reason) {
  auto made = std::make_unique<XsmmMultiplication>(library, form, operands);
  if (form == Form::PackedBlockGemm && !made->pack(packing, reason))
    return nullptr;
  return made->makeKernels(reason) ? std::move(made) : nullptr;
}

} // namespace dovetail::blas
