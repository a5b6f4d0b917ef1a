// SPDX-License-Identifier: Apache-2.0
//
// A prepared candidate: primitives, packed constants, and the objects a run binds its memory to.
// Runs allocate nothing after the first on each thread: bound memory objects are kept on a small
// lock-free shelf, one set per concurrent run.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "providers/PackedMemory.h"
#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {

/// Primitives of one implementation and all that is known of it but constants. Kernels of equal
/// problems share it: making primitives means compiling code.
struct Program {
  std::shared_ptr<const Library> library; ///< before the handles, which need it to the last
  Resolved resolved;
  std::vector<std::pair<uint32_t, std::vector<double>>> assumed; ///< as in Attempt
  View accumulated;                                              ///< as in Attempt
  std::vector<Primitive> primitives;                             ///< one for each stage
  std::vector<Desc> scratch;                                     ///< of each; empty for none
  bool ownsNumbers = false;                                      ///< as in Attempt

  /// Of the implementation `attempt` stands at. Null with `reason` on failure.
  static std::shared_ptr<const Program> make(std::shared_ptr<const Library> library,
                                             const Attempt &attempt, const Resolved &resolved,
                                             std::string &reason);
};

class Kernel {
public:
  /// Packs the constants. `args` are those of prepare. Null with `reason` on failure.
  static std::unique_ptr<Kernel> make(std::shared_ptr<const Program> program,
                                      const ProblemReader &problem, const dvt_prepare_args &args,
                                      std::string &reason);
  ~Kernel();
  Kernel(const Kernel &) = delete;

  uint64_t workspaceBytes() const { return program->resolved.workspaceBytes(); }
  /// Nothing on success, else why not.
  dvt_code run(const dvt_run_args &args, std::string &reason);

private:
  enum class Source : uint8_t { Input, Output, Constant, Workspace, Derived };
  /// Between a tensor of 16-bit floats and f32 in the workspace, see Binding::converts.
  struct Conversion {
    bool isInput;
    uint32_t index; ///< of the input or output
    uint64_t place; ///< in the workspace
    int64_t elements;
    dvt_type type;
  };
  struct Argument {
    int id;
    Source source;
    uint64_t place; ///< index of an input or output, or byte offset in the workspace
    void *constant;
    const_dnnl_memory_desc_t desc; ///< the program's
    /// Of what is derived at each run: place is the operand it is derived from, of this type.
    dvt_type from = DVT_UNDEFINED;
    Derived derived = {};
  };
  struct Stage {
    dnnl_primitive_t primitive; ///< the program's
    std::vector<Argument> arguments;
  };
  /// What one run at a time uses.
  struct Context {
    Stream stream;
    std::vector<Memory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>>
        arguments; ///< for each stage, in the order of Stage::arguments
    /// What was derived from operands of this run, for each stage and argument.
    std::vector<std::vector<std::vector<char>>> derived;
  };

  explicit Kernel(std::shared_ptr<const Program> made)
      : program(std::move(made)), library(*program->library) {}
  bool addStage(const ProblemReader &problem, size_t index, const dvt_prepare_args &args,
                std::string &reason);
  /// Bytes of a constant as the problem or the caller has them; null with `reason` on failure.
  const void *givenBytes(const ProblemReader &problem, uint32_t value, const dvt_prepare_args &args,
                         std::string &reason);
  /// A constant in the layout of its binding: the caller's bytes, or a copy.
  void *constantBytes(const ProblemReader &problem, const Binding &binding,
                      const dvt_prepare_args &args, std::string &reason);
  /// A quantised constant, or one of 16-bit floats, as f32; empty where its scales or zero points
  /// do not fit.
  std::vector<float> widen(const ProblemReader &problem, const Binding &binding, const void *bytes,
                           const dvt_prepare_args &args) const;
  /// A vector made of constants, or `argument` set up for one made at each run.
  bool derive(const ProblemReader &problem, const Binding &binding, const dvt_prepare_args &args,
              Argument &argument, std::string &reason);
  bool reorder(const Desc &from, const void *source, const Desc &to, void *destination);
  std::unique_ptr<Context> makeContext() const;
  std::unique_ptr<Context> takeContext();
  void putContext(std::unique_ptr<Context> context);

  static constexpr size_t kShelf = 16;
  std::shared_ptr<const Program> program;
  const Library &library;
  std::vector<Stage> stages;
  std::vector<Conversion> conversions;
  providers::PackedMemory constantMemory;
  std::vector<Dims> inputExtents, outputExtents;
  std::vector<bool> inputConstant;
  int32_t accumulatedInput = -1; ///< copied into the result first, unless it is there already
  uint64_t accumulatedBytes = 0;
  std::atomic<Context *> shelf[kShelf] = {};
};

} // namespace dovetail::onednn
