// SPDX-License-Identifier: Apache-2.0
//
// A step that is bound each time it runs: its operands depend on extents that another step found
// out, it finds out some itself, or it runs the body of a control-flow op. Slower than the bound
// ones: it evaluates extents and fills in arguments at each run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/Session.h"

namespace dovetail {

class UnboundStep {
public:
  UnboundStep(Session &session, const Action &action)
      : session(session), model(*session.owner), frame(*session.current->frame), action(action),
        step(session.block.steps[action.step]) {}
  Status run();

private:
  const PlanValue &value(uint32_t number) const { return session.block.values[number]; }
  Status readOperand(uint32_t number, const std::string &layout, dvt_tensor &tensor);
  Status writeOperand(uint32_t number, const std::string &layout, dvt_tensor &tensor);
  Status takeResult(uint32_t position, const std::string &layout, dvt_tensor &tensor);
  Status learn(uint32_t number);
  Status checkAgainstProblem() const;
  Status runKernel();

  // Control flow: ControlFlow.cpp.
  Status runIf();
  Status runLoop();
  Status runScan();
  Status runBody(Session &body);
  Status readDense(uint32_t position, dvt_tensor &tensor);
  Status bindBody(Session &body, uint32_t input, uint32_t position);
  Status bindCaptured(Session &body, uint32_t captured);
  Status bindCarried(Session &body, uint32_t count, uint32_t firstInput, uint32_t firstOutput);
  Status takeCarried(Session &body, uint32_t count, uint32_t firstInput, uint32_t firstOutput,
                     bool ran);
  Status checkElement(uint32_t position, int64_t iteration, std::span<const int64_t> shape,
                      std::span<const int64_t> others) const;
  Status bindResult(Session &body, uint32_t position);
  Status takeTensor(uint32_t position, const dvt_tensor &from);
  Expected<void *> placeResult(uint32_t position, const std::vector<int64_t> &extents);
  Expected<bool> readFlag(const dvt_tensor &tensor) const;

  static void *allocate(void *context, uint32_t output, uint32_t rank, const int64_t *extents);
  const std::vector<int64_t> &extents(uint32_t number) const { return session.extentsOf(number); }
  HostBuffer &temporary() {
    temporaries.push_back(std::make_unique<HostBuffer>(model.allocator()));
    return *temporaries.back();
  }

  Session &session;
  Model &model;
  Frame &frame;
  const Action &action;
  const PlanStep &step;
  std::vector<std::unique_ptr<HostBuffer>> temporaries;
  std::vector<bool> stated; ///< outputs whose extents the kernel stated
};

} // namespace dovetail
