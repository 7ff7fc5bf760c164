// The arithmetic of the epilogue on single elements: C, bias and activation, and stores at any alignment.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernel/epilogue/elements.cuh"

namespace sluice {

// `size` neighbouring elements of C, D or bias, in one access where they are aligned.
template <DataType type, int size>
struct Neighbours {
  using E = Element<type>;
  struct alignas(size * sizeof(typename E::Type)) Packed {
    typename E::Type e[size];
  };

  // x += factor * source[0 .. count)
  static SLUICE_DEVICE void add(float (&x)[size], float factor, const void* base, std::int64_t offset, int count, bool aligned) {
    const typename E::Type* source = static_cast<const typename E::Type*>(base) + offset;
    Packed values{};
    if (count == size && aligned) {
      values = arch::load_global(reinterpret_cast<const Packed*>(source));
    } else {
      SLUICE_UNROLL
      for (int i = 0; i < size; ++i)
        if (i < count) values.e[i] = arch::load_global(source + i);
    }
    SLUICE_UNROLL
    for (int i = 0; i < size; ++i) x[i] += factor * E::to_float(values.e[i]);
  }

  static SLUICE_DEVICE void store(const float (&x)[size], void* base, std::int64_t offset, int count, bool aligned) {
    typename E::Type* target = static_cast<typename E::Type*>(base) + offset;
    Packed values;
    SLUICE_UNROLL
    for (int i = 0; i < size; ++i) values.e[i] = E::from_float(x[i]);
    if (count == size && aligned) {
      arch::store_global(reinterpret_cast<Packed*>(target), values);
    } else {
      SLUICE_UNROLL
      for (int i = 0; i < size; ++i)
        if (i < count) arch::store_global(target + i, values.e[i]);
    }
  }
};

// f.operator()<type>() for the type that is only known at run time.
template <class F>
SLUICE_DEVICE void with_data_type(DataType type, F&& f) {
  switch (type) {
    case DataType::bf16:
      return f.template operator()<DataType::bf16>();
    case DataType::fp16:
      return f.template operator()<DataType::fp16>();
    case DataType::fp32:
      return f.template operator()<DataType::fp32>();
    case DataType::e4m3:  // finished by themselves: fp8_results.cuh
    case DataType::e5m2:
    case DataType::int4:  // never of D
      return;
  }
}

SLUICE_DEVICE float activate(float x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x > 0.0f || x != x ? x : 0.0f;  // NaN stays NaN
    case Activation::gelu_tanh: {
      // Hendrycks and Gimpel, "Gaussian Error Linear Units", section 2: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
      const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
      return 0.5f * x * (1.0f + tanhf(inner));
    }
    case Activation::silu:
      return x / (1.0f + expf(-x));
  }
  return x;
}

// D[m, n .. n + size) from alpha A B: C, bias, activation, rounding.
template <int size>
SLUICE_DEVICE void finish_elements(const EpilogueParams& params, int m, int n, int batch, float (&x)[size]) {
  const int count = params.n - n < size ? params.n - n : size;
  with_data_type(params.type_d, [&]<DataType type>() {
    using Group = Neighbours<type, size>;
    if (params.beta != 0.0f)
      Group::add(x, params.beta, params.c, batch * params.batch_stride_c_elems + m * params.ldc_elems + n, count, params.aligned_c);
    if (params.bias_kind == Bias::per_row) {
      const float bias = Element<type>::to_float(arch::load_global(static_cast<const typename Element<type>::Type*>(params.bias) + m));
      SLUICE_UNROLL
      for (float& value : x) value += bias;
    } else if (params.bias_kind != Bias::none) {
      const std::int64_t first = params.bias_kind == Bias::per_group_column ? static_cast<std::int64_t>(batch) * params.n : 0;
      Group::add(x, 1.0f, params.bias, first + n, count, params.aligned_bias);
    }
  });
  SLUICE_UNROLL
  for (float& value : x) value = activate(value, params.activation);
  with_data_type(params.type_d, [&]<DataType type>() {
    Neighbours<type, size>::store(x, params.d, batch * params.batch_stride_d_elems + m * params.ldd_elems + n, count, params.aligned_d);
  });
}

}  // namespace sluice
