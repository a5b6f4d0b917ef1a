// SPDX-License-Identifier: Apache-2.0
#include "LtProduct.h"

#include <cmath>

#include "Elements.h"

namespace simulated::lt {
namespace {

constexpr uint32_t kRelu = 2, kBias = 4, kGelu = 32;

} // namespace

uint64_t LtMatrices::span() const {
  return (batch - 1) * static_cast<uint64_t>(batchStride) +
         (columns - 1) * static_cast<uint64_t>(leading) + rows;
}

std::string LtLibrary::Product::check() const {
  const LtMatrices &a = matrices[0], &b = matrices[1], &c = matrices[2], &d = matrices[3];
  const uint64_t rows = transposed[0] ? a.columns : a.rows,
                 depth = transposed[0] ? a.rows : a.columns,
                 depthB = transposed[1] ? b.columns : b.rows,
                 columns = transposed[1] ? b.rows : b.columns;
  for (const LtMatrices &matrix : matrices)
    if (matrix.type != d.type || matrix.batch != d.batch || matrix.batchStride < 0)
      return "the matrices differ in type or in number, or lie backwards";
  if (depth != depthB || rows != d.rows || columns != d.columns || c.rows != d.rows ||
      c.columns != d.columns)
    return "the extents of the matrices do not agree";
  if (d.batch > 1 && static_cast<uint64_t>(d.batchStride) <
                         (d.columns - 1) * static_cast<uint64_t>(d.leading) + d.rows)
    return "results of a batch overlap";
  if (isTf32 && d.type != DVT_F32)
    return "tf32 is a way to multiply f32";
  const uint32_t activation = epilogue & ~kBias;
  if (epilogue != 1 && activation != 0 && activation != kRelu && activation != kGelu)
    return "epilogue " + std::to_string(epilogue) + " is not known";
  if (epilogue != 1 && (epilogue & kBias) && (!bias || d.batch > 1))
    return "a bias is wanted and there is none, or it is one for a batch";
  if (biasType != DVT_UNDEFINED && biasType != d.type)
    return "the bias is of another type than the result";
  return {};
}

std::string LtLibrary::Product::checkOverlap(const void *const addresses[4]) const {
  uint64_t begin[4], end[4];
  for (size_t i = 0; i < 4; ++i) {
    begin[i] = reinterpret_cast<uint64_t>(addresses[i]);
    end[i] = begin[i] + matrices[i].span() * bytesOf(matrices[i].type);
  }
  for (size_t i = 0; i < 3; ++i) {
    const bool inPlace = i == 2 && begin[2] == begin[3] &&
                         matrices[2].leading == matrices[3].leading &&
                         matrices[2].batchStride == matrices[3].batchStride;
    if (begin[i] < end[3] && begin[3] < end[i] && !inPlace)
      return std::string("the result lies on matrix ") + "abc"[i];
  }
  return {};
}

std::string LtLibrary::Product::text() const {
  std::string text = isTf32 ? "tf32" : "f32";
  for (const LtMatrices &matrix : matrices)
    text += " " + std::to_string(matrix.type) + ":" + std::to_string(matrix.batch) + "*" +
            std::to_string(matrix.rows) + "x" + std::to_string(matrix.columns) + "/" +
            std::to_string(matrix.leading) + "/" + std::to_string(matrix.batchStride);
  return text + (transposed[0] ? " T" : " N") + (transposed[1] ? "T" : "N") + " epilogue " +
         std::to_string(epilogue);
}

std::vector<Range> LtLibrary::Product::ranges() const {
  std::vector<Range> ranges;
  for (size_t i = 0; i < 4; ++i)
    ranges.push_back(
        {std::string(1, "abcd"[i]), data[i], matrices[i].span() * bytesOf(matrices[i].type)});
  if (epilogue != 1 && (epilogue & kBias))
    ranges.push_back({"bias", bias, matrices[3].rows * bytesOf(matrices[3].type)});
  return ranges;
}

double LtLibrary::Product::operand(size_t which, uint64_t matrix, uint64_t row,
                                   uint64_t column) const {
  const LtMatrices &of = matrices[which];
  if (which < 2 && transposed[which])
    std::swap(row, column);
  const uint64_t index = matrix * static_cast<uint64_t>(of.batchStride) +
                         column * static_cast<uint64_t>(of.leading) + row;
  const double value = loadElement(data[which], of.type, index);
  return isTf32 && which < 2 ? roundedToTf32(value) : value;
}

double LtLibrary::Product::finished(double value, uint64_t row) const {
  if (epilogue == 1)
    return value;
  if (epilogue & kBias)
    value += loadElement(bias, matrices[3].type, row);
  if (epilogue & kRelu)
    return value > 0 ? value : 0;
  if (epilogue & kGelu) {
    constexpr double kRootOfTwoOverPi = 0.79788456080286535588;
    return value / 2 *
           (1 + std::tanh(kRootOfTwoOverPi * (value + 0.044715 * value * value * value)));
  }
  return value;
}

void LtLibrary::Product::compute() const {
  const LtMatrices &d = matrices[3];
  const uint64_t depth = transposed[0] ? matrices[0].rows : matrices[0].columns;
  for (uint64_t matrix = 0; matrix < d.batch; ++matrix)
    for (uint64_t column = 0; column < d.columns; ++column)
      for (uint64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (uint64_t k = 0; k < depth; ++k)
          sum += operand(0, matrix, row, k) * operand(1, matrix, k, column);
        double value = static_cast<double>(alpha) * sum;
        if (beta != 0) // what c holds does not count then, nor whether it is a number
          value += static_cast<double>(beta) * operand(2, matrix, row, column);
        storeElement(const_cast<void *>(data[3]), d.type,
                     matrix * static_cast<uint64_t>(d.batchStride) +
                         column * static_cast<uint64_t>(d.leading) + row,
                     finished(value, row));
      }
}

} // namespace simulated::lt
