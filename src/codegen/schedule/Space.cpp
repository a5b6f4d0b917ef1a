// SPDX-License-Identifier: Apache-2.0
//
// Builds iteration spaces: places each tensor in the physical dimensions of the space, drops
// dimensions of extent 1 and merges neighbours that all tensors walk alike.
#include "codegen/schedule/Space.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace dovetail::codegen {

std::optional<std::vector<SpaceDimension>> physicalDimensions(const Layout &layout, uint32_t rank) {
  std::vector<int64_t> blocks(rank, 1);
  for (const Layout::Block &block : layout.blocks) {
    if (block.dimension >= rank || blocks[block.dimension] != 1)
      return std::nullopt;
    blocks[block.dimension] = block.size;
  }
  if (!layout.order.empty() && layout.order.size() != rank)
    return std::nullopt;
  std::vector<SpaceDimension> dimensions;
  for (uint32_t i = 0; i < rank; ++i) {
    uint32_t logical = layout.order.empty() ? i : layout.order[i];
    dimensions.push_back({logical, blocks[logical], false});
  }
  for (const Layout::Block &block : layout.blocks)
    dimensions.push_back({block.dimension, block.size, true});
  return dimensions;
}

bool surelyBroadcasts(const dvt_extent &inner, const dvt_extent &outer) {
  return isOne(inner) || sameExtent(inner, outer);
}

bool perhapsBroadcasts(const dvt_extent &inner, const dvt_extent &outer) {
  return !surelyBroadcasts(inner, outer) && (!isStaticExtent(inner) || !isStaticExtent(outer)) &&
         !isOne(outer);
}

std::vector<dvt_extent> shapeOf(const dvt_value &value) {
  return {value.extents, value.extents + value.rank};
}

bool sameShape(const std::vector<dvt_extent> &a, const std::vector<dvt_extent> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), sameExtent);
}

std::vector<uint32_t> SpaceOperand::strideAxes(uint32_t axis) const {
  auto place = std::find(order.begin(), order.end(), axis);
  return place == order.end() ? std::vector<uint32_t>()
                              : std::vector<uint32_t>(place + 1, order.end());
}

const SpaceOperand *Space::find(uint32_t value) const {
  for (const SpaceOperand &operand : operands)
    if (operand.value == value)
      return &operand;
  return nullptr;
}

namespace {

constexpr double kTypicalExtent = 256;

class SpaceBuilder {
public:
  SpaceBuilder(const ProblemReader &problem, const SpaceRequest &request)
      : problem(problem), request(request) {}

  Expected<Space> build() {
    auto physical = physicalDimensions(request.layout, request.shape.size());
    if (!physical)
      return badInput("layout {} is not supported for rank {}", request.layout.text(),
                      request.shape.size());
    space.shape = request.shape;
    for (const SpaceDimension &dimension : *physical)
      if (!isOne(request.shape[dimension.logical]) || dimension.block != 1)
        space.axes.push_back(axisOf(dimension));
    for (const SpaceRequest::Tensor &tensor : request.tensors)
      if (Status status = place(tensor); !status)
        return status.takeError();
    if (request.merge)
      merge();
    if (space.axes.empty()) {
      space.axes.push_back({{}, 1, 1, false});
      for (SpaceOperand &operand : space.operands)
        operand.present.push_back(false);
      for (SpaceOperand &operand : space.operands)
        operand.own.emplace_back();
    }
    findPadding();
    return std::move(space);
  }

private:
  Axis axisOf(const SpaceDimension &dimension) {
    const dvt_extent &extent = request.shape[dimension.logical];
    Axis axis{{dimension}};
    int64_t known = extent.value;
    double typical = known >= 0
                         ? double(known)
                         : std::clamp(kTypicalExtent, double(extent.min), double(extent.max));
    if (dimension.inside) {
      axis.extent = dimension.block;
      axis.typical = double(dimension.block);
      int64_t divisor = known >= 0 ? known : extent.divisor;
      axis.padded = divisor % dimension.block != 0;
    } else {
      axis.extent = known >= 0 ? (known + dimension.block - 1) / dimension.block : -1;
      axis.typical = std::max(1.0, typical / double(dimension.block));
    }
    return axis;
  }

  Status place(const SpaceRequest::Tensor &tensor) {
    const dvt_value &value = problem.value(tensor.value);
    size_t rank = request.shape.size();
    if (value.rank > rank)
      return badInput("{} has more dimensions than the result", valueText(value));
    std::vector<bool> has(rank, false);
    std::vector<std::optional<dvt_extent>> own(rank);
    SpaceOperand operand;
    operand.dimensions = tensor.dimensions;
    for (size_t i = 0; tensor.dimensions.empty() && i < value.rank; ++i)
      operand.dimensions.push_back(rank - value.rank + i);
    for (size_t i = 0; i < value.rank; ++i) {
      size_t logical = operand.dimensions[i];
      const dvt_extent &extent = value.extents[i];
      bool unclear = request.unclear != SpaceRequest::Unclear::Refused &&
                     perhapsBroadcasts(extent, request.shape[logical]);
      if (!unclear && !surelyBroadcasts(extent, request.shape[logical]))
        return badInput("extent {} of {} may differ from {}", extentText(extent), valueText(value),
                        extentText(request.shape[logical]));
      if (unclear && request.unclear == SpaceRequest::Unclear::EqualOrOne)
        own[logical] = extent;
      else if (unclear)
        space.takenAsEqual.emplace_back(extent, request.shape[logical]);
      has[logical] =
          !isOne(value.extents[i]) ||
          (tensor.laidOut &&
           isOne(request.shape[logical])); // a block of a dimension of 1 is there, padded
    }
    operand.value = tensor.value;
    bool blocked = false;
    for (size_t i = 0; i < space.axes.size(); ++i) {
      const SpaceDimension &dimension = space.axes[i].dimensions[0];
      bool present = has[dimension.logical];
      operand.present.push_back(present);
      operand.own.push_back(own[dimension.logical]);
      blocked |= present && dimension.block != 1;
      if (present)
        operand.order.push_back(i);
    }
    auto logicalOrder = [&](uint32_t a, uint32_t b) {
      return space.axes[a].dimensions[0].logical < space.axes[b].dimensions[0].logical;
    };
    if (!tensor.laidOut) {
      bool asLogical = std::is_sorted(operand.order.begin(), operand.order.end(), logicalOrder) &&
                       (!blocked || blocksAreWhole(operand));
      operand.packed = tensor.pack && !asLogical;
      if (!operand.packed && blocked && !asLogical)
        return badInput("{} is row-major in a space of blocks", valueText(value));
      if (!operand.packed)
        std::stable_sort(operand.order.begin(), operand.order.end(), logicalOrder);
    }
    space.operands.push_back(std::move(operand));
    return Status::success();
  }

  /// Whether blocks follow each other in memory as in row-major: each block axis is followed by its
  /// inside, unpadded.
  bool blocksAreWhole(const SpaceOperand &operand) {
    for (size_t i = 0; i < operand.order.size(); ++i) {
      const Axis &axis = space.axes[operand.order[i]];
      const SpaceDimension &dimension = axis.dimensions[0];
      if (axis.padded)
        return false;
      if (dimension.block == 1 || dimension.inside)
        continue;
      if (i + 1 == operand.order.size())
        return false;
      const SpaceDimension &next = space.axes[operand.order[i + 1]].dimensions[0];
      if (next.logical != dimension.logical || !next.inside)
        return false;
    }
    return true;
  }

  bool mergeable(uint32_t axis) {
    const Axis &a = space.axes[axis], &b = space.axes[axis + 1];
    if (!request.kind.empty() &&
        request.kind[a.dimensions.back().logical] != request.kind[b.dimensions.front().logical])
      return false;
    // Padding is masked by the number of the block, so blocks stay apart where they may be padded.
    auto splits = [&](const Axis &candidate) {
      if (candidate.padded)
        return true;
      const SpaceDimension &dimension = candidate.dimensions.front();
      return dimension.block != 1 && !dimension.inside &&
             std::any_of(space.axes.begin(), space.axes.end(), [&](const Axis &other) {
               return other.padded && other.dimensions.front().logical == dimension.logical;
             });
    };
    if (splits(a) || splits(b))
      return false;
    return std::all_of(space.operands.begin(), space.operands.end(),
                       [&](const SpaceOperand &operand) {
                         if (operand.own[axis] || operand.own[axis + 1])
                           return false;
                         if (!operand.present[axis] || !operand.present[axis + 1])
                           return operand.present[axis] == operand.present[axis + 1];
                         auto place = std::find(operand.order.begin(), operand.order.end(), axis);
                         return place + 1 != operand.order.end() && place[1] == axis + 1;
                       });
  }

  void merge() {
    for (uint32_t axis = 0; axis + 1 < space.axes.size();) {
      if (!mergeable(axis)) {
        ++axis;
        continue;
      }
      Axis &a = space.axes[axis];
      const Axis &b = space.axes[axis + 1];
      a.dimensions.insert(a.dimensions.end(), b.dimensions.begin(), b.dimensions.end());
      a.extent = a.extent >= 0 && b.extent >= 0 ? a.extent * b.extent : -1;
      a.typical *= b.typical;
      space.axes.erase(space.axes.begin() + axis + 1);
      for (SpaceOperand &operand : space.operands) {
        operand.present.erase(operand.present.begin() + axis + 1);
        operand.own.erase(operand.own.begin() + axis + 1);
        std::erase(operand.order, axis + 1);
        for (uint32_t &number : operand.order)
          number -= number > axis;
      }
    }
  }

  void findPadding() {
    for (size_t i = 0; i < space.axes.size(); ++i)
      if (space.axes[i].padded)
        space.padInner = i;
    if (space.padInner < 0)
      return;
    uint32_t logical = space.axes[space.padInner].dimensions[0].logical;
    for (size_t i = 0; i < space.axes.size(); ++i)
      for (const SpaceDimension &dimension : space.axes[i].dimensions)
        if (dimension.logical == logical && !dimension.inside)
          space.padOuter = i;
  }

  const ProblemReader &problem;
  const SpaceRequest &request;
  Space space;
};

/// Extent of a physical dimension of a packed operand; static.
int64_t staticExtent(const Space &space, const SpaceDimension &dimension) {
  int64_t extent = space.shape[dimension.logical].value;
  return dimension.inside ? dimension.block : (extent + dimension.block - 1) / dimension.block;
}

} // namespace

Expected<Space> makeSpace(const ProblemReader &problem, const SpaceRequest &request) {
  return SpaceBuilder(problem, request).build();
}

std::optional<uint64_t> packedBytesOf(const Space &space, const SpaceOperand &operand,
                                      dvt_type type) {
  uint64_t bytes = elementBytes(type);
  for (uint32_t axis : operand.order) {
    if (space.axes[axis].extent < 0)
      return std::nullopt;
    bytes *= space.axes[axis].extent;
  }
  return bytes;
}

void packOperand(const Space &space, const SpaceOperand &operand, const dvt_value &value,
                 const void *from, void *to) {
  std::vector<SpaceDimension> dimensions;
  for (uint32_t axis : operand.order)
    dimensions.insert(dimensions.end(), space.axes[axis].dimensions.begin(),
                      space.axes[axis].dimensions.end());
  size_t rank = space.shape.size(), bytes = elementBytes(value.type);
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t i = value.rank; i-- > 0;) {
    strides[operand.dimensions[i]] = isOne(value.extents[i]) ? 0 : stride;
    stride *= value.extents[i].value;
  }
  int64_t count = 1;
  for (const SpaceDimension &dimension : dimensions)
    count *= staticExtent(space, dimension);
  auto *target = static_cast<char *>(to);
  for (int64_t position = 0; position < count; ++position) {
    std::vector<int64_t> index(rank, 0);
    int64_t rest = position;
    for (size_t i = dimensions.size(); i-- > 0;) {
      int64_t extent = staticExtent(space, dimensions[i]);
      index[dimensions[i].logical] +=
          rest % extent * (dimensions[i].inside ? 1 : dimensions[i].block);
      rest /= extent;
    }
    int64_t offset = 0;
    bool inside = true;
    for (size_t i = 0; i < rank; ++i) {
      offset += index[i] * strides[i];
      inside &= strides[i] == 0 || index[i] < space.shape[i].value;
    }
    if (inside)
      std::memcpy(target + position * bytes, static_cast<const char *>(from) + offset * bytes,
                  bytes);
    else
      std::memset(target + position * bytes, 0, bytes);
  }
}

void packInput(const Space &space, const ProblemReader &problem, uint32_t input, const void *from,
               void *to) {
  uint32_t value = problem.problem().inputs[input];
  if (const SpaceOperand *operand = space.find(value); operand && operand->packed)
    packOperand(space, *operand, problem.value(value), from, to);
}

TaskSplit splitTasks(const std::vector<Axis> &axes, double grain, int64_t innerStep) {
  double inside = 1;
  for (uint32_t axis = axes.size(); axis-- > 0;) {
    double whole = inside * std::max(1.0, axes[axis].typical);
    if (whole >= grain || axis == 0) {
      int64_t chunk = std::max<int64_t>(1, int64_t(grain / inside));
      if (axis + 1 == axes.size())
        chunk = (chunk + innerStep - 1) / innerStep * innerStep;
      return {axis, chunk};
    }
    inside = whole;
  }
  return {0, 1};
}

} // namespace dovetail::codegen
