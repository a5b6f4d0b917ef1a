// SPDX-License-Identifier: Apache-2.0
//
// Checks every operand against the problem before its memory is touched.
#include "Operands.h"

#include <algorithm>
#include <cstring>

#include "PhysicalLayout.h"

namespace dovetail::reference {

template <typename... Parts> static Status bad(const Parts &...parts) {
  return {DVT_BAD_INPUT, join("reference: ", parts...)};
}

static void unpackNibbles(const uint8_t *from, Tensor &to) {
  for (int64_t i = 0, count = to.count(); i < count; ++i) {
    uint8_t nibble = static_cast<uint8_t>(from[i / 2] >> (i % 2 * 4) & 15);
    to.data[i] = to.type == DVT_I4 && nibble > 7 ? static_cast<uint8_t>(nibble | 0xF0) : nibble;
  }
}

static void packNibbles(const Tensor &from, uint8_t *to) {
  for (int64_t i = 0, count = from.count(); i < count; ++i) {
    uint8_t nibble = from.data[i] & 15;
    to[i / 2] = static_cast<uint8_t>(i % 2 ? to[i / 2] | nibble << 4 : nibble);
  }
}

/// Copies between dense and strided memory, one element at a time.
static void copyStrided(const Extents &extents, size_t bytes, uint8_t *dense, uint8_t *strided,
                        const int64_t *strides, bool toDense) {
  Extents index(extents.size(), 0);
  int64_t count = elementCount(extents).value_or(0);
  for (int64_t linear = 0; linear < count; ++linear) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i)
      offset += index[i] * strides[i];
    uint8_t *a = dense + linear * static_cast<int64_t>(bytes),
            *b = strided + offset * static_cast<int64_t>(bytes);
    std::memcpy(toDense ? a : b, toDense ? b : a, bytes);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < extents[i])
        break;
      index[i] = 0;
    }
  }
}

static Status checkExtents(const Value &value, const char *role, uint32_t number, uint32_t rank,
                           const Extents &extents) {
  if (rank != value.extents.size())
    return bad(role, " ", number, " is of rank ", rank, " where the problem has rank ",
               value.extents.size());
  for (size_t i = 0; i < extents.size(); ++i) {
    int64_t extent = extents[i];
    bool symbolic = value.extents[i] < 0;
    if (extent < 0 || (!symbolic && extent != value.extents[i]))
      return bad(role, " ", number, " has extents ", textOf(extents), " where the problem has ",
                 textOf(value.extents));
    if (symbolic &&
        (extent < value.lowest[i] || extent > value.highest[i] || extent % value.divisor[i]))
      return bad(role, " ", number, " has extent ", extent, " in dimension ", i,
                 "; the problem allows ", value.lowest[i], " to ", value.highest[i],
                 " in steps of ", value.divisor[i]);
  }
  return {};
}

Status bindInput(const Program &program, uint32_t input, const dvt_tensor &operand,
                 const void *constant, Tensor &tensor) {
  const Value &value = program.values[program.inputs[input]];
  if (!constant && operand.type != value.type)
    return bad("input ", input, " is of ", nameOf(operand.type), " where the problem has ",
               nameOf(value.type));
  if (!constant && operand.memory == DVT_MEMORY_DEVICE)
    return bad("input ", input, " lies in device memory");
  tensor.type = value.type;
  tensor.extents = constant && !operand.extents ? value.extents
                   : operand.rank ? Extents(operand.extents, operand.extents + operand.rank)
                                  : Extents();
  TRY(checkExtents(value, "input", input, static_cast<uint32_t>(tensor.extents.size()),
                   tensor.extents));
  std::optional<int64_t> count = elementCount(tensor.extents);
  if (!count)
    return bad("input ", input, " has extents ", textOf(tensor.extents));
  const void *data = constant ? constant : operand.data;
  const int64_t *strides = constant ? nullptr : operand.strides;
  if (!data && *count)
    return value.isLiteral ? (tensor = bindLiteral(value), Status())
                           : bad("input ", input, " has no memory");
  auto *bytes = static_cast<uint8_t *>(const_cast<void *>(data));
  if (isFourBit(value.type)) {
    if (strides || !program.inputLayout.empty())
      return {DVT_UNSUPPORTED, join("reference: input ", input,
                                    ": 4-bit elements that are not dense and row-major")};
    tensor = Tensor::allocate(value.type, std::move(tensor.extents));
    unpackNibbles(bytes, tensor);
  } else if (!program.inputLayout.empty()) {
    PhysicalLayout layout;
    TRY(PhysicalLayout::parse(program.inputLayout, tensor.extents.size(), layout));
    tensor = Tensor::allocate(value.type, std::move(tensor.extents));
    layout.read(data, tensor);
  } else if (strides || reinterpret_cast<uintptr_t>(data) % elementBytes(value.type)) {
    Extents dense = rowMajorStrides(tensor.extents);
    tensor = Tensor::allocate(value.type, std::move(tensor.extents));
    copyStrided(tensor.extents, elementBytes(value.type), tensor.data, bytes,
                strides ? strides : dense.data(), true);
  } else {
    tensor.data = bytes;
  }
  return {};
}

Tensor bindLiteral(const Value &value) {
  Tensor tensor = Tensor::allocate(value.type, value.extents);
  size_t bytes = elementBytes(value.type);
  if (!value.uniform) {
    if (isFourBit(value.type))
      unpackNibbles(value.literal.data(), tensor);
    else if (tensor.bytes())
      std::memcpy(tensor.data, value.literal.data(), tensor.bytes());
    return tensor;
  }
  Tensor one = Tensor::allocate(value.type, {1});
  if (isFourBit(value.type))
    unpackNibbles(value.literal.data(), one);
  else
    std::memcpy(one.data, value.literal.data(), bytes);
  for (size_t i = 0, count = static_cast<size_t>(tensor.count()); i < count; ++i)
    std::memcpy(tensor.data + i * bytes, one.data, bytes);
  return tensor;
}

Status checkOutputExtents(const Program &program, uint32_t output, const dvt_tensor &operand,
                          const Extents &extents) {
  const Value &value = program.values[program.outputs[output]];
  if (operand.data && operand.type != value.type)
    return bad("output ", output, " is of ", nameOf(operand.type), " where the problem has ",
               nameOf(value.type));
  if (operand.data && operand.memory == DVT_MEMORY_DEVICE)
    return bad("output ", output, " lies in device memory");
  TRY(checkExtents(value, "output", output, static_cast<uint32_t>(extents.size()), extents));
  if (operand.data && (operand.rank != extents.size() ||
                       !std::equal(extents.begin(), extents.end(), operand.extents)))
    return bad("output ", output, " has extents ", textOf(extents), " where the caller expects ",
               textOf(Extents(operand.extents, operand.extents + operand.rank)));
  return {};
}

Status deliverOutput(const Program &program, uint32_t output, const dvt_run_args &args,
                     const Tensor &result) {
  const dvt_tensor &operand = args.outputs[output];
  TRY(checkOutputExtents(program, output, operand, result.extents));
  void *data = operand.data;
  if (!data && args.allocate_output)
    data =
        args.allocate_output(args.output_context, output,
                             static_cast<uint32_t>(result.extents.size()), result.extents.data());
  if (!data && result.count())
    return {DVT_OUT_OF_MEMORY,
            join("reference: output ", output, " of ", textOf(result.extents), " got no memory")};
  if (!data || data == result.data)
    return {};
  if (isFourBit(result.type)) {
    if (operand.strides || !program.outputLayout.empty())
      return {DVT_UNSUPPORTED, join("reference: output ", output,
                                    ": 4-bit elements that are not dense and row-major")};
    packNibbles(result, static_cast<uint8_t *>(data));
  } else if (!program.outputLayout.empty()) {
    PhysicalLayout layout;
    TRY(PhysicalLayout::parse(program.outputLayout, result.extents.size(), layout));
    layout.write(result, data);
  } else if (operand.data && operand.strides) {
    copyStrided(result.extents, elementBytes(result.type), result.data,
                static_cast<uint8_t *>(data), operand.strides, false);
  } else if (result.bytes()) {
    std::memcpy(data, result.data, result.bytes());
  }
  return {};
}

} // namespace dovetail::reference
