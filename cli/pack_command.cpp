// sluice pack: weights of 4 bits from a checkpoint or .npy files, packed as products take them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>

#include <fmt/core.h>

#include "choices.hpp"
#include "gemm_place.hpp"
#include "gpu.hpp"
#include "npy.hpp"
#include "safetensors.hpp"
#include "session.hpp"
#include "sluice/w4.hpp"
#include "w4_layer.hpp"
#include "w4_operand.hpp"

namespace sluice::cli {
namespace {

struct PackFlags {
  std::vector<std::string> files;
  std::string scales, zeros, layer, type, out, order;
  std::optional<int> group_size;
  bool gptq_v2 = false, bf16_as_uint16 = false, inspect = false, check = false;
  PlaceFlags place;
};

constexpr const char* kTypes = "bf16, fp16, e4m3";

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

PackW4Arguments arguments_of(const W4Layer& layer, Packed& packed) {
  return {.codes = layer.codes.data(),
          .scales = layer.scales.data(),
          .zeros = layer.zeros.empty() ? nullptr : layer.zeros.data(),
          .order = layer.order.empty() ? nullptr : layer.order.data(),
          .packed = packed.data()};
}

Result<std::vector<SafetensorsFile>> open_all(const std::vector<std::string>& paths) {
  std::vector<SafetensorsFile> files;
  for (const std::string& path : paths) {
    if (!is_safetensors(path)) return wrong(fmt::format("{}: pass either .safetensors files or one .npy file of codes", path));
    Result<SafetensorsFile> file = open_safetensors(path);
    if (!file) return file.error();
    for (const SafetensorsFile& other : files)
      for (const SafeTensor& tensor : file->tensors)
        if (other.find(tensor.name) != nullptr)
          return wrong(fmt::format("{} and {} both have a tensor '{}'", other.path, path, tensor.name));
    files.push_back(std::move(*file));
  }
  return files;
}

Result<W4Layer> read_layer(const PackFlags& flags) {
  W4LayerFlags how{.layer = flags.layer, .group_size = flags.group_size, .gptq_v2 = flags.gptq_v2};
  if (!flags.type.empty()) {
    const Result<DataType> type = choose("--type", flags.type, &parse_data_type, kTypes);
    if (!type) return type.error();
    how.type = *type;
  }
  if (is_safetensors(flags.files[0])) {
    if (!flags.scales.empty() || !flags.zeros.empty())
      return wrong("--scales and --zeros are for codes in an .npy file; a checkpoint has its own: leave them out");
    const Result<std::vector<SafetensorsFile>> files = open_all(flags.files);
    if (!files) return files.error();
    return read_w4_layer(*files, how);
  }
  if (flags.files.size() > 1) return wrong(fmt::format("{}: pass either .safetensors files or one .npy file of codes", flags.files[1]));
  if (!flags.layer.empty() || flags.gptq_v2) return wrong("--layer and --gptq-v2 are for .safetensors files; leave them out");
  if (flags.scales.empty()) return wrong("codes without their scales are worth nothing; pass --scales S.npy, [n, groups]");
  return read_plain_w4(flags.files[0], flags.scales, flags.zeros, flags.bf16_as_uint16, how);
}

Status pack_there(const W4Layer& layer, Packed& packed, Backend backend, const WantedPlace& wanted) {
  const PackW4Arguments arguments = arguments_of(layer, packed);
  switch (backend) {
    case Backend::cuda:
      return pack_w4_on_gpu(layer.problem, arguments);
    case Backend::emulator:
      return pack_w4_on_emulator(layer.problem, arguments, wanted.emulator);
    case Backend::reference:
      break;
  }
  return pack_w4_on_cpu(layer.problem, arguments, wanted.threads);
}

// Bytes that differ from the reference's.
Result<std::int64_t> count_differences(const W4Layer& layer, const Packed& got) {
  Packed expected(layer.problem);
  if (Status s = pack_w4_on_cpu(layer.problem, arguments_of(layer, expected)); !s) return s.error();
  std::int64_t different = 0;
  for (std::size_t i = 0; i < got.bytes().size(); ++i) different += got.bytes()[i] != expected.bytes()[i] ? 1 : 0;
  return different;
}

Status write_outputs(const PackFlags& flags, const W4Layer& layer, const Packed& packed, std::vector<std::string>& lines, Json& json) {
  if (!flags.out.empty()) {
    if (Status s = write_npy(flags.out, DataType::int4, packed_shape(layer.problem), packed.bytes()); !s) return s;
    lines.push_back(fmt::format("wrote {}: {} bytes, {}", flags.out, packed.bytes().size(), shape_text(packed_shape(layer.problem))));
    json["output"] = flags.out;
  }
  json["reordered"] = !layer.order.empty();
  if (layer.order.empty()) {
    if (!flags.order.empty()) lines.push_back(fmt::format("note  rows of K are in their order; {} is not written", flags.order));
    return Nothing{};
  }
  if (!flags.order.empty()) {
    if (Status s = write_npy_integers(flags.order, layer.order); !s) return s;
    lines.push_back(fmt::format("wrote {}: the order of K. The product needs A's columns in it: A[:, order]", flags.order));
    json["order"] = flags.order;
  }
  return Nothing{};
}

Outcome pack_layer(const PackFlags& flags, const Session& session) {
  if (flags.out.empty() && !flags.check) return wrong("the packed weights have nowhere to go; pass -o W.npy, or --check");
  for (const std::string& path : {flags.out, flags.order})
    if (Status s = check_folder_of(path); !s) return s.error();
  const Result<WantedPlace> wanted = read_place(flags.place);
  if (!wanted) return wanted.error();
  const Result<W4Layer> layer = read_layer(flags);
  if (!layer) return layer.error();
  if (!layer->order.empty() && !flags.out.empty() && flags.order.empty())
    return wrong(
        "the layer has act-order: its rows of K are packed in another order, in which the product needs A's columns; pass --order O.npy");
  const Place place = choose_place(flags.place, *wanted, gpu_or_reference);

  const PackW4Problem& p = layer->problem;
  Packed packed(p);
  const auto begin = std::chrono::steady_clock::now();
  if (Status s = pack_there(*layer, packed, place.backend, *wanted); !s) return s.error();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<std::string> lines = layer->lines;
  lines.push_back("B     " + describe(p) + (layer->order.empty() ? "" : ", rows of K reordered"));
  lines.push_back(fmt::format("ran   {} ({})", place.text, place.why));
  Json json = {{"problem", describe(p)},
               {"n", p.n},
               {"k", p.k},
               {"group_size", p.format.group_size},
               {"zero_points", p.format.zero_points},
               {"type", sluice::to_string(p.type)},
               {"source", sluice::to_string(p.source)},
               {"shape", packed_shape(p)},
               {"bytes", packed.bytes().size()},
               {"inputs", layer->lines},
               {"backend", sluice::to_string(place.backend)},
               {"why", place.why},
               {"where", place.text},
               {"seconds", seconds}};
  if (Status s = write_outputs(flags, *layer, packed, lines, json); !s) return s.error();
  int exit_code = 0;
  if (flags.check) {
    const Result<std::int64_t> different = count_differences(*layer, packed);
    if (!different) return different.error();
    json["different"] = *different;
    if (*different == 0) lines.push_back(fmt::format("{} bytes checked: all as the reference makes them", packed.bytes().size()));
    if (*different != 0) {
      fmt::print(stderr, "sluice: the result is wrong: {} bytes differ from the reference\n", *different);
      exit_code = kExitFailure;
    }
  }
  print_answer(session, json, lines);
  return exit_code;
}

Outcome inspect_checkpoint(const PackFlags& flags, const Session& session) {
  const Result<std::vector<SafetensorsFile>> files = open_all(flags.files);
  if (!files) return files.error();
  Json json = {{"files", Json::array()}, {"layers", w4_layers(*files)}};
  for (const SafetensorsFile& file : *files) {
    if (!session.json) fmt::print("{}: {} tensors\n", file.path, file.tensors.size());
    Json tensors = Json::array(), metadata = Json::object();
    for (const auto& [key, value] : file.metadata) {
      metadata[key] = value;
      if (!session.json) fmt::print("  {} = {}\n", key, value);
    }
    for (const SafeTensor& tensor : file.tensors) {
      tensors.push_back({{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"bytes", tensor.end - tensor.begin}});
      if (!session.json) fmt::print("  {:8} {:20} {}\n", tensor.dtype, shape_text(tensor.shape), tensor.name);
    }
    json["files"].push_back({{"path", file.path}, {"metadata", metadata}, {"tensors", tensors}});
  }
  if (session.json) {
    print_json(json);
    return 0;
  }
  const std::vector<std::string> layers = w4_layers(*files);
  fmt::print("{} layer{} of 4 bits\n", layers.size(), layers.size() == 1 ? "" : "s");
  for (const std::string& layer : layers) fmt::print("  {}\n", layer.empty() ? "(without a name)" : layer);
  return 0;
}

Outcome inspect_packed(const std::string& path, const Session& session) {
  const Result<NpyArray> array = read_npy(path, false);
  if (!array) return array.error();
  const Error no_weights{ErrorCode::bad_format, fmt::format("{}: holds {} {}, which `sluice pack` does not write", path,
                                                            to_string(array->type), shape_text(array->shape))};
  const std::optional<W4Format> format = format_of_packed(*array);
  if (!format) return no_weights;
  const std::int64_t blocks = array->shape[0], slabs = array->shape[1];
  if (blocks % 2 != 0 || slabs % 2 != 0 || blocks * slabs == 0) return no_weights;
  const std::string groups =
      format->group_size == 128 ? "groups of 128, or whole columns" : fmt::format("groups of {}", format->group_size);
  print_answer(
      session,
      {{"path", path}, {"blocks", blocks}, {"slabs", slabs}, {"group_size", format->group_size}, {"zero_points", format->zero_points}},
      {fmt::format("{}: packed weights of 4 bits, {} bytes", path, array->data.size()),
       fmt::format("  n  {} to {}, in {} blocks of 64", blocks * kBlockColumns - 120, blocks * kBlockColumns, blocks),
       fmt::format("  k  {} to {}, in {} slabs of 128", slabs * kSlabElems - 248, slabs * kSlabElems, slabs),
       fmt::format("  {}, {}", groups, format->zero_points ? "with zero points" : "no zero points")});
  return 0;
}

Outcome run_pack(const PackFlags& flags, const Session& session) {
  if (!flags.inspect) return pack_layer(flags, session);
  if (is_safetensors(flags.files[0])) return inspect_checkpoint(flags, session);
  if (flags.files.size() > 1) return wrong("--inspect takes .safetensors files, or one .npy file that `sluice pack` wrote");
  return inspect_packed(flags.files[0], session);
}

}  // namespace

void add_pack_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<PackFlags>();
  CLI::App* command = add_command<PackFlags>(
      app, session, "pack", "Pack weights of 4 bits (GPTQ, AWQ, compressed-tensors, .npy) as gemm reads them", flags, &run_pack);
  command
      ->add_option(
          "FILES", flags->files,
          "A checkpoint's .safetensors files, with a layer of GPTQ, AWQ (its GEMM version) or compressed-tensors; or codes in one .npy "
          "file, uint8 [n, k/2], the first of two in the low 4 bits")
      ->required();
  command->add_option("--layer", flags->layer, "Which: what the names of its tensors begin with, as model.layers.0.mlp.up_proj");
  command->add_option("--scales", flags->scales, "With codes in .npy: their scales, [n, groups], bf16, float16 or float32");
  command->add_option("--zeros", flags->zeros, "With codes in .npy: their zero points, uint8 [n, groups] (default: all 8)");
  command->add_option("--group-size", flags->group_size,
                      "Elements of K that share a scale: 32, 64, 128, 0 for all (default: as the scales say)");
  command->add_option("--type", flags->type, fmt::format("Of the activations: {} (default: the scales', bf16 for float32)", kTypes));
  command->add_flag("--gptq-v2", flags->gptq_v2, "Zero points of GPTQ are stored as they are, not less one");
  command->add_flag("--bf16-as-uint16", flags->bf16_as_uint16, "Scales of uint16 hold the bits of bf16 numbers");
  command->add_option("-o,--output", flags->out, "Where the packed weights go, uint8 [blocks, slabs, bytes]");
  command->add_option("--order", flags->order,
                      "Where the order of K goes if the layer has act-order, int32 [k]: the product needs A[:, order]");
  command->add_flag("--inspect", flags->inspect, "List a checkpoint's tensors and layers, or say what a packed file holds");
  command->add_flag("--check,--verify", flags->check, "Compare with what the reference makes of it");
  add_place_flags(*command, flags->place);
}

}  // namespace sluice::cli
