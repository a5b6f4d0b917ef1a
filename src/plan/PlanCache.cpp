// SPDX-License-Identifier: Apache-2.0
//
// SQLite storage of evaluations: one row for each problem and provider, kernels as one blob each.
#include "plan/PlanCache.h"

#include <cstring>
#include <filesystem>

#include <sqlite3.h>

#include "plan/WorkerProtocol.h"
#include "support/Hash.h"

namespace dovetail::plan {
namespace {

// Raised whenever stored trials would be misread or were measured in another way.
constexpr int kSchemaVersion = 6;

constexpr const char *kSchema = R"(
CREATE TABLE IF NOT EXISTS evaluations(
  id INTEGER PRIMARY KEY, problem TEXT NOT NULL, target TEXT NOT NULL, provider TEXT NOT NULL,
  version TEXT NOT NULL, mode TEXT NOT NULL, trials TEXT NOT NULL,
  digest TEXT NOT NULL, UNIQUE(problem, target, provider, version, mode));
CREATE TABLE IF NOT EXISTS kernels(
  evaluation INTEGER NOT NULL REFERENCES evaluations(id) ON DELETE CASCADE,
  position INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(evaluation, position));
)";

class Statement {
public:
  Statement(sqlite3 *database, const char *text) {
    sqlite3_prepare_v2(database, text, -1, &handle, nullptr);
  }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement &) = delete;
  Statement &bind(int at, const std::string &text) {
    sqlite3_bind_text(handle, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement &bind(int at, int64_t value) {
    sqlite3_bind_int64(handle, at, value);
    return *this;
  }
  Statement &bind(int at, const std::vector<uint8_t> &bytes) {
    sqlite3_bind_blob64(handle, at, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
    return *this;
  }
  int step() { return handle ? sqlite3_step(handle) : SQLITE_ERROR; }
  int64_t integer(int column) const { return sqlite3_column_int64(handle, column); }
  std::string text(int column) const {
    const unsigned char *bytes = sqlite3_column_text(handle, column);
    return bytes ? reinterpret_cast<const char *>(bytes) : "";
  }
  std::vector<uint8_t> blob(int column) const {
    const auto *bytes = static_cast<const uint8_t *>(sqlite3_column_blob(handle, column));
    return {bytes, bytes + sqlite3_column_bytes(handle, column)};
  }

private:
  sqlite3_stmt *handle = nullptr;
};

} // namespace

namespace {

/// SQLite does not notice altered bytes, and kernels out of here are run.
std::string digestOfRow(const std::string &trials,
                        const std::vector<std::vector<uint8_t>> &kernels) {
  Hasher hasher;
  hasher.update(trials);
  for (const std::vector<uint8_t> &kernel : kernels) {
    hasher.update(fmt::format(";{};", kernel.size()));
    hasher.update(kernel.data(), kernel.size());
  }
  return hexText(hasher.digest());
}

} // namespace

struct PlanCache::State {
  sqlite3 *database = nullptr;
  std::string file;
  bool complained = false;
  Log log;
  ~State() { sqlite3_close(database); }
  void complain(const char *action) {
    if (!complained)
      log(LogLevel::Warning,
          "the plan cache {} cannot be {}: {}; measurements of this run are not kept", file, action,
          database ? sqlite3_errmsg(database) : "no memory");
    complained = true;
  }
};

PlanCache::PlanCache() : state(std::make_unique<State>()) {}
PlanCache::~PlanCache() = default;

Expected<std::unique_ptr<PlanCache>> PlanCache::open(const std::string &folder, Log log) {
  std::unique_ptr<PlanCache> cache(new PlanCache);
  if (folder.empty())
    return cache;
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure)
    return unavailable(
        "the plan cache folder {} cannot be created: {}; choose another one with --cache DIR, or "
        "none with --no-cache",
        folder, failure.message());
  std::string file = folder + "/plans.sqlite";
  for (int attempt = 0; attempt < 2; ++attempt) {
    State &state = *cache->state;
    state.file = file;
    state.log = log;
    int code = sqlite3_open(file.c_str(), &state.database);
    if (code == SQLITE_OK) {
      sqlite3_busy_timeout(state.database, 10000);
      code = sqlite3_exec(
          state.database,
          "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;", nullptr,
          nullptr, nullptr);
    }
    if (code == SQLITE_OK) {
      int64_t version = 0;
      { // An open statement would keep the tables from being dropped.
        Statement query(state.database, "PRAGMA user_version");
        if (query.step() == SQLITE_ROW)
          version = query.integer(0);
      }
      if (version > kSchemaVersion) {
        log(LogLevel::Warning,
            "the plan cache {} was written by a newer Dovetail and is left alone: nothing is "
            "remembered in this run; choose another folder with --cache DIR",
            file);
        cache->state = std::make_unique<State>();
        return cache;
      }
      if (version != kSchemaVersion)
        code = sqlite3_exec(state.database,
                            "DROP TABLE IF EXISTS kernels; DROP TABLE IF EXISTS evaluations;",
                            nullptr, nullptr, nullptr);
    }
    if (code == SQLITE_OK)
      code = sqlite3_exec(state.database, kSchema, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK)
      code = sqlite3_exec(state.database,
                          fmt::format("PRAGMA user_version={}", kSchemaVersion).c_str(), nullptr,
                          nullptr, nullptr);
    if (code == SQLITE_OK)
      return cache;
    if (code != SQLITE_NOTADB && code != SQLITE_CORRUPT)
      return unavailable(
          "the plan cache {} cannot be written: {}; choose another folder with --cache DIR, or "
          "none with --no-cache",
          file, state.database ? sqlite3_errmsg(state.database) : "no memory");
    cache->state = std::make_unique<State>();
    std::filesystem::rename(file, file + ".corrupt", failure);
    log(LogLevel::Warning, "the plan cache {} was corrupt; it was set aside as {}.corrupt", file,
        file);
  }
  return unavailable("the plan cache {} is corrupt and cannot be replaced; remove it", file);
}

std::optional<Evaluation> PlanCache::find(const Key &key) {
  if (!state->database)
    return std::nullopt;
  Statement query(state->database,
                  "SELECT id, trials, digest FROM evaluations WHERE problem=?1 AND target=?2 AND "
                  "provider=?3 AND version=?4 AND mode=?5");
  query.bind(1, key.problem)
      .bind(2, key.target)
      .bind(3, key.provider)
      .bind(4, key.version)
      .bind(5, key.mode);
  if (query.step() != SQLITE_ROW)
    return std::nullopt;
  int64_t id = query.integer(0);
  std::vector<std::vector<uint8_t>> blobs;
  Statement kernels(state->database,
                    "SELECT bytes FROM kernels WHERE evaluation=?1 ORDER BY position");
  kernels.bind(1, id);
  while (kernels.step() == SQLITE_ROW)
    blobs.push_back(kernels.blob(0));
  if (digestOfRow(query.text(1), blobs) != query.text(2))
    return std::nullopt;
  auto json = nlohmann::json::parse(query.text(1), nullptr, false);
  if (json.is_discarded())
    return std::nullopt;
  auto evaluation = evaluationFromJson(json, blobs);
  if (!evaluation)
    return std::nullopt;
  return std::move(*evaluation);
}

void PlanCache::store(const Key &key, const Evaluation &evaluation) {
  if (!state->database)
    return;
  std::vector<std::vector<uint8_t>> blobs;
  std::string text =
      toJson(evaluation, &blobs).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  bool good =
      sqlite3_exec(state->database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
  if (good) {
    Statement remove(state->database,
                     "DELETE FROM evaluations WHERE problem=?1 AND target=?2 AND provider=?3 AND "
                     "version=?4 AND mode=?5");
    remove.bind(1, key.problem)
        .bind(2, key.target)
        .bind(3, key.provider)
        .bind(4, key.version)
        .bind(5, key.mode);
    good = remove.step() == SQLITE_DONE;
  }
  if (good) {
    Statement insert(state->database,
                     "INSERT INTO evaluations(problem, target, provider, version, mode, trials, "
                     "digest) VALUES(?1,?2,?3,?4,?5,?6,?7)");
    insert.bind(1, key.problem)
        .bind(2, key.target)
        .bind(3, key.provider)
        .bind(4, key.version)
        .bind(5, key.mode);
    insert.bind(6, text).bind(7, digestOfRow(text, blobs));
    good = insert.step() == SQLITE_DONE;
  }
  int64_t id = sqlite3_last_insert_rowid(state->database);
  for (size_t i = 0; good && i < blobs.size(); ++i) {
    Statement insert(state->database,
                     "INSERT INTO kernels(evaluation, position, bytes) VALUES(?1,?2,?3)");
    insert.bind(1, id).bind(2, static_cast<int64_t>(i)).bind(3, blobs[i]);
    good = insert.step() == SQLITE_DONE;
  }
  if (!good)
    state->complain("written");
  sqlite3_exec(state->database, good ? "COMMIT" : "ROLLBACK", nullptr, nullptr, nullptr);
}

} // namespace dovetail::plan
