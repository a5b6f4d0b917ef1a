// SPDX-License-Identifier: Apache-2.0
//
// Graphs out of descriptors, and as text.
#pragma once

#include <nlohmann/json.hpp>

#include "Objects.h"

namespace cudnn_double {

/// The graph whose operations are these; null with what is wrong in `entry`.
std::shared_ptr<const KnownGraph> readGraph(Entry &entry, const std::vector<Ref> &operations);

/// Empty, or why the shapes and types of an operation's tensors do not go together.
std::string checkShapes(const api::Graph &graph, const api::Operation &op);

nlohmann::json toJson(const KnownGraph &graph);
/// Null where it is none.
std::shared_ptr<const KnownGraph> graphFromJson(const nlohmann::json &json);

} // namespace cudnn_double
