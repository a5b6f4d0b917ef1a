// SPDX-License-Identifier: Apache-2.0
//
// A prepared candidate: primitives, packed constants, and the objects a run binds its memory to.
// Runs allocate nothing after the first on each thread: bound memory objects are kept on a small
// lock-free shelf, one set per concurrent run.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {

class Kernel {
public:
  /// Makes primitives of the implementation `attempt` stands at and packs its constants.
  /// `constants` is one pointer per problem input as in dvt_prepare_args. Empty with `reason` on
  /// failure.
  static std::unique_ptr<Kernel> make(std::shared_ptr<const Library> library,
                                      const ProblemReader &problem, const Attempt &attempt,
                                      const Resolved &resolved, const void *const *constants,
                                      std::string &reason);
  ~Kernel();
  Kernel(const Kernel &) = delete;

  uint64_t workspaceBytes() const { return workspace; }
  /// Nothing on success, else why not.
  dvt_code run(const dvt_run_args &args, std::string &reason);

private:
  enum class Source : uint8_t { Input, Output, Constant, Workspace };
  struct Argument {
    int id;
    Source source;
    uint64_t place; ///< index of an input or output, or byte offset in the workspace
    void *constant;
    Desc desc;
  };
  struct Stage {
    Primitive primitive;
    std::vector<Argument> arguments;
  };
  /// What one run at a time uses.
  struct Context {
    Stream stream;
    std::vector<Memory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>>
        arguments; ///< for each stage, in the order of Stage::arguments
  };
  struct Bytes {
    std::unique_ptr<char, void (*)(void *)> data{nullptr, nullptr};
  };

  explicit Kernel(std::shared_ptr<const Library> library)
      : holder(std::move(library)), library(*holder) {}
  bool addStage(const ProblemReader &problem, const PrimitiveDesc &description,
                const std::vector<Binding> &bindings, const void *const *constants,
                std::string &reason);
  void *allocate(uint64_t bytes);
  /// A constant in the layout of its binding: the caller's bytes, or a copy.
  void *constantBytes(const ProblemReader &problem, const Binding &binding,
                      const void *const *constants, std::string &reason);
  bool reorder(const Desc &from, const void *source, const Desc &to, void *destination);
  std::unique_ptr<Context> makeContext() const;
  std::unique_ptr<Context> takeContext();
  void putContext(std::unique_ptr<Context> context);

  static constexpr size_t kShelf = 16;
  std::shared_ptr<const Library> holder;
  const Library &library;
  std::vector<Stage> stages;
  std::vector<Bytes> owned;
  std::vector<Dims> inputExtents, outputExtents;
  std::vector<bool> inputConstant;
  uint64_t workspace = 0, scratchOffset = 0;
  uint32_t threads = 1;
  int32_t accumulatedInput = -1; ///< copied into the result first, unless it is there already
  uint64_t accumulatedBytes = 0;
  std::atomic<Context *> shelf[kShelf] = {};
};

} // namespace dovetail::onednn
