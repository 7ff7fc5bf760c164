"""The structures, words and functions of the package beside sluice.h, and errors."""

import ctypes
import re

import pytest
import sluice
from sluice import _library, _structures
from support import ROOT

HEADER = re.sub(r"/\*.*?\*/", "", (ROOT / "include/sluice/sluice.h").read_text(), flags=re.DOTALL)
C_TYPES = {"size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
           "float": ctypes.c_float, "double": ctypes.c_double}  # fmt: skip


def fields_of(body):
    """[(name, ctypes type)] of a structure, as the header declares them."""
    fields = []
    for declaration in filter(None, (line.strip() for line in body.split(";"))):
        if pointer := re.fullmatch(r"(?:const )?(char|void|float|u?int32_t|sluice_group_arguments)\*\s*(\w+)", declaration):
            fields.append((pointer[2], ctypes.c_char_p if pointer[1] == "char" else ctypes.c_void_p))
        elif array := re.fullmatch(r"char (\w+)\[(\d+)\]", declaration):
            fields.append((array[1], ctypes.c_char * int(array[2])))
        else:
            kind, names = declaration.split(None, 1)
            fields += [(name.strip(), C_TYPES[kind]) for name in names.split(",")]
    return fields


DECLARED = {name: fields_of(body) for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \w+;", HEADER, flags=re.DOTALL)}


def test_every_structure_of_the_header_is_there():
    assert set(DECLARED) == set(_structures.STRUCTURES)


@pytest.mark.parametrize("name", _structures.STRUCTURES)
def test_fields_are_those_of_the_header(name):
    assert list(_structures.STRUCTURES[name]._fields_) == DECLARED[name]


def test_every_function_that_is_declared_here_is_in_the_header():
    declared = set(re.findall(r"\bsluice_(\w+)\(", HEADER))
    assert set(_library._STATUS_FUNCTIONS) | set(_library._OTHER_FUNCTIONS) <= declared


@pytest.mark.parametrize("field, enumeration", [("type_a", "data_type"), ("layout_a", "layout"), ("activation", "activation"), ("bias", "bias"),
    ("scaling", "scaling"), ("grouping", "grouping"), ("schedule", "schedule"), ("scheduler", "scheduler"), ("raster", "raster"),
    ("determinism", "determinism"), ("reduction", "reduction"), ("claim", "work_claim"), ("asynchrony", "asynchrony"), ("input", "quantize_input"),
    ("source", "w4_source"), ("kv_layout", "kv_layout"), ("sample", "histogram_sample"), ("count_type", "count_type"),
    ("outside", "outside_values")])  # fmt: skip
def test_words_are_the_enumerations_in_order(field, enumeration):
    values = re.search(rf"enum sluice_{enumeration} \{{(.*?)\}};", HEADER, re.DOTALL)[1]
    names = [(name.strip(), int(value)) for name, value in re.findall(r"SLUICE_(\w+)\s*=\s*(\d+)", values)]
    assert [value for _, value in names] == list(range(len(_structures.WORDS[field])))
    plain = {"tensor": "per_tensor", "vector": "per_vector", "1x128": "per_vector_128", "128x128": "per_block_128", "along-k": "groups_along_k", "gelu": "gelu_tanh"}
    for (name, _), word in zip(names, _structures.WORDS[field]):
        assert word == "any" or plain.get(word, word).replace("-", "_") in name.lower() or word == "none" and name.startswith("NO_"), (name, word)


def test_errors_have_the_librarys_own_words():
    with pytest.raises(ValueError, match="n = -1 is negative; pass 0 or more"):
        sluice.plan(4, -1, 4, device="h200")
    with pytest.raises(ValueError, match="there is no device 'mine'|'mine'.*h200"):
        sluice.plan(4, 4, 4, device="mine")
    with pytest.raises(TypeError, match="has no field 'transpose'"):
        sluice.plan(4, 4, 4, device="h200", transpose=True)
    with pytest.raises(ValueError, match="activation = 'tanh' is none of none, relu, gelu, silu"):
        sluice.plan(4, 4, 4, device="h200", activation="tanh")


def test_statuses_of_the_machine_are_runtime_errors():
    with pytest.raises(RuntimeError):
        _library.raise_error(10)  # CUDA
    with pytest.raises(ValueError):
        _library.raise_error(2)  # misaligned


def test_version_is_the_headers():
    numbers = re.findall(r"SLUICE_VERSION_\w+ (\d+)", (ROOT / "include/sluice/version.hpp").read_text())
    assert sluice.__version__ == ".".join(numbers)


def test_nothing_imports_torch_unasked():
    import subprocess
    import sys

    program = "import sys, sluice; sluice.plan(8, 8, 8, device='h10'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
