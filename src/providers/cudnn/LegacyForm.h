// SPDX-License-Identifier: Apache-2.0
//
// Graphs that the older calls compute: a convolution, then perhaps a bias, a sum and an activation;
// and what is on offer for one. An algorithm is named by the library's list
// ("legacy:implicit_gemm", "legacy:winograd"), or chosen on the device that runs it: by the
// library's ranking ("legacy:late") or by trying all ("legacy:find:late").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "providers/DevicePeaks.h"
#include "providers/cudnn/Graph.h"
#include "providers/cudnn/LegacyApi.h"

namespace dovetail::cudnn {

/// A part of a graph, by its tensors' numbers.
struct LegacyForm {
  size_t x = 0, w = 0, y = 0;
  std::optional<size_t> bias;   ///< one number for each channel
  std::optional<size_t> addend; ///< as large as the result
  std::optional<ActivationMode> activation;
  double coefficient = 0; ///< of the activation: ceiling of ClippedRelu, alpha of Elu
  Dims pads, strides, dilations;
  int64_t groups = 1;
  TensorFormat filterFormat = TensorFormat::ChannelsFirst;

  /// Whether one call computes all of it.
  bool isFused(const Graph &graph) const;
  /// Calls that it takes.
  size_t calls(const Graph &graph) const;
};

/// Nothing with `reason` where the graph is none.
std::optional<LegacyForm> findLegacyForm(const Graph &graph, std::string &reason);

struct LegacyOffer {
  enum class By { Name, Ranking, Trial };
  By by = By::Name;
  ForwardAlgorithm algorithm = ForwardAlgorithm::ImplicitGemm; ///< By::Name
  MathType math = MathType::Fma;
  std::string name;            ///< "legacy:implicit_gemm", stable
  std::string numerics;        ///< class of rounding
  uint64_t workspaceBytes = 0; ///< the most that the algorithm may take

  bool isDeterministic() const { return by == By::Name; }
};

/// Always the same list for the same form.
std::vector<LegacyOffer> legacyOffers(const Graph &graph, const LegacyForm &form);

/// By the roof line; negative where the description lacks a peak.
double estimateMicros(const Graph &graph, const LegacyForm &form, const LegacyOffer &offer,
                      const providers::RoughWork &work, const providers::DevicePeaks &peaks);

} // namespace dovetail::cudnn
