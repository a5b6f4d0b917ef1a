// SPDX-License-Identifier: Apache-2.0
//
// Takes the large tensor payloads out of a serialised ModelProto before protobuf sees it. Protobuf
// copies every bytes field it parses, which would hold the weights twice; so the wire format is
// walked here, payloads above a threshold are cut out, and the tensor is marked as stored
// externally in a pseudo-file with offset and length. What is left is small and goes through
// protobuf as usual. Everything is bounded by the input: lengths are checked, depth is limited,
// nothing is allocated beyond a copy of what is kept.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "support/Expected.h"

namespace dovetail::importer {

/// The external_data location that stands for the model's own bytes. No file can have this name.
constexpr std::string_view kModelItself{"\0model", 6};

/// Payloads up to this many bytes stay in the message, so that shapes and axes can be read from it.
constexpr size_t kPayloadThreshold = 4096;

/// Message nesting beyond this is refused; protobuf's own limit.
constexpr unsigned kDeepestMessage = 100;

/// More messages than this in one model are refused: parsed, each costs some hundred bytes.
constexpr size_t kMostMessages = 8'000'000;

/// The model without its large payloads. BadInput where `model` is not well-formed.
Expected<std::string> cutPayloads(std::string_view model);

} // namespace dovetail::importer
