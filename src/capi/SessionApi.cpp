// SPDX-License-Identifier: Apache-2.0
//
// Sessions through the C API.
#include <cstring>

#include "capi/Handles.h"

using namespace dovetail;

namespace {

using Numbers = std::span<const int64_t>;

/// The type and arrays of a tensor that the caller binds.
Status readTensor(const dvt_tensor *tensor, dvt_type type, Numbers &extents, Numbers &strides) {
  if (!tensor)
    return badInput("no tensor was given");
  if (tensor->type != type)
    return badInput("element type {} was bound where the model has {}",
                    typeName(tensor->type) ? typeName(tensor->type) : "unknown", typeName(type));
  if (tensor->memory != DVT_MEMORY_HOST)
    return badInput("memory of kind {} was bound; this model runs on host memory",
                    int(tensor->memory));
  if (tensor->rank > 0 && !tensor->extents)
    return badInput("a tensor of rank {} was bound without extents", tensor->rank);
  extents = {tensor->extents, tensor->rank};
  strides = tensor->strides ? Numbers(tensor->strides, tensor->rank) : Numbers();
  return Status::success();
}

const PlanBlock &blockOf(const dvt_session *session) {
  return session->session->model().plan().blocks[0];
}

} // namespace

dvt_code dvt_session_create(dvt_model *model, dvt_session **out, dvt_error *error) {
  return atBorder(error, [&]() -> Status {
    if (!model || !out)
      return badInput("dvt_session_create: no model, or nowhere to put the session");
    *out = nullptr;
    auto session = Session::create(model->model);
    if (!session)
      return session.takeError();
    auto handle = std::make_unique<dvt_session>();
    handle->session = std::move(*session);
    *out = handle.release();
    return Status::success();
  });
}

void dvt_session_release(dvt_session *session) { delete session; }

dvt_code dvt_session_bind_input(dvt_session *session, uint32_t index, const dvt_tensor *tensor,
                                dvt_error *error) {
  return atBorder(error, [&]() -> Status {
    const PlanBlock &block = blockOf(session);
    if (index >= block.inputs.size())
      return badInput("input {} does not exist: the model has {}", index, block.inputs.size());
    Numbers extents, strides;
    dvt_type type = block.values[block.inputs[index]].type;
    if (Status status = readTensor(tensor, type, extents, strides); !status)
      return status;
    return session->session->bindInput(index, tensor->data, extents, strides);
  });
}

dvt_code dvt_session_bind_output(dvt_session *session, uint32_t index, const dvt_tensor *tensor,
                                 dvt_error *error) {
  return atBorder(error, [&]() -> Status {
    const PlanBlock &block = blockOf(session);
    if (index >= block.outputs.size())
      return badInput("output {} does not exist: the model has {}", index, block.outputs.size());
    if (!tensor)
      return session->session->bindOutput(index, nullptr, {});
    Numbers extents, strides;
    dvt_type type = block.values[block.outputs[index]].type;
    if (Status status = readTensor(tensor, type, extents, strides); !status)
      return status;
    if (!tensor->data)
      return badInput("output {} was bound to no memory", index);
    return session->session->bindOutput(index, tensor->data, extents, strides);
  });
}

dvt_code dvt_session_feed_back(dvt_session *session, uint32_t output, uint32_t input,
                               dvt_error *error) {
  return atBorder(error, [&] { return session->session->feedBack(output, input); });
}

dvt_code dvt_session_reserve_state(dvt_session *session, uint32_t input, int64_t length,
                                   dvt_error *error) {
  return atBorder(error, [&] { return session->session->reserveState(input, length); });
}

dvt_code dvt_session_run(dvt_session *session, dvt_error *error) {
  return atBorder(error, [&] { return session->session->run(); });
}

dvt_code dvt_session_run_timed(dvt_session *session, double *micros, uint32_t count,
                               dvt_error *error) {
  return atBorder(error, [&] {
    Status status = session->session->run(&session->micros);
    if (status && micros && count > 0)
      std::memcpy(micros, session->micros.data(),
                  std::min<size_t>(count, session->micros.size()) * sizeof(double));
    return status;
  });
}

void dvt_session_cancel(dvt_session *session) { session->session->cancel(); }

dvt_code dvt_session_output(const dvt_session *session, uint32_t index, dvt_tensor *tensor,
                            dvt_error *error) {
  return atBorder(error, [&]() -> Status {
    size_t count = blockOf(session).outputs.size();
    if (!tensor || index >= count)
      return badInput("output {} does not exist: the model has {}", index, count);
    if (session->session->output(index).type == DVT_UNDEFINED)
      return badInput("output {} was not computed yet", index);
    *tensor = session->session->output(index);
    return Status::success();
  });
}

uint64_t dvt_session_memory_bytes(const dvt_session *session) {
  return session->session->arenaBytes();
}
