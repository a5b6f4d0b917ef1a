// SPDX-License-Identifier: Apache-2.0
#include "providers/miopen/Offers.h"

namespace dovetail::miopen {

std::vector<Offer> offersFor(const Form &form) {
  const std::string type = nameOf(form.calls.front().result.type);
  Choice choice;
  choice.workspaceBytes = workspaceBound(form);
  if (!form.isConvolution())
    return {{form.family + ":forward", type, choice, true}};
  std::vector<Offer> offers;
  // Which algorithm it will be, and so whether it gives the same bits again, is not known here.
  auto add = [&](const std::string &name, Choice::By by, bool mayTransform) {
    choice.by = by;
    choice.mayTransform = mayTransform;
    offers.push_back({form.family + ":" + name + ":late", type + (mayTransform ? "-winograd" : ""),
                      choice, false});
  };
  const bool mayTransform = form.mayTransform();
  add("immediate", Choice::By::Immediate, false);
  if (mayTransform)
    add("immediate:winograd", Choice::By::Immediate, true);
  if (isFusible(form))
    add("fusion", Choice::By::Fusion, mayTransform);
  add("find", Choice::By::Find, false);
  if (mayTransform)
    add("find:winograd", Choice::By::Find, true);
  return offers;
}

double estimateMicros(const Form &form, const Offer &offer, const providers::RoughWork &work,
                      const providers::DevicePeaks &peaks) {
  const Tensor &result = form.calls.front().result;
  const std::string type = nameOf(result.type);
  const double busy = peaks.busyMicros(work, form.isConvolution() ? type + "_matrix" : type);
  if (busy < 0)
    return -1;
  // Half way between one call and all of them, since only the device tells whether the library has
  // the fused kernel.
  const bool isFused = offer.choice.by == Choice::By::Fusion;
  const double changes = static_cast<double>(form.calls.size() - 1) * (isFused ? 0.5 : 1),
               resultBytes = static_cast<double>(providers::product(result.dims)) *
                             static_cast<double>(elementBytes(result.type)),
               again = peaks.busyMicros({0, 2 * changes * resultBytes}, type);
  // No description tells which way finds the faster algorithm. Of equal ones that is taken which is
  // ready sooner and rounds as sums do.
  const double rank =
      (offer.choice.by == Choice::By::Find ? 1.02 : 1) + (offer.choice.mayTransform ? 0.01 : 0);
  return peaks.launchMicros * (1 + changes) + (busy + again) * rank;
}

} // namespace dovetail::miopen
