// SPDX-License-Identifier: Apache-2.0
//
// Users' own kernels among the options of a compilation.
#pragma once

#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "driver/Environment.h"
#include "plan/Planner.h"
#include "support/Expected.h"
#include "support/Log.h"

namespace dovetail {

/// Checks the manifests (docs/users-kernels.md) and puts them where the provider `user` looks for
/// them: among the folders of vendor libraries. BadInput where one is no manifest, two kernels have
/// one name, or kernels are given without a device, for which alone they are.
Status addUserKernels(const std::vector<std::string> &manifests, bool hasDevice,
                      Environment &environment);

/// Warns of each user's kernel that could not be built for some problem, once, with what its
/// compiler said.
void warnOfUserKernels(const plan::Planner &planner, const Log &log);

/// Writes what went into the kernels of a plan and what came out, each in files of its own in
/// `folder`, which is made if need be: PTX, cubins, code objects, logs of their tools, a text about
/// launches and resources, and of users' kernels source and manifest. Files are written whole or
/// not at all; those of earlier plans stay.
Status saveTemps(const Plan &plan, const Environment &environment, const std::string &folder);

/// Asked before long work: whether `folder` is one or can be made. BadInput otherwise.
Status checkTemps(const std::string &folder);

} // namespace dovetail
