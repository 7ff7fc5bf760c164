#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "bench/device_memory.hpp"
#include "bench/device_random.hpp"
#include "bench/operation_cases.hpp"
#include "bench/sizing.hpp"
#include "bench/stream_copy.hpp"
#include "bench/timing.hpp"
#include "sluice/device.hpp"
#include "sluice/w4.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kCheckedColumns = 128;  // the first ones, whose slabs are the first ones; the tests check the rest of the world

struct Case {
  PackW4Problem problem;
  bool reordered = false;
};
std::string describe(const Case& c) { return sluice::describe(c.problem) + (c.reordered ? ", reordered" : ""); }

// Layers of models of 8 and 70 billion weights.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{4096, 14336}, {28672, 4096}, {57344, 8192}})
    for (const W4Source source : {W4Source::plain, W4Source::gptq, W4Source::awq})
      for (const bool reordered : {false, true})
        cases.push_back({{.n = n, .k = k, .format = {.group_size = 128, .zero_points = true}, .source = source}, reordered});
  return cases;
}

// Where the parts of a set of operands lie, in bytes from its beginning.
struct SetLayout {
  std::size_t codes, scales, zeros, order, packed, all;
  explicit SetLayout(const PackW4Problem& p) {
    const auto room = [](std::int64_t bytes) { return padded(static_cast<std::size_t>(bytes)); };
    const std::int64_t scale_count = p.n * w4_groups(p.k, p.format);
    codes = 0;
    scales = room(p.n * p.k / 2);
    zeros = scales + room(scale_count * size_bytes(p.type_scales));
    order = zeros + room(scale_count);
    packed = order + room(p.k * 4);
    all = packed + room(packed_w4_bytes(p.n, p.k, p.format));
  }
};

struct CaseResult {
  Case what;
  Timing pack, copy;
  double bytes = 0, copy_bytes = 0;
  std::string wrong;  // empty: it is right

  double gb_per_s() const { return bytes / pack.us * 1e-3; }
  double copy_gb_per_s() const { return copy_bytes / copy.us * 1e-3; }
  double ratio() const { return gb_per_s() / copy_gb_per_s(); }
};

class PackMeasurement {
 public:
  PackMeasurement(const Case& what, std::size_t l2_bytes)
      : what_(what),
        layout_(what.problem),
        sets_(static_cast<int>(std::max<std::size_t>(2, 3 * l2_bytes / layout_.all + 1))),
        memory_(layout_.all * static_cast<std::size_t>(sets_)),
        order_(static_cast<std::size_t>(what.problem.k)) {
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(1));
    // Bits of any numbers do for codes; plain zero points are bytes that may not be above 16.
    const auto numbers = static_cast<std::int64_t>(layout_.zeros / 2);
    for (int set = 0; set < sets_; ++set) {
      fill_random(set_at(set), DataType::bf16, {.length = numbers, .pitch = numbers}, Distribution::normal,
                  static_cast<std::uint64_t>(set) + 1, stream_);
      check(cudaMemsetAsync(set_at(set) + layout_.zeros, 0x07, layout_.order - layout_.zeros, stream_), "filling zero points");
      check(cudaMemcpyAsync(set_at(set) + layout_.order, order_.data(), order_.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice,
                            stream_),
            "copying the order");
    }
    stream_.synchronize("filling operands");
  }

  CaseResult measure(double seconds) {
    const PackW4Problem& p = what_.problem;
    const std::size_t code_bytes = static_cast<std::size_t>(p.n * p.k / 2);
    const Enqueue pack = [this](int set, cudaStream_t stream) {
      if (const Status s = pack_w4(what_.problem, arguments(set), stream); !s) throw DeviceFailure(s.error().message);
    };
    std::vector<Enqueue> copies;
    for (const CopyHint hint : {CopyHint::none, CopyHint::streaming})
      copies.emplace_back([this, hint, code_bytes](int set, cudaStream_t stream) {
        stream_copy(set_at(set), set_at(set) + layout_.packed, code_bytes, 1, hint, stream);
      });
    CaseResult result{.what = what_};
    const auto scales = static_cast<double>(p.n * w4_groups(p.k, p.format));
    const double zeros = p.source == W4Source::plain ? 1 : 0.5;
    result.bytes = static_cast<double>(code_bytes) + scales * (size_bytes(p.type_scales) + zeros) +
                   static_cast<double>(packed_w4_bytes(p.n, p.k, p.format));
    result.copy_bytes = 2 * static_cast<double>(code_bytes);
    pack(0, stream_);
    result.wrong = verify();
    const Enqueue& copy = copies[fastest(copies, sets_, stream_)];
    std::tie(result.pack, result.copy) = time_beside(pack, copy, sets_, seconds, stream_);
    return result;
  }

 private:
  std::byte* set_at(int set) const { return memory_.data() + static_cast<std::size_t>(set) * layout_.all; }
  PackW4Arguments arguments(int set) const {
    return {.codes = set_at(set) + layout_.codes,
            .scales = set_at(set) + layout_.scales,
            .zeros = set_at(set) + layout_.zeros,
            .order = what_.reordered ? reinterpret_cast<const std::int32_t*>(set_at(set) + layout_.order) : nullptr,
            .packed = set_at(set) + layout_.packed};
  }

  // `rows` rows of so many bytes, of which the first are fetched.
  static std::vector<std::byte> fetch(const void* from, std::int64_t row_bytes, std::int64_t fetched_bytes, std::int64_t rows) {
    std::vector<std::byte> to(static_cast<std::size_t>(fetched_bytes * rows));
    check(cudaMemcpy2D(to.data(), static_cast<std::size_t>(fetched_bytes), from, static_cast<std::size_t>(row_bytes),
                       static_cast<std::size_t>(fetched_bytes), static_cast<std::size_t>(rows), cudaMemcpyDeviceToHost),
          "copying operands");
    return to;
  }

  // The first columns of set 0 beside what the CPU makes of them.
  std::string verify() {
    PackW4Problem part = what_.problem;
    const std::int64_t n = part.n, k = part.k, groups = k / part.format.group_size;
    part.n = kCheckedColumns;
    const PackW4Arguments device = arguments(0);
    stream_.synchronize("packing");
    // Rows are columns of B, elements of K or eight of these; a column has 4 bits, or a word.
    const auto codes_of = [&](std::int64_t columns) { return part.source == W4Source::gptq ? columns * 4 : columns / 2; };
    const bool plain = part.source == W4Source::plain;
    const std::int64_t rows = part.source == W4Source::gptq ? k / 8 : k;
    const std::vector<std::byte> codes =
        plain ? fetch(device.codes, k / 2, k / 2, part.n) : fetch(device.codes, codes_of(n), codes_of(part.n), rows);
    const std::vector<std::byte> scales =
        plain ? fetch(device.scales, groups * 2, groups * 2, part.n) : fetch(device.scales, n * 2, part.n * 2, groups);
    const std::vector<std::byte> zeros =
        plain ? fetch(device.zeros, groups, groups, part.n) : fetch(device.zeros, n / 2, part.n / 2, groups);
    const std::int64_t bytes = packed_w4_bytes(part.n, k, part.format);
    const std::vector<std::byte> got = fetch(device.packed, bytes, bytes, 1);
    constexpr std::size_t kAlignment = 256;
    const std::unique_ptr<std::byte, decltype(&std::free)> expected(
        static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(bytes))), &std::free);
    if (const Status s = pack_w4_on_cpu(part, {.codes = codes.data(),
                                               .scales = scales.data(),
                                               .zeros = zeros.data(),
                                               .order = what_.reordered ? order_.data() : nullptr,
                                               .packed = expected.get()});
        !s)
      return s.error().message;
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != expected.get()[i])
        return fmt::format("byte {} is {}, not {}", i, std::to_integer<int>(got[i]), std::to_integer<int>(expected.get()[i]));
    return "";
  }

  Case what_;
  SetLayout layout_;
  int sets_;
  DeviceBuffer memory_;
  std::vector<std::int32_t> order_;
  DeviceStream stream_;
};

std::string table_row(const CaseResult& r) {
  return fmt::format("{:76} {:9.2f} {:9.0f} {:9.0f} {:7.3f}  {}\n", describe(r.what), r.pack.us, r.gb_per_s(), r.copy_gb_per_s(), r.ratio(),
                     r.wrong.empty() ? "" : "WRONG: " + r.wrong);
}

Json to_json(const CaseResult& r) {
  return {{"case", describe(r.what)},     {"n", r.what.problem.n},
          {"k", r.what.problem.k},        {"us", r.pack.us},
          {"spread", r.pack.spread},      {"bytes", r.bytes},
          {"gb_per_s", r.gb_per_s()},     {"copy_us", r.copy.us},
          {"copy_spread", r.copy.spread}, {"copy_gb_per_s", r.copy_gb_per_s()},
          {"ratio", r.ratio()},           {"wrong", r.wrong}};
}

}  // namespace

Result<int> measure_pack_w4(const OperationBenchOptions& options) {
  const auto columns = fmt::format("{:76} {:>9} {:>9} {:>9} {:>7}", "", "us", "GB/s", "copy GB/s", "ratio");
  const auto measure = [&](const Case& c, const DeviceSpec& device) {
    return PackMeasurement(c, static_cast<std::size_t>(device.l2_bytes)).measure(options.seconds_per_case);
  };
  return measure_cases(options, all_cases(), columns, measure, say_if_wrong<CaseResult>);
}

}  // namespace sluice::bench
