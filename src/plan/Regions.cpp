// SPDX-License-Identifier: Apache-2.0
//
// Grows regions around anchors: backwards over pointwise producers (and transposes where the anchor
// is a matrix product), forwards over pointwise consumers, and from attention over the transpose
// that closes it. A concatenation that puts slices of one value together again (the halves of a
// rotary embedding) takes these in, too, and a depthwise convolution takes in the pointwise one
// that alone reads its result. Every step of the growth is a region, so that the choice sees the
// whole range from single op to largest group. Dequantisations stand in every region that reads
// their results, whoever else does, and a quantisation ends a region: between regions of a
// quantised model values are integers.
#include "plan/Regions.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace dovetail::plan {
namespace {

struct UnitInfo {
  OpRole role;
  const std::vector<uint32_t> *inputs, *outputs;
  std::vector<uint32_t> ops;
  const std::string *name;
};

class Former {
public:
  Former(const OpTable &table, const RegionLimits &limits) : table(table), limits(limits) {
    compositeOf.assign(table.ops.size(), -1);
    for (uint32_t c = 0; c < table.composites.size(); ++c)
      for (uint32_t op : table.composites[c].body)
        compositeOf[op] = static_cast<int32_t>(c);
    isOutput.assign(table.values.size(), false);
    for (uint32_t value : table.outputs)
      isOutput[value] = true;
  }

  std::vector<Region> run() {
    for (uint32_t op = 0; op < table.ops.size(); ++op)
      if (needsKernel(op))
        growAround({false, op});
    for (uint32_t c = 0; c < table.composites.size(); ++c)
      growAround({true, c});
    return std::move(regions);
  }

private:
  bool needsKernel(uint32_t op) const {
    if (table.ops[op].role == OpRole::View || table.ops[op].role == OpRole::Control)
      return false;
    return !std::all_of(
        table.ops[op].outputs.begin(), table.ops[op].outputs.end(), [&](uint32_t v) {
          return v == kNoValue || table.values[v].isShapeData || table.values[v].constant;
        });
  }

  UnitInfo info(Unit unit) const {
    if (unit.composite) {
      const TableComposite &c = table.composites[unit.index];
      return {c.role, &c.inputs, &c.outputs, c.body, &c.name};
    }
    const TableOp &op = table.ops[unit.index];
    return {op.role, &op.inputs, &op.outputs, {unit.index}, &op.name};
  }

  /// The unit as which an op takes part in growth: its composite where it belongs to one.
  Unit unitOf(uint32_t op) const {
    if (compositeOf[op] >= 0)
      return {true, static_cast<uint32_t>(compositeOf[op])};
    return {false, op};
  }

  std::vector<Unit> userUnits(uint32_t value) const {
    std::vector<Unit> units;
    for (uint32_t op : table.values[value].users) {
      Unit unit = unitOf(op);
      if (std::find(units.begin(), units.end(), unit) == units.end())
        units.push_back(unit);
    }
    return units;
  }

  /// No path leaves the set and comes back. Ops are in topological order, so only the span between
  /// the first and the last op of the set matters. Nothing leaves by ops that are recomputed.
  bool isConvex(const std::set<uint32_t> &ops, const std::set<uint32_t> &recomputed) const {
    uint32_t first = *ops.begin(), last = *ops.rbegin();
    std::set<uint32_t> outsideAfter; // ops outside that depend on the set
    for (uint32_t op = first; op <= last; ++op) {
      bool inside = ops.count(op) != 0;
      for (uint32_t value : table.ops[op].inputs) {
        if (value == kNoValue || table.values[value].producer < 0)
          continue;
        uint32_t producer = static_cast<uint32_t>(table.values[value].producer);
        if (outsideAfter.count(producer)) {
          if (inside)
            return false;
          outsideAfter.insert(op);
        } else if (!inside && ops.count(producer) && !recomputed.count(producer)) {
          outsideAfter.insert(op);
        }
      }
    }
    return true;
  }

  bool joinsForward(Unit unit) const {
    UnitInfo unitInfo = info(unit);
    return (unitInfo.role == OpRole::Pointwise || unitInfo.role == OpRole::Quantize) &&
           unitInfo.outputs->size() == 1 && !table.values[(*unitInfo.outputs)[0]].isShapeData;
  }

  struct Set {
    std::set<Unit> units;
    std::set<uint32_t> ops;
    std::set<uint32_t> recomputed; ///< of ops: what others need of them they get elsewhere
    unsigned pointwise = 0;
    bool takesSlices = false;       ///< as producers
    bool takesPointwise = true;     ///< as producers
    unsigned dequantized = 0;       ///< of recomputed
    std::set<uint32_t> quantizedTo; ///< results of quantisations: what reads them is elsewhere
  };

  bool add(Set &set, Unit unit, bool recompute = false) const {
    UnitInfo unitInfo = info(unit);
    if (set.units.count(unit))
      return false;
    for (uint32_t op : unitInfo.ops)
      if (set.ops.count(op))
        return false;
    Set grown = set;
    grown.units.insert(unit);
    grown.ops.insert(unitInfo.ops.begin(), unitInfo.ops.end());
    if (recompute)
      grown.recomputed.insert(unitInfo.ops.begin(), unitInfo.ops.end());
    grown.pointwise += unitInfo.role == OpRole::Pointwise;
    grown.dequantized += unitInfo.role == OpRole::Dequantize;
    if (unitInfo.role == OpRole::Quantize)
      grown.quantizedTo.insert(unitInfo.outputs->front());
    // Limits are for growth: an op alone is a region whatever it takes.
    if (!set.units.empty() &&
        (grown.pointwise > limits.maxPointwise || !isConvex(grown.ops, grown.recomputed) ||
         countInputs(grown) > std::max(limits.maxInputs, countInputs(set))))
      return false;
    set = std::move(grown);
    return true;
  }

  /// Inputs that limits are for: scales and zero points are not among them.
  unsigned countInputs(const Set &set) const {
    unsigned count = 0;
    for (uint32_t value : close(set).inputs) {
      const std::vector<uint32_t> &users = table.values[value].users;
      count += !std::all_of(users.begin(), users.end(), [&](uint32_t op) {
        OpRole role = table.ops[op].role;
        return (role == OpRole::Quantize || role == OpRole::Dequantize) &&
               table.ops[op].inputs[0] != value;
      });
    }
    return count;
  }

  bool isUsedOnlyIn(const Set &set, uint32_t value) const {
    const std::vector<uint32_t> &users = table.values[value].users;
    return !isOutput[value] && std::all_of(users.begin(), users.end(),
                                           [&](uint32_t user) { return set.ops.count(user) != 0; });
  }

  /// The dequantisation of constants that a transpose turns; nothing where the unit is another.
  std::optional<Unit> turnedWeights(Unit unit) const {
    UnitInfo unitInfo = info(unit);
    if (*unitInfo.name != "transpose" || table.values[(*unitInfo.inputs)[0]].producer < 0)
      return std::nullopt;
    Unit weights = unitOf(uint32_t(table.values[(*unitInfo.inputs)[0]].producer));
    UnitInfo weightsInfo = info(weights);
    bool fromConstants =
        std::all_of(weightsInfo.inputs->begin(), weightsInfo.inputs->end(), [&](uint32_t v) {
          return v == kNoValue || table.values[v].absent || table.values[v].constant;
        });
    return weightsInfo.role == OpRole::Dequantize && fromConstants ? std::optional(weights)
                                                                   : std::nullopt;
  }

  /// Takes in the dequantisations of the set's inputs, those of weights also where a transpose lies
  /// between.
  bool absorbDequantizations(Set &set) const {
    bool grew = false;
    for (uint32_t value : close(set).inputs) {
      if (table.values[value].producer < 0 || table.values[value].isShapeData)
        continue;
      Unit producer = unitOf(static_cast<uint32_t>(table.values[value].producer));
      if (std::optional<Unit> weights = turnedWeights(producer)) {
        Set grown = set;
        if (add(grown, producer, !isUsedOnlyIn(set, value)) && add(grown, *weights, true)) {
          set = std::move(grown);
          grew = true;
        }
        continue;
      }
      grew |= info(producer).role == OpRole::Dequantize && add(set, producer, true);
    }
    return grew;
  }

  /// Inputs, outputs and order of a set. Outputs are what others need, but for what is recomputed:
  /// another region gives that, if somebody needs it at all.
  Region close(const Set &set) const {
    Region region;
    region.ops.assign(set.ops.begin(), set.ops.end());
    region.units.assign(set.units.begin(), set.units.end());
    std::sort(region.units.begin(), region.units.end(),
              [&](Unit a, Unit b) { return info(a).ops.back() < info(b).ops.back(); });
    std::set<uint32_t> produced;
    for (Unit unit : region.units)
      for (uint32_t value : *info(unit).outputs)
        if (value != kNoValue)
          produced.insert(value);
    auto addOnce = [](std::vector<uint32_t> &list, uint32_t value) {
      if (std::find(list.begin(), list.end(), value) == list.end())
        list.push_back(value);
    };
    for (Unit unit : region.units) {
      for (uint32_t value : *info(unit).inputs)
        if (value != kNoValue && !table.values[value].absent && !produced.count(value))
          addOnce(region.inputs, value);
      for (uint32_t value : *info(unit).outputs) {
        if (value == kNoValue || set.recomputed.count(info(unit).ops.front()))
          continue;
        bool needed = isOutput[value] || table.values[value].users.empty();
        for (uint32_t user : table.values[value].users)
          needed |= !set.ops.count(user);
        if (needed)
          addOnce(region.outputs, value);
      }
    }
    return region;
  }

  void emit(const Set &set) {
    std::vector<uint32_t> ops(set.ops.begin(), set.ops.end());
    std::vector<Unit> units(set.units.begin(), set.units.end());
    Region region = close(set);
    if (!seen.insert({ops, units, region.outputs}).second)
      return;
    if (!region.outputs.empty())
      regions.push_back(std::move(region));
  }

  /// Adds producers of the set's inputs that are cheap to run inside: pointwise ops, and transposes
  /// that feed a matrix product. What others use, too, is added only with `recompute`, pointwise
  /// ops only, and is computed again. Returns whether anything was added.
  bool growBackwardOnce(Set &set, bool recompute) const {
    Region region = close(set);
    for (uint32_t value : region.inputs) {
      if (table.values[value].producer < 0 || table.values[value].constant ||
          table.values[value].isShapeData)
        continue;
      Unit producer = unitOf(static_cast<uint32_t>(table.values[value].producer));
      UnitInfo producerInfo = info(producer);
      if (producerInfo.outputs->size() != 1)
        continue;
      bool onlyHere = isUsedOnlyIn(set, value);
      bool cheap = producerInfo.role == OpRole::Pointwise && set.takesPointwise;
      bool moves =
          producerInfo.role == OpRole::Movement &&
          (*producerInfo.name == "transpose" || (set.takesSlices && *producerInfo.name == "slice"));
      bool again =
          recompute && cheap && !onlyHere && !isCostly(*producerInfo.name) &&
          set.recomputed.size() - set.dequantized + producerInfo.ops.size() <= limits.maxRecomputed;
      if (((onlyHere && (cheap || moves)) || again) && add(set, producer, again))
        return true;
    }
    return false;
  }

  bool growForwardOnce(Set &set, bool &fanned) const {
    Region region = close(set);
    for (uint32_t value : region.outputs) {
      if (set.quantizedTo.count(value))
        continue;
      std::vector<Unit> users = userUnits(value);
      for (Unit user : users)
        if (joinsForward(user) && !set.units.count(user)) {
          Set before = set;
          if (!add(set, user))
            continue;
          fanned |= users.size() > 1 || isOutput[value];
          return true;
        }
    }
    return false;
  }

  const TableOp *producerOf(uint32_t value) const {
    int32_t op = value == kNoValue ? -1 : table.values[value].producer;
    return op < 0 ? nullptr : &table.ops[static_cast<size_t>(op)];
  }

  /// Whether all operands of a concatenation are slices of one value, or of one operand each
  /// computed from them.
  bool joinsSlices(Unit unit) const {
    if (unit.composite || table.ops[unit.index].name != "concat")
      return false;
    uint32_t source = kNoValue;
    for (uint32_t value : table.ops[unit.index].inputs) {
      const TableOp *op = producerOf(value);
      if (op && op->role == OpRole::Pointwise && op->inputs.size() == 1)
        op = producerOf(op->inputs[0]);
      if (!op || op->name != "slice" || (source != kNoValue && op->inputs[0] != source))
        return false;
      source = op->inputs[0];
    }
    return table.ops[unit.index].inputs.size() > 1;
  }

  /// Takes in the transpose that is all what follows the set.
  bool closeWithTranspose(Set &set) const {
    Region region = close(set);
    if (region.outputs.size() != 1 || isOutput[region.outputs[0]])
      return false;
    std::vector<Unit> users = userUnits(region.outputs[0]);
    return users.size() == 1 && *info(users[0]).name == "transpose" && add(set, users[0]);
  }

  /// Whether computing an element again takes more than a few instructions.
  static bool isCostly(const std::string &name) {
    static const std::set<std::string> names{"acos", "acosh", "asin", "asinh", "atan", "atanh",
                                             "cos",  "cosh",  "sin",  "sinh",  "tan"};
    return names.contains(name);
  }

  /// Extents of the weights of a plain conv in one group or, with `depthwise`, in as many as there
  /// are channels; empty for other ops.
  std::vector<int64_t> convolutionWeights(Unit unit, bool depthwise) const {
    if (unit.composite || table.ops[unit.index].name != "conv" ||
        table.ops[unit.index].inputs.size() < 2)
      return {};
    const TableOp &op = table.ops[unit.index];
    std::vector<int64_t> extents;
    for (const Extent &extent : table.values[op.inputs[1]].extents)
      extents.push_back(extent.staticValue().value_or(0));
    auto group = op.attributes.find("group");
    const int64_t *groups =
        group == op.attributes.end() ? nullptr : std::get_if<int64_t>(&group->second);
    bool fits = extents.size() >= 3 &&
                (depthwise ? extents[1] == 1 && groups && *groups > 1 && *groups == extents[0]
                           : !groups || *groups == 1);
    return fits ? extents : std::vector<int64_t>();
  }

  /// Takes in the pointwise convolution that alone reads what a depthwise one and its followers
  /// give.
  bool closeWithPointwise(Set &set) const {
    Region region = close(set);
    if (region.outputs.size() != 1 || isOutput[region.outputs[0]])
      return false;
    std::vector<Unit> users = userUnits(region.outputs[0]);
    if (users.size() != 1 || info(users[0]).inputs->front() != region.outputs[0])
      return false;
    std::vector<int64_t> weights = convolutionWeights(users[0], false);
    return !weights.empty() &&
           std::all_of(weights.begin() + 2, weights.end(), [](int64_t n) { return n == 1; }) &&
           add(set, users[0]);
  }

  void growAround(Unit anchor) {
    Set set;
    if (!add(set, anchor))
      return;
    emit(set);
    set.takesSlices = joinsSlices(anchor);
    // Queries, keys and values come to attention turned, and that is all that it does to them.
    set.takesPointwise = *info(anchor).name != "attention";
    OpRole role = info(anchor).role;
    if (role == OpRole::Other || role == OpRole::View || role == OpRole::Control ||
        role == OpRole::Dequantize)
      return;
    if (!anchor.composite && compositeOf[anchor.index] >= 0)
      return; // the split form of a composite: its parts run alone
    unsigned made = 0;
    if (absorbDequantizations(set))
      emit(set);
    if (role == OpRole::Quantize)
      return;
    Set forward = set;
    bool fanned = false;
    std::vector<Set> stages{set};
    if (role != OpRole::Movement || *info(anchor).name != "transpose") {
      while (made < limits.maxRegionsPerAnchor && growForwardOnce(forward, fanned)) {
        absorbDequantizations(forward);
        emit(forward);
        stages.push_back(forward);
        ++made;
      }
    }
    if (!convolutionWeights(anchor, true).empty())
      for (Set pair : stages)
        if (closeWithPointwise(pair)) {
          emit(pair);
          for (unsigned i = 0; i < limits.maxRegionsPerAnchor && growForwardOnce(pair, fanned); ++i)
            emit(pair);
        }
    if (Set closed = set; *info(anchor).name == "attention" && closeWithTranspose(closed)) {
      emit(closed);
      stages.push_back(std::move(closed));
    }
    if (role == OpRole::Contraction || role == OpRole::Pointwise || role == OpRole::Reduction ||
        set.takesSlices) {
      // Producers join the anchor alone and the longest forward group: those that nobody else uses,
      // and, as an offer of its own, those that would be computed again.
      for (const Set &stage : {stages.front(), stages.back()}) {
        for (bool recompute : {false, true}) {
          Set grown = stage;
          unsigned steps = 0;
          while (steps++ < limits.maxRegionsPerAnchor && growBackwardOnce(grown, recompute)) {
            absorbDequantizations(grown);
            emit(grown);
          }
          if (set.takesSlices && closeWithTranspose(grown))
            emit(grown);
        }
        if (stages.size() == 1)
          break;
      }
    }
  }

  const OpTable &table;
  const RegionLimits &limits;
  std::vector<int32_t> compositeOf;
  std::vector<bool> isOutput;
  std::vector<Region> regions;
  std::set<std::tuple<std::vector<uint32_t>, std::vector<Unit>, std::vector<uint32_t>>> seen;
};

} // namespace

void linkUsers(OpTable &table) {
  for (TableValue &value : table.values) {
    value.users.clear();
    value.producer = -1;
  }
  for (uint32_t i = 0; i < table.ops.size(); ++i) {
    for (uint32_t value : table.ops[i].inputs)
      if (value != kNoValue &&
          (table.values[value].users.empty() || table.values[value].users.back() != i))
        table.values[value].users.push_back(i);
    for (uint32_t value : table.ops[i].outputs)
      if (value != kNoValue)
        table.values[value].producer = static_cast<int32_t>(i);
  }
}

std::vector<Region> formRegions(const OpTable &table, const RegionLimits &limits) {
  return Former(table, limits).run();
}

std::string nodeNames(const OpTable &table, const Region &region) {
  std::string names;
  for (Unit unit : region.units) {
    const std::string &node =
        unit.composite ? table.composites[unit.index].node : table.ops[unit.index].node;
    names += (names.empty() ? "" : ", ") + node;
  }
  return names;
}

} // namespace dovetail::plan
