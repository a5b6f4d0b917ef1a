// SPDX-License-Identifier: Apache-2.0
//
// What a program lends the C API as it loads a model: its allocator, its threads and its log.
#include <climits>
#include <cstdlib>
#include <fstream>
#include <map>

#include "runtime/CApiFixture.h"

using namespace dovetail;

namespace {

/// An allocator that keeps account of what it gave. It may have nothing left, or give memory that
/// is not aligned.
class HostMemory {
public:
  explicit HostMemory(dvt_load_options &options) {
    options.memory_context = this;
    options.allocate = allocate;
    options.release = release;
    options.threads = 1; // no lock is taken below
  }
  uint64_t held() const {
    uint64_t bytes = 0;
    for (const auto &[data, block] : blocks)
      bytes += block.bytes;
    return bytes;
  }
  bool gave(const void *memory) const {
    const auto *at = static_cast<const uint8_t *>(memory);
    for (const auto &[data, block] : blocks)
      if (at >= data && at < data + block.bytes)
        return true;
    return false;
  }
  bool isEmpty() const { return blocks.empty(); }

  int calls = 0, most = INT_MAX;
  size_t misplaced = 0; ///< bytes

private:
  struct Block {
    void *memory;
    uint64_t bytes;
  };

  static void *allocate(void *context, uint64_t bytes, uint64_t alignment) {
    auto &host = *static_cast<HostMemory *>(context);
    EXPECT_GT(bytes, 0u);
    EXPECT_GE(alignment, 64u);
    EXPECT_EQ(alignment & (alignment - 1), 0u) << alignment;
    void *memory = nullptr;
    if (++host.calls > host.most ||
        ::posix_memalign(&memory, alignment, bytes + host.misplaced) != 0)
      return nullptr;
    std::memset(memory, 0x5a, bytes + host.misplaced);
    uint8_t *data = static_cast<uint8_t *>(memory) + host.misplaced;
    host.blocks[data] = {memory, bytes};
    return data;
  }
  static void release(void *context, void *memory, uint64_t bytes) {
    auto &host = *static_cast<HostMemory *>(context);
    auto found = host.blocks.find(static_cast<uint8_t *>(memory));
    ASSERT_NE(found, host.blocks.end()) << "was not given, or came back before";
    EXPECT_EQ(found->second.bytes, bytes);
    std::free(found->second.memory);
    host.blocks.erase(found);
  }

  std::map<uint8_t *, Block> blocks;
};

TEST_F(CApi, MemoryIsTheHosts) {
  HostMemory memory(options);
  {
    ModelHandle model = load();
    SessionHandle session = open(model);
    std::vector<float> x = noise(13), given(x.begin() + 1, x.end());
    bindInput(session, {x.data() + 1, {4, 3}}); // at an odd address, which wants a copy
    dvt_tensor out = run(session);
    EXPECT_EQ(elements(out), denseLayerTruth(given));
    EXPECT_TRUE(memory.gave(out.data));
    EXPECT_GE(memory.held(), dvt_session_memory_bytes(session.get()));
    EXPECT_GT(dvt_session_memory_bytes(session.get()), 0u);
    const int calls = memory.calls;
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(elements(run(session)), denseLayerTruth(given));
    EXPECT_EQ(memory.calls, calls);
    model = nullptr;
    EXPECT_FALSE(memory.isEmpty()) << "the session keeps what it needs";
    EXPECT_EQ(elements(run(session)), denseLayerTruth(given));
  }
  EXPECT_TRUE(memory.isEmpty());
}

TEST_F(CApi, PackedWeightsAreHeldOnceForAllSessions) {
  constexpr uint64_t kPackedBytes = 64 * 256 * sizeof(float);
  PlanMaker maker;
  uint32_t x = maker.input("x", {4, 64}), w = maker.constant(noise(size_t(64) * 256), {64, 256});
  maker.step("mat_mul", {x, w}, {maker.outputValue("y", {4, 256})}).choice.candidate.packedBytes =
      kPackedBytes;
  write(maker.take());
  HostMemory memory(options);
  ModelHandle model = load();
  const uint64_t loaded = memory.held();
  EXPECT_GE(loaded, kPackedBytes);
  Aligned<float> data(size_t(4) * 64);
  std::vector<SessionHandle> sessions;
  std::vector<uint64_t> taken;
  for (uint64_t before = loaded; sessions.size() < 3; before = memory.held()) {
    sessions.push_back(open(model));
    bindInput(sessions.back(), {data.data(), {4, 64}});
    run(sessions.back());
    taken.push_back(memory.held() - before);
  }
  EXPECT_LT(taken[0], kPackedBytes / 4);
  EXPECT_EQ(taken, std::vector<uint64_t>(3, taken[0]));
  sessions.clear();
  EXPECT_EQ(memory.held(), loaded);
}

TEST_F(CApi, TooLittleMemoryIsTold) {
  std::vector<float> x = noise(13), given(x.begin() + 1, x.end());
  const Described input(x.data() + 1, {4, 3});
  // Each time the host has one block more to give.
  for (int most = 0;; ++most) {
    HostMemory memory(options);
    memory.most = most;
    dvt_model *model = nullptr;
    dvt_session *session = nullptr;
    error.message[0] = 0;
    dvt_code code = dvt_model_load(path.c_str(), &options, &model, &error);
    if (code == DVT_OK)
      code = dvt_session_create(model, &session, &error);
    if (code == DVT_OK)
      code = dvt_session_bind_input(session, 0, &input.tensor, &error);
    if (code == DVT_OK)
      code = dvt_session_run(session, &error);
    if (code != DVT_OK) {
      EXPECT_EQ(code, DVT_UNAVAILABLE);
      EXPECT_TRUE(says("no memory for")) << error.message;
      memory.most = INT_MAX; // a session that there is may go on when there is more
      EXPECT_TRUE(!session || dvt_session_run(session, &error) == DVT_OK) << error.message;
    }
    if (session) {
      dvt_tensor out{};
      ASSERT_EQ(dvt_session_output(session, 0, &out, &error), DVT_OK) << error.message;
      EXPECT_EQ(elements(out), denseLayerTruth(given));
    }
    dvt_session_release(session);
    dvt_model_release(model);
    EXPECT_TRUE(memory.isEmpty()) << most;
    if (code == DVT_OK) {
      EXPECT_GE(most, 3) << "at least intermediate results, a copy of the input, and the output";
      break;
    }
    ASSERT_LT(most, 100);
  }
}

TEST_F(CApi, MemoryThatIsNotAlignedGoesBack) {
  HostMemory memory(options);
  memory.misplaced = 8;
  ModelHandle model = load();
  dvt_session *session = nullptr;
  EXPECT_EQ(dvt_session_create(model.get(), &session, &error), DVT_UNAVAILABLE);
  EXPECT_EQ(session, nullptr);
  EXPECT_TRUE(memory.isEmpty());
  EXPECT_GT(memory.calls, 0);
}

/// A host's parallel-for that gives out indices one by one, from the last to the first.
struct HostThreads {
  std::vector<int64_t> counts;
  dvt_parallel parallel{sizeof(dvt_parallel), 3, this,
                        [](void *context, int64_t count,
                           void (*body)(void *, int64_t, int64_t, uint32_t), void *argument) {
                          static_cast<HostThreads *>(context)->counts.push_back(count);
                          for (int64_t i = count; i-- > 0;)
                            body(argument, i, i + 1, uint32_t(i % 3));
                        }};
};

TEST_F(CApi, ThreadsAreTheHosts) {
  HostThreads threads;
  options.parallel = &threads.parallel;
  options.threads = 8; // what the host brings counts
  ModelHandle model = load();
  EXPECT_EQ(dvt_model_threads(model.get()), 3u);
  threads.parallel = {}; // it was copied
  SessionHandle session = open(model);
  std::vector<float> data = noise(12);
  Aligned<float> x(12), y(20);
  std::copy(data.begin(), data.end(), x.begin());
  std::fill(y.begin(), y.end(), -1.0f);
  bindInput(session, {x.data(), {4, 3}});
  Described bound(y.data(), {4, 5});
  ASSERT_EQ(dvt_session_bind_output(session.get(), 0, &bound.tensor, &error), DVT_OK);
  threads.counts.clear();
  EXPECT_EQ(elements(run(session)), denseLayerTruth(data));
  EXPECT_EQ(threads.counts, std::vector<int64_t>{20}) << "the activation alone is run in parallel";
}

using Lines = std::vector<std::pair<int, std::string>>;

TEST_F(CApi, TheLogSaysWhatIsNotAsPlanned) {
  // A toy of another version, which hides the one that was planned with, and what is no plug-in.
  const std::string folder = path + ".plugins",
                    newer = std::string(DOVETAIL_BINARY_DIR) + "/test/newer_toys";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/dovetail_text.so") << "not a library\n";
  const std::string folders = newer + ":" + plugins + ":" + folder;
  options.plugin_path = folders.c_str();
  Lines said;
  options.log_context = &said;
  options.log = [](void *context, int level, const char *message) {
    static_cast<Lines *>(context)->emplace_back(level, message);
  };
  auto has = [&](int level, std::initializer_list<std::string> parts) {
    return std::any_of(said.begin(), said.end(), [&](const auto &line) {
      return line.first == level &&
             std::all_of(parts.begin(), parts.end(), [&](const std::string &part) {
               return line.second.find(part) != std::string::npos;
             });
    });
  };
  for (int lowest = 0; lowest <= 3; ++lowest) {
    options.log_level = lowest;
    said.clear();
    load();
    for (const auto &[level, message] : said)
      EXPECT_TRUE(level >= lowest && level <= 2) << level << ": " << message;
    EXPECT_EQ(has(0, {path, ": read in ", "kernels made ready in "}), lowest == 0);
    EXPECT_EQ(has(1, {plugins + "/dovetail_toy.so", "a provider named toy was loaded before it"}),
              lowest <= 1);
    EXPECT_EQ(has(2, {folder + "/dovetail_text.so", "not a shared library"}), lowest <= 2);
    EXPECT_EQ(has(2, {"step 'relu3': toy:plain runs instead of toy:plain",
                      "provider toy has version 2.0 instead of 1.0"}),
              lowest <= 2);
  }
  options.log = nullptr; // without one nothing is said
  load();
  std::filesystem::remove_all(folder);
}

} // namespace
