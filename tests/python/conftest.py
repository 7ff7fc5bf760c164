"""Tests marked `gpu` need a Hopper GPU and a torch with CUDA. Elsewhere they are left out: pytest says how many."""

import pytest


def has_hopper():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


def pytest_collection_modifyitems(items):
    if not has_hopper():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs a Hopper GPU and torch with CUDA"))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Every operation runs on the CPU by plain loops, and on the GPU."""
    return request.param
