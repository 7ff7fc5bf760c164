"""Tests marked `gpu` need a Hopper GPU, a torch with CUDA and a library with kernels. Elsewhere they are left out: pytest says how many."""

import pytest
import sluice


def has_hopper():
    try:
        import torch
    except ImportError:
        return False
    return sluice.built_with_cuda() and torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


def pytest_collection_modifyitems(items):
    if not has_hopper():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs a Hopper GPU, torch with CUDA and a library with kernels"))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Every operation runs on the CPU by plain loops, and on the GPU."""
    return request.param
