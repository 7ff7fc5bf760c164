"""What the tests share: random operands, and how far a product may be from the exact one."""

import pathlib

import ml_dtypes
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
BF16, E4M3, E5M2 = numpy.dtype(ml_dtypes.bfloat16), numpy.dtype(ml_dtypes.float8_e4m3fn), numpy.dtype(ml_dtypes.float8_e5m2)
HALF_ULP = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}


def random(*shape, dtype=BF16, seed=0):
    """Normal numbers, in a dense array."""
    return numpy.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def exact(array):
    return numpy.asarray(array).astype(numpy.float64)


def assert_near(got, expected, magnitude, dtype=None):
    """Elementwise: fp32 sums of `magnitude` (the sum of absolute products), and one rounding to the result's type. Leaves no room for a wrong tile."""
    got, expected, magnitude = (numpy.asarray(each, numpy.float64) for each in (got, expected, magnitude))
    assert got.shape == expected.shape
    allowed = 2.0**-18 * magnitude + 1.01 * HALF_ULP[dtype] * numpy.abs(expected) + 1e-30
    wrong = ~(numpy.abs(got - expected) <= allowed)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} elements are wrong, first {numpy.argwhere(wrong)[0]}: {got[wrong][0]} for {expected[wrong][0]}"


def spread(scales, shape):
    """Scales of blocks as large as `shape`: each repeated for its block of 128, or as often as it takes."""
    for axis, size in enumerate(shape):
        if scales.shape[axis] != size:
            scales = numpy.repeat(scales, size if scales.shape[axis] == 1 else 128, axis=axis)
        scales = numpy.take(scales, range(size), axis=axis)
    return scales
