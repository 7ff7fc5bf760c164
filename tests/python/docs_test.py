"""What docs/python.md and the README show runs, and the examples do on a CPU."""

import re
import subprocess
import sys

import pytest
from support import ROOT

BLOCKS = [(page, number, block) for page in ("docs/python.md", "README.md")
          for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL))]  # fmt: skip


def test_pages_have_blocks():
    assert [page for page, _, _ in BLOCKS].count("docs/python.md") >= 4 and BLOCKS[-1][0] == "README.md"


@pytest.mark.parametrize("page, number, block", BLOCKS, ids=lambda each: each if isinstance(each, str) and len(each) < 20 else "")
def test_what_pages_show_runs(page, number, block):
    if "torch" in block:
        pytest.importorskip("torch")
    exec(compile(block, f"{page}, block {number}", "exec"), {})


def test_patch_says_what_the_page_shows(capsys):
    pytest.importorskip("torch")
    page = (ROOT / "docs/python.md").read_text()
    block = next(block for _, _, block in BLOCKS if "nn.patch" in block)
    exec(compile(block, "docs/python.md", "exec"), {})
    shown = re.search(r"(?:^    .*\n)+", page[page.index(block) :].split("```\n", 1)[1], re.MULTILINE)[0]
    assert capsys.readouterr().out == re.sub(r"^    ", "", shown, flags=re.MULTILINE)


@pytest.mark.parametrize("name", ["llama.py", "mixture_of_experts.py"])
def test_examples(name):
    pytest.importorskip("torch")
    run = [sys.executable, str(ROOT / "examples/python" / name)]
    done = subprocess.run([*run, "--device", "cpu", "--small"], text=True, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "sluice" in done.stdout
    if not __import__("torch").cuda.is_available():
        done = subprocess.run(run, text=True, capture_output=True, timeout=300, check=False)
        assert done.returncode == 1 and "there is no Hopper GPU here" in done.stderr
