#include "bench/device_check.hpp"

#include <algorithm>
#include <cmath>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace sluice::bench {
namespace {

constexpr int kThreads = 128;

__device__ double to_double(float value) { return value; }
__device__ double to_double(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ double to_double(__half value) { return __half2float(value); }
__device__ double to_double(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
__device__ double to_double(__nv_fp8_e5m2 value) { return static_cast<float>(value); }

// To the output's type and back. Towards below (above) first where fp32 cannot hold the value: an interval never shrinks.
template <class T>
__device__ double rounded_low(double value) {
  return to_double(static_cast<T>(__double2float_rd(value)));
}
template <class T>
__device__ double rounded_high(double value) {
  return to_double(static_cast<T>(__double2float_ru(value)));
}
template <class T>
__device__ double rounded(double value) {
  return to_double(static_cast<T>(static_cast<float>(value)));
}

__device__ double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x > 0 ? x : 0.0;
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + exp(-x));
  }
  return x;
}

// How far an activation carries an error of its argument (the largest slope of GELU is 1.13, of SiLU 1.10), and what evaluating it in
// fp32 adds, relative to |x|: half an ulp of fp16 is more, so tanh.approx (2^-11) would not pass.
constexpr double kLargestSlope = 1.13;
constexpr double kActivationError = 0x1p-19;

struct Strides {
  std::int64_t row, column, batch;  // in elements
};

constexpr std::int64_t kScaleBlock = 128;  // of K, and of vectors with Scaling::per_block_128
// Of K, whose products of FP8 are summed up by themselves: weights of 4 bits may have smaller groups.
std::int64_t short_elems(const GemmProblem& p) { return p.w4.group_size == 0 ? kScaleBlock : p.w4.group_size; }

// Where the scale of an element of an FP8 operand lies: of vector v (a row of A, a column of B), in the b-th 128 of K.
struct Scales {
  const float* data;  // null: none
  std::int64_t vector, k_block, batch;
  std::int64_t vectors_each;

  __device__ double at(std::int64_t matrix, std::int64_t v, std::int64_t b) const {
    return data == nullptr ? 1.0 : data[matrix * batch + v / vectors_each * vector + b * k_block];
  }
};
Scales scales(const float* data, Scaling scaling, Layout layout, std::int64_t leading, std::int64_t batch) {
  if (scaling == Scaling::none) return {nullptr, 0, 0, 0, 1};
  const std::int64_t each = scaling == Scaling::per_block_128 ? kScaleBlock : 1;
  if (!scales_along_k(scaling)) return {data, scaling == Scaling::per_vector ? 1 : 0, 0, batch, each};
  return layout == Layout::row_major ? Scales{data, leading, 1, batch, each} : Scales{data, 1, leading, batch, each};
}

// Which rows of D count, and to which group those of D that ragged groups share belong. Plain loops: sizes are looked at one by one.
struct GroupedRows {
  Grouping grouping;
  std::int64_t m, k, groups;
  const std::int32_t* sizes;
  std::int64_t step;  // numbers along K count as the multiple of it below

  // What of K the matrix `batch` of D is made from.
  __device__ std::int64_t first_k(std::int64_t batch) const { return grouping == Grouping::along_k ? held(sizes[batch], 0) : 0; }
  __device__ std::int64_t end_k(std::int64_t batch) const {
    return grouping == Grouping::along_k ? held(sizes[batch + 1], first_k(batch)) : k;
  }
  __device__ std::int64_t held(std::int64_t number, std::int64_t least) const {
    return number < least ? least : number > k ? k : number / step * step;
  }

  // Of the matrix `batch` of D; changes it to the group's number. False: the row is no group's.
  __device__ bool find(std::int64_t row, std::int64_t& batch) const {
    if (grouping == Grouping::none || grouping == Grouping::along_k) return true;
    if (grouping == Grouping::masked) return row < sizes[batch];
    for (batch = 0; batch < groups; ++batch)
      if (row >= sizes[batch] && row < sizes[batch + 1]) return true;
    return false;
  }
};
GroupedRows grouped_rows(const GemmProblem& p, const std::int32_t* sizes) {
  return {p.grouping, p.m, p.k, p.batch, sizes, is_fp8(p.type_a) ? kScaleBlock : 1};
}
std::int64_t row_matrices(const GemmProblem& p) { return p.grouping == Grouping::ragged ? 1 : p.batch; }

struct Operands {
  const void *a, *b, *c, *bias, *d;
  Strides a_strides, b_strides, c_strides, d_strides;  // "column" runs along K for A, "row" along K for B
  Scales a_scales, b_scales;
  GroupedRows rows;
  std::int64_t short_elems;
};

__device__ void note_wrong(CheckReport* report, const WrongElement& element) {
  atomicAdd(&report->wrong, 1ull);
  const int slot = atomicAdd(&report->listed, 1);
  if (slot < kWrongListed) report->first[slot] = element;
}

__device__ void note_ratio(CheckReport* report, double ratio) {
  // The plain read spares most threads the atomic; a stale value costs one more. Floats that are not negative order like their bits.
  if (static_cast<float>(ratio) > *static_cast<volatile float*>(&report->worst_ratio))
    atomicMax(reinterpret_cast<int*>(&report->worst_ratio), __float_as_int(static_cast<float>(ratio)));
}

// The tensor cores add 32 products of FP8 to the sum so far, and cut off what each of these, and their sum, has below the 14th bit of the
// largest (docs/numbers.md).
constexpr std::int64_t kStep = 32;
constexpr double kLostOfLargest = (kStep + 2) * 0x1p-13;

struct Sum {
  double value = 0;
  double magnitude = 0;  // of the products' absolute values
  double lost = 0;       // by the tensor cores, of products of FP8
};

template <class A, class B>
__device__ Sum multiply(const Operands& o, std::int64_t batch, std::int64_t row, std::int64_t column) {
  const std::int64_t k = o.rows.end_k(batch);
  const A* a = static_cast<const A*>(o.a) + batch * o.a_strides.batch + row * o.a_strides.row;
  const B* b = static_cast<const B*>(o.b) + batch * o.b_strides.batch + column * o.b_strides.column;
  Sum sum;
  for (std::int64_t block = o.rows.first_k(batch); block < k; block += o.short_elems) {
    const double scale = o.a_scales.at(batch, row, block / kScaleBlock) * o.b_scales.at(batch, column, block / kScaleBlock);
    Sum unscaled;
    for (std::int64_t begin = block; begin < k && begin < block + o.short_elems; begin += kStep) {
      const std::int64_t end = begin + kStep < k ? begin + kStep : k;
      double largest = fabs(unscaled.value) + unscaled.lost;
      for (std::int64_t i = begin; i < end; ++i) {
        const double product = to_double(a[i * o.a_strides.column]) * to_double(b[i * o.b_strides.row]);
        unscaled.value += product;
        unscaled.magnitude += fabs(product);
        largest = fmax(largest, fabs(product));
      }
      if (sizeof(A) == 1) unscaled.lost += kLostOfLargest * largest;
    }
    sum.value += scale * unscaled.value;
    sum.magnitude += fabs(scale) * unscaled.magnitude;
    sum.lost += fabs(scale) * unscaled.lost;
  }
  return sum;
}

// Of a sum of products. Those of FP8 are promoted, after each 128 of K or less: two roundings for each, and some for the scales.
template <class A>
__device__ double error_of(const Sum& sum, std::int64_t k, std::int64_t short_elems) {
  const double steps = sizeof(A) == 1 ? static_cast<double>((k + short_elems - 1) / short_elems + 4) : static_cast<double>(k);
  return sum.lost + steps * 0x1p-23 / (1 - steps * 0x1p-23) * (sum.magnitude + sum.lost);
}

template <class A, class B, class D>
__global__ void check_elements(GemmProblem p, Operands o, Exactness exactness, std::int64_t total, std::int64_t samples,
                               CheckReport* report) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= samples) return;
  // Samples are spread evenly, each somewhere in its share of the elements.
  const std::int64_t share = total / samples;
  const std::int64_t index = samples == total ? i : i * share + static_cast<std::int64_t>(i * 2654435761ull % share);
  std::int64_t batch = index / (p.m * p.n);
  const std::int64_t row = (index - batch * p.m * p.n) / p.n;
  const std::int64_t column = index % p.n;
  if (i == 0) atomicAdd(&report->checked, static_cast<unsigned long long>(samples));
  if (!o.rows.find(row, batch)) return;

  const double alpha = p.epilogue.alpha, beta = p.epilogue.beta;
  const Sum sum = alpha != 0 ? multiply<A, B>(o, batch, row, column) : Sum{};
  double value = alpha * sum.value;
  double error = fabs(alpha) * error_of<A>(sum, o.rows.end_k(batch) - o.rows.first_k(batch), o.short_elems);
  double terms = fabs(value);
  if (beta != 0) {
    const double c = to_double(static_cast<const D*>(o.c)[batch * o.c_strides.batch + row * o.c_strides.row + column]);
    value += beta * c;
    terms += fabs(beta * c);
  }
  if (p.epilogue.bias != Bias::none) {
    const std::int64_t first = p.epilogue.bias == Bias::per_group_column ? batch * p.n : 0;
    const double bias = to_double(static_cast<const D*>(o.bias)[p.epilogue.bias == Bias::per_row ? row : first + column]);
    value += bias;
    terms += fabs(bias);
  }
  error += 4 * 0x1p-24 * terms;  // a multiplication, two fused multiply-adds or additions, and one to spare
  const double expected = activate(p.epilogue.activation, value);
  if (p.epilogue.activation == Activation::gelu_tanh || p.epilogue.activation == Activation::silu)
    error = kLargestSlope * error + kActivationError * fabs(value);

  const double got = to_double(static_cast<const D*>(o.d)[batch * o.d_strides.batch + row * o.d_strides.row + column]);
  if (isnan(got)) atomicAdd(&report->not_a_number, 1ull);
  if (exactness == Exactness::exact) {
    if (!(got == rounded<D>(expected))) note_wrong(report, {batch, row, column, got, rounded<D>(expected), 0});
    return;
  }
  // Rounding is monotone: what lies between two numbers rounds to between their roundings.
  const double lowest = rounded_low<D>(expected - error), highest = rounded_high<D>(expected + error);
  const double bound = fmax(highest - expected, expected - lowest);
  if (!(got >= lowest && got <= highest)) note_wrong(report, {batch, row, column, got, expected, bound});
  if (isfinite(got) && bound > 0 && isfinite(bound)) note_ratio(report, fabs(got - expected) / bound);
}

__global__ void check_results(const __nv_bfloat16* got, const __nv_bfloat16* expected, std::int64_t rows, std::int64_t columns,
                              float relative, float absolute, CheckReport* report) {
  const std::int64_t total = rows * columns;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long nans = 0, checked = 0;
  float worst = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    const float x = __bfloat162float(got[i]), y = __bfloat162float(expected[i]);
    const float bound = relative * fmaxf(fabsf(x), fabsf(y)) + absolute;
    const float off = fabsf(x - y);
    ++checked;
    if (isnan(x)) ++nans;
    if (!(off <= bound)) note_wrong(report, {0, i / columns, i % columns, x, y, bound});
    if (isfinite(off)) worst = fmaxf(worst, off / bound);
  }
  atomicAdd(&report->checked, checked);
  if (nans > 0) atomicAdd(&report->not_a_number, nans);
  note_ratio(report, worst);
}

__global__ void check_bytes(const unsigned char* got, const unsigned char* expected, std::size_t bytes, CheckReport* report) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes; i += step)
    if (got[i] != expected[i])
      note_wrong(report, {0, 0, static_cast<std::int64_t>(i), static_cast<double>(got[i]), static_cast<double>(expected[i]), 0});
}

// `from_d`: the region's first byte relative to D's first.
__global__ void check_outside(GemmProblem p, GroupedRows rows, std::int64_t matrices, std::int64_t element_bytes,
                              const unsigned char* region, std::int64_t from_d, std::int64_t bytes, CheckReport* report) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes; i += step) {
    if (region[i] == kPoisonByte) continue;
    const std::int64_t offset = from_d + i;
    bool inside = false;
    if (offset >= 0 && p.m > 0 && p.n > 0 && p.batch > 0) {
      const std::int64_t element = offset / element_bytes;
      std::int64_t batch = matrices > 1 ? element / p.batch_stride_d : 0;
      const std::int64_t within = element - batch * p.batch_stride_d * (matrices > 1);
      const std::int64_t row = within / p.ldd;
      inside = batch < matrices && row < p.m && within - row * p.ldd < p.n && rows.find(row, batch);
    }
    if (inside) continue;
    atomicAdd(&report->written_outside, 1ull);
    report->first_outside = offset;
  }
}

int blocks_for(std::int64_t work) { return static_cast<int>(std::clamp<std::int64_t>((work + kThreads - 1) / kThreads, 1, 132 * 16)); }

template <class A, class B>
void launch_check(const GemmProblem& p, const Operands& o, Exactness exactness, std::int64_t samples, CheckReport* report,
                  cudaStream_t stream) {
  const std::int64_t total = p.m * p.n * row_matrices(p);
  const std::int64_t count = samples == 0 || samples > total ? total : samples;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  switch (p.type_d) {
    case DataType::bf16:
      check_elements<A, B, __nv_bfloat16><<<blocks, kThreads, 0, stream>>>(p, o, exactness, total, count, report);
      break;
    case DataType::fp16:
      check_elements<A, B, __half><<<blocks, kThreads, 0, stream>>>(p, o, exactness, total, count, report);
      break;
    case DataType::fp32:
      check_elements<A, B, float><<<blocks, kThreads, 0, stream>>>(p, o, exactness, total, count, report);
      break;
    case DataType::e4m3:
    case DataType::e5m2:
    case DataType::int4:
      break;  // never D's
  }
}

void launch_check_for_types(const GemmProblem& p, const Operands& o, Exactness exactness, std::int64_t samples, CheckReport* report,
                            cudaStream_t stream) {
  using e4m3 = __nv_fp8_e4m3;
  using e5m2 = __nv_fp8_e5m2;
  const bool b_is_e4m3 = p.type_b == DataType::e4m3;
  switch (p.type_a) {
    case DataType::bf16:
      return launch_check<__nv_bfloat16, __nv_bfloat16>(p, o, exactness, samples, report, stream);
    case DataType::fp16:
      return launch_check<__half, __half>(p, o, exactness, samples, report, stream);
    case DataType::e4m3:
      if (p.type_b == DataType::fp32) return launch_check<e4m3, float>(p, o, exactness, samples, report, stream);  // dequantised
      return b_is_e4m3 ? launch_check<e4m3, e4m3>(p, o, exactness, samples, report, stream)
                       : launch_check<e4m3, e5m2>(p, o, exactness, samples, report, stream);
    case DataType::e5m2:
      return b_is_e4m3 ? launch_check<e5m2, e4m3>(p, o, exactness, samples, report, stream)
                       : launch_check<e5m2, e5m2>(p, o, exactness, samples, report, stream);
    case DataType::fp32:
    case DataType::int4:
      break;  // of no A
  }
}

Strides strides(Layout layout, std::int64_t leading, std::int64_t batch) {
  return layout == Layout::row_major ? Strides{leading, 1, batch} : Strides{1, leading, batch};
}

}  // namespace

std::string describe_counts(const CheckReport& r) {
  std::string text =
      std::to_string(r.wrong) + " of " + std::to_string(r.checked) + " elements wrong, " + std::to_string(r.not_a_number) + " of them NaN";
  if (r.written_outside > 0)
    text += "; " + std::to_string(r.written_outside) + " bytes outside D overwritten, one at byte " + std::to_string(r.first_outside) +
            " from its start";
  return text;
}

std::string to_string(const CheckReport& r) {
  std::string text = describe_counts(r);
  for (int i = 0; i < std::min(r.listed, kWrongListed); ++i) {
    const WrongElement& e = r.first[i];
    text += (i == 0 ? "; e.g. D[" : ", D[") + (e.batch > 0 ? std::to_string(e.batch) + "][" : std::string()) + std::to_string(e.row) +
            ", " + std::to_string(e.column) + "] = " + std::to_string(e.got) + " instead of " + std::to_string(e.expected);
  }
  return text;
}

DeviceCheck::DeviceCheck(cudaStream_t stream) : stream_(stream), report_(sizeof(CheckReport)) {
  void* host = nullptr;
  check(cudaMallocHost(&host, sizeof(CheckReport)), "allocating pinned memory");
  host_ = static_cast<CheckReport*>(host);
  reset();
}

DeviceCheck::~DeviceCheck() { cudaFreeHost(host_); }

void DeviceCheck::reset() { check(cudaMemsetAsync(report_.data(), 0, sizeof(CheckReport), stream_), "clearing a check's report"); }

void DeviceCheck::against_reference(const GemmProblem& p, const GemmArguments& arguments, const void* c_before, Exactness exactness,
                                    std::int64_t samples) {
  if (is_empty(p)) return;
  if (p.type_b == DataType::int4) throw DeviceFailure("packed weights cannot be checked against: pass the product of the dense ones");
  const Operands o{arguments.a,
                   arguments.b,
                   c_before,
                   arguments.bias,
                   arguments.d,
                   strides(p.layout_a, p.lda, p.batch_stride_a),
                   strides(p.layout_b, p.ldb, p.batch_stride_b),
                   strides(Layout::row_major, p.ldc, p.batch_stride_c),
                   strides(Layout::row_major, p.ldd, p.batch_stride_d),
                   scales(arguments.scale_a, p.scaling_a, p.scale_layout_a, p.ld_scale_a, p.batch_stride_scale_a),
                   scales(arguments.scale_b, p.scaling_b, p.scale_layout_b, p.ld_scale_b, p.batch_stride_scale_b),
                   grouped_rows(p, arguments.groups),
                   short_elems(p)};
  auto* report = reinterpret_cast<CheckReport*>(report_.data());
  launch_check_for_types(p, o, exactness, samples, report, stream_);
  check(cudaGetLastError(), "checking against the reference");
}

void DeviceCheck::against_result(const void* got, const void* expected, std::int64_t rows, std::int64_t columns, float relative,
                                 float absolute) {
  check_results<<<blocks_for(rows * columns), kThreads, 0, stream_>>>(static_cast<const __nv_bfloat16*>(got),
                                                                      static_cast<const __nv_bfloat16*>(expected), rows, columns, relative,
                                                                      absolute, reinterpret_cast<CheckReport*>(report_.data()));
  check(cudaGetLastError(), "comparing two results");
}

void DeviceCheck::same_bytes(const void* got, const void* expected, std::size_t bytes) {
  check_bytes<<<blocks_for(static_cast<std::int64_t>(bytes)), kThreads, 0, stream_>>>(static_cast<const unsigned char*>(got),
                                                                                      static_cast<const unsigned char*>(expected), bytes,
                                                                                      reinterpret_cast<CheckReport*>(report_.data()));
  check(cudaGetLastError(), "comparing two results byte by byte");
}

void DeviceCheck::outside_untouched(const GemmProblem& p, const std::int32_t* groups, const void* d, const std::byte* region,
                                    std::size_t region_bytes) {
  const std::int64_t from_d = region - static_cast<const std::byte*>(d);
  check_outside<<<blocks_for(static_cast<std::int64_t>(region_bytes)), kThreads, 0, stream_>>>(
      p, grouped_rows(p, groups), row_matrices(p), size_bytes(p.type_d), reinterpret_cast<const unsigned char*>(region), from_d,
      static_cast<std::int64_t>(region_bytes), reinterpret_cast<CheckReport*>(report_.data()));
  check(cudaGetLastError(), "checking what lies around D");
}

CheckReport DeviceCheck::fetch() {
  check(cudaMemcpyAsync(host_, report_.data(), sizeof(CheckReport), cudaMemcpyDeviceToHost, stream_), "fetching a check's report");
  check(cudaStreamSynchronize(stream_), "waiting for a check");
  return *host_;
}

}  // namespace sluice::bench
