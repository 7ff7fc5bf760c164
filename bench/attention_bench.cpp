#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/device_memory.hpp"
#include "bench/device_random.hpp"
#include "bench/operation_cases.hpp"
#include "bench/sizing.hpp"
#include "bench/stream.hpp"
#include "bench/timing.hpp"
#include "sluice/attention.hpp"
#include "sluice/device.hpp"
#include "sluice/verify.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  AttentionProblem problem;
  std::vector<std::int32_t> lengths;
  const char* law;
};

std::string describe(const Case& c) { return sluice::describe(c.problem) + ", " + c.law; }

Case equal_lengths(std::int64_t batch, std::int64_t heads_q, std::int64_t heads_kv, std::int64_t length) {
  return {{.batch = batch, .heads_q = heads_q, .heads_kv = heads_kv, .max_kv_len = length},
          std::vector<std::int32_t>(static_cast<std::size_t>(batch), static_cast<std::int32_t>(length)),
          "equal lengths"};
}

// Length n from 100 to 32,000 as often as 1 / n.
Case zipf_lengths(std::int64_t batch) {
  constexpr int kLeast = 100, kMost = 32000;
  std::vector<double> upto;
  for (int n = kLeast; n <= kMost; ++n) upto.push_back((upto.empty() ? 0 : upto.back()) + 1.0 / n);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(0, upto.back());
  Case c{{.batch = batch, .heads_q = 32, .heads_kv = 8}, {}, "zipf lengths"};
  for (std::int64_t b = 0; b < batch; ++b)
    c.lengths.push_back(kLeast + static_cast<int>(std::lower_bound(upto.begin(), upto.end(), uniform(random)) - upto.begin()));
  c.problem.max_kv_len = *std::max_element(c.lengths.begin(), c.lengths.end());
  return c;
}

std::vector<Case> all_cases() {
  return {equal_lengths(1, 32, 8, 8192),
          equal_lengths(1, 32, 8, 131072),
          equal_lengths(4, 32, 8, 32768),
          equal_lengths(16, 32, 8, 8192),
          equal_lengths(64, 32, 8, 4096),
          equal_lengths(1, 64, 8, 32768),
          equal_lengths(8, 64, 8, 16384),
          equal_lengths(128, 64, 8, 2048),
          equal_lengths(1, 32, 32, 16384),
          equal_lengths(16, 32, 32, 4096),
          zipf_lengths(64)};
}

struct CaseResult {
  Case what;
  double kv_bytes = 0;
  Timing attention, constant, read;  // constant: with the cache declared so
  std::string wrong;                 // empty: it is right

  double tb_per_s() const { return kv_bytes / constant.us * 1e-6; }
  double read_tb_per_s() const { return kv_bytes / read.us * 1e-6; }
  double over_floor() const { return attention.us / read.us; }
  double constant_over_floor() const { return constant.us / read.us; }
};

class AttentionMeasurement {
 public:
  // Keys and values of all sets are three times L2.
  AttentionMeasurement(const Case& what, const DeviceSpec& device)
      : case_(what),
        plan_(*plan_attention(what.problem, device)),
        read_bytes_(static_cast<std::size_t>(kv_bytes(what.problem, what.lengths.data(), what.problem.batch))),
        tensor_bytes_(elems(what.problem.batch * what.problem.max_kv_len * what.problem.heads_kv)),
        sets_(static_cast<int>(std::max<std::size_t>(2, 3 * static_cast<std::size_t>(device.l2_bytes) / read_bytes_ + 1))),
        cache_(2 * tensor_bytes_ * static_cast<std::size_t>(sets_)),
        q_(elems(what.problem.batch * what.problem.heads_q)),
        o_(q_.size_bytes()),
        lengths_(what.lengths.size() * sizeof(std::int32_t)),
        workspace_(plan_.workspace_bytes) {
    fill(cache_, 1);
    fill(q_, 2);
    check(cudaMemcpy(lengths_.data(), what.lengths.data(), lengths_.size_bytes(), cudaMemcpyHostToDevice), "copying lengths");
    if (const Status s = prepare_attention_workspace(workspace_.data(), workspace_.size_bytes(), stream_); !s)
      throw DeviceFailure(s.error().message);
    stream_.synchronize("drawing keys and values");
  }

  CaseResult measure(double seconds) {
    AttentionPlan constant = plan_;
    constant.problem.constant_cache = true;
    const Enqueue read = [this](int set, cudaStream_t stream) { stream_through(keys(set), read_bytes_, stream); };
    CaseResult result{
        .what = case_, .kv_bytes = static_cast<double>(read_bytes_), .attention = {}, .constant = {}, .read = {}, .wrong = {}};
    for (const AttentionPlan& plan : {plan_, constant}) {
      check(cudaMemset(o_.data(), 0xff, o_.size_bytes()), "filling the result");
      attend(plan)(0, stream_);
      result.wrong += verify();
    }
    const std::vector<Timing> timings = time_all_beside({attend(plan_), attend(constant), read}, sets_, seconds, stream_);
    result.attention = timings[0], result.constant = timings[1], result.read = timings[2];
    return result;
  }

 private:
  Enqueue attend(const AttentionPlan& plan) {
    return [this, plan](int set, cudaStream_t stream) {
      if (const Status s = attention(plan, arguments(set), workspace_.data(), workspace_.size_bytes(), stream); !s)
        throw DeviceFailure(s.error().message);
    };
  }
  std::size_t elems(std::int64_t vectors) const { return static_cast<std::size_t>(vectors * case_.problem.head_size) * 2; }
  std::byte* keys(int set) const { return cache_.data() + 2 * tensor_bytes_ * static_cast<std::size_t>(set); }
  void fill(const DeviceBuffer& buffer, std::uint64_t seed) const {
    fill_random(buffer.data(), DataType::bf16, {.length = static_cast<std::int64_t>(buffer.size_bytes() / 2)}, Distribution::normal, seed,
                stream_);
  }
  AttentionArguments arguments(int set) const {
    return {.q = q_.data(),
            .k = keys(set),
            .v = keys(set) + tensor_bytes_,
            .o = o_.data(),
            .lengths = reinterpret_cast<const std::int32_t*>(lengths_.data())};
  }

  // The last sequence of set 0 beside the CPU's, within the rounding of weights and result.
  std::string verify() {
    AttentionProblem alone = plan_.problem;
    alone.batch = 1;
    const std::size_t row_bytes = elems(alone.heads_q), kv = elems(alone.max_kv_len * alone.heads_kv);
    const std::size_t last = static_cast<std::size_t>(plan_.problem.batch) - 1;
    std::vector<std::uint16_t> q(row_bytes / 2), k(kv / 2), v(kv / 2), got(q.size()), expected(q.size());
    stream_.synchronize("attending");
    const auto fetch = [](std::vector<std::uint16_t>& to, const std::byte* from) {
      check(cudaMemcpy(to.data(), from, to.size() * 2, cudaMemcpyDeviceToHost), "copying from the GPU");
    };
    fetch(q, q_.data() + last * row_bytes);
    fetch(got, o_.data() + last * row_bytes);
    fetch(k, keys(0) + last * kv);
    fetch(v, keys(0) + tensor_bytes_ + last * kv);
    const AttentionArguments host{
        .q = q.data(), .k = k.data(), .v = v.data(), .o = expected.data(), .lengths = case_.lengths.data() + last};
    if (const Status s = attention_on_cpu(alone, host); !s) return s.error().message;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double is = from_bf16_bits(got[i]), should = from_bf16_bits(expected[i]);
      if (!(std::abs(is - should) <= 0x1p-7 * std::abs(should) + 0.01)) return fmt::format("element {} is {}, not {}", i, is, should);
    }
    return "";
  }

  Case case_;
  AttentionPlan plan_;
  std::size_t read_bytes_, tensor_bytes_;
  int sets_;
  DeviceBuffer cache_, q_, o_, lengths_, workspace_;
  DeviceStream stream_;
};

std::string table_row(const CaseResult& r) {
  return fmt::format("{:72} {:8.1f} {:9.1f} {:9.1f} {:9.1f} {:6.2f} {:6.2f} {:6.3f} {:9.3f}  {}\n", describe(r.what), r.kv_bytes * 1e-6,
                     r.attention.us, r.constant.us, r.read.us, r.tb_per_s(), r.read_tb_per_s(), r.over_floor(), r.constant_over_floor(),
                     r.wrong.empty() ? "" : "WRONG: " + r.wrong);
}

Json to_json(const CaseResult& r) {
  return {{"case", describe(r.what)},
          {"batch", r.what.problem.batch},
          {"kv_bytes", r.kv_bytes},
          {"us", r.attention.us},
          {"spread", r.attention.spread},
          {"constant_us", r.constant.us},
          {"constant_spread", r.constant.spread},
          {"tb_per_s", r.tb_per_s()},
          {"read_us", r.read.us},
          {"read_spread", r.read.spread},
          {"read_tb_per_s", r.read_tb_per_s()},
          {"over_floor", r.over_floor()},
          {"constant_over_floor", r.constant_over_floor()},
          {"wrong", r.wrong}};
}

}  // namespace

Result<int> measure_attention(const OperationBenchOptions& options) {
  const auto columns = fmt::format("{:72} {:>8} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6} {:>9}", "", "MB", "us", "constant", "read us", "TB/s",
                                   "read", "ratio", "constant");
  const auto measure = [&](const Case& c, const DeviceSpec& device) {
    return AttentionMeasurement(c, device).measure(options.seconds_per_case);
  };
  return measure_cases(options, all_cases(), columns, measure, say_if_wrong<CaseResult>);
}

}  // namespace sluice::bench
