// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling, windowed and global.
#include <algorithm>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

struct Window {
  Dims kernel, strides, dilates, padLeft, padRight;
};

/// False where oneDNN's windows would not be ONNX's.
bool readWindow(Maker &maker, const Dims &source, const Dims &result, bool global, bool includePad,
                Window &w) {
  const OpReader op = maker.op();
  const size_t spatial = source.size() - 2;
  if (global) {
    w.kernel = w.strides = Dims(source.begin() + 2, source.end());
    w.dilates = w.padLeft = w.padRight = Dims(spatial, 0);
    return true;
  }
  w.kernel = op.integers("kernel_shape", {});
  w.strides = op.integers("strides", Dims(spatial, 1));
  Dims dilations = op.integers("dilations", Dims(spatial, 1)),
       pads = op.integers("pads", Dims(2 * spatial, 0));
  if (w.kernel.size() != spatial || w.strides.size() != spatial || dilations.size() != spatial ||
      pads.size() != 2 * spatial)
    return maker.refuse(std::string(op.name()) + ": window attributes do not fit the rank");
  // It stays where the graph did not know the extents.
  const std::string automatic = op.string("auto_pad", "NOTSET");
  const bool isUpper = automatic == "SAME_UPPER", isSame = isUpper || automatic == "SAME_LOWER";
  if (automatic == "VALID")
    pads.assign(2 * spatial, 0);
  else if (!isSame && automatic != "NOTSET")
    return maker.refuse(std::string(op.name()) + ": auto_pad " + automatic + " is not supported");
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = (w.kernel[i] - 1) * dilations[i] + 1, in = source[i + 2],
                  out = result[i + 2];
    if (isSame) {
      const int64_t total = std::max<int64_t>((out - 1) * w.strides[i] + extent - in, 0);
      pads[i] = isUpper ? total / 2 : total - total / 2;
      pads[spatial + i] = total - pads[i];
    }
    const int64_t needed = (out - 1) * w.strides[i] + extent - in - pads[i],
                  stated = pads[spatial + i];
    if (w.strides[i] < 1 || dilations[i] < 1 || extent < 1)
      return maker.refuse(std::string(op.name()) +
                          ": strides, dilations and kernel must be positive");
    // The last window must start on the image, and padding that ceil_mode adds must not count in
    // averages.
    if ((out - 1) * w.strides[i] - pads[i] >= in || pads[i] >= extent ||
        (includePad && needed > stated))
      return maker.refuse(std::string(op.name()) +
                          ": windows outside the padded image are not supported");
    w.dilates.push_back(dilations[i] - 1);
    w.padLeft.push_back(pads[i]);
    w.padRight.push_back(std::max(needed, stated));
  }
  return true;
}

} // namespace

bool makePooling(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const std::string name(op.name());
  const View &source = maker.operand(0), &result = maker.match.result;
  if (source.dims.size() < 3 || source.dims.size() > 5 || result.dims.size() != source.dims.size())
    return maker.refuse(name + ": one to three spatial dimensions are supported");
  // The largest of bytes is one of them.
  const dnnl_data_type_t type = maker.type(source);
  const bool bytes = (type == dnnl_s8 || type == dnnl_u8) && type == maker.type(result) &&
                     name == "max_pool" && maker.match.postOps.empty();
  if (!bytes && !maker.isOneFloatType({&source, &result}))
    return maker.refuse(name + ": f32, f16 and bf16 are supported, and maxima of bytes");
  const bool global = name.rfind("global_", 0) == 0,
             average = name.find("average") != std::string::npos;
  const bool includePad = average && op.integer("count_include_pad", 0) != 0;
  Window w;
  if (!readWindow(maker, source.dims, result.dims, global, includePad, w))
    return false;
  const dnnl_alg_kind_t algorithm = !average     ? dnnl_pooling_max
                                    : includePad ? dnnl_pooling_avg_include_padding
                                                 : dnnl_pooling_avg_exclude_padding;
  for (Style style : maker.propagatingStyles(source)) {
    std::vector<Argument> arguments{{DNNL_ARG_SRC, source, -1}, {DNNL_ARG_DST, result, -1}};
    const Attributes attributes = maker.attributes(maker.match.postOps, style, arguments);
    const Desc from = maker.styled(source, style), to = maker.styled(result, style);
    if (!from || !to || !attributes)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.pooling_forward_primitive_desc_create(
        &made, library.engine, dnnl_forward_inference, algorithm, from.get(), to.get(),
        w.strides.data(), w.kernel.data(), w.dilates.data(), w.padLeft.data(), w.padRight.data(),
        attributes.get());
    maker.offer("pooling", status, made, std::move(arguments), bytes ? "int8" : "");
  }
  return true;
}

} // namespace dovetail::onednn
