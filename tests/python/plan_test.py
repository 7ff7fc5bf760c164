"""Plans from Python: made, looked at, kept, simulated, carried out on arrays that lie as they say."""

import json
import pickle
import subprocess
import sys

import numpy
import pytest
import sluice
from sluice import tuning
from support import E4M3, assert_near, exact, random


@pytest.fixture(scope="module")
def plan():
    return sluice.plan(384, 384, 128, device="h10")


def test_a_plan_says_what_it_is(plan):
    assert plan.kernel in sluice.kernels()
    assert plan.problem["m"] == 384 and plan.problem["lda"] == 128
    assert plan.info["grid_ctas"] > 0 and plan.info["total_us"] > 0
    assert "h10: 4 SMs" in plan.explain(3)
    assert plan.kernel in str(plan)
    assert repr(plan) == f"<sluice.Plan 384 x 384 x 128 on h10: {plan.kernel}>"


def test_a_plan_is_a_value(plan):
    again = sluice.Plan.from_json(plan.to_json())
    assert again == plan and hash(again) == hash(plan)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert sluice.plan(384, 384, 256, device="h10") != plan
    with pytest.raises(ValueError, match="problem"):
        sluice.Plan.from_json('{"format": "sluice-plan", "version": 1}')


def test_options_restrict_the_choice():
    made = sluice.plan(64, 512, 65536, device="h200", scheduler="split-k", splits=4)
    assert json.loads(made.to_json())["scheduler"]["kind"] == "split-k"
    assert made.workspace_bytes > 0
    kernel = "bf16_rc_coop_128x128x64_c1x1"
    assert sluice.plan(384, 384, 128, device="h10", kernel=kernel).kernel == kernel
    with pytest.raises(ValueError, match="batch-invariant needs whole tiles"):
        sluice.plan(64, 512, 65536, device="h200", scheduler="split-k", determinism="batch-invariant")


def test_types_follow_from_that_of_a():
    assert sluice.plan(16, 16, 16, device="h200", type_a="fp16").problem["type_d"] == "fp16"
    fp8 = sluice.plan(16, 16, 128, device="h200", type_a="e4m3", scaling_a="1x128", scaling_b="128x128").problem
    assert (fp8["type_b"], fp8["type_d"], fp8["scaling_b"]) == ("e4m3", "bf16", "128x128")


def test_simulation_and_what_notebooks_show(plan):
    simulation = plan.simulate()
    assert simulation.svg().startswith("<svg") and "384 x 384 x 128" in simulation.text(60)
    assert len(simulation.text(60)) < len(simulation.text(120))
    assert simulation.data
    assert "<svg" in plan._repr_html_() and "<pre>" in plan._repr_html_()
    grouped = sluice.plan(64, 64, 64, batch=4, device="h200", grouping="ragged")
    with pytest.raises(ValueError, match="group"):
        grouped.simulate()
    assert "<svg" not in grouped._repr_html_() and "<pre>" in grouped._repr_html_()


def test_devices():
    device = sluice.Device.find("h20")
    assert device.sm_count == 78 and device.name == "h20"
    assert sluice.Device.from_json(device.to_json()) == device != sluice.Device.find("h200")
    assert {"h200", "h10"} <= set(sluice.Device.names())
    with pytest.raises(AttributeError):
        device.colour


def test_a_plan_runs_on_arrays():
    m, n, k = 33, 17, 50
    a, b = random(m, k), random(n, k, seed=1)
    made = sluice.plan(m, n, k, device="h10", type_d="fp32", alignment_a_bytes=2, alignment_b_bytes=2, alignment_d_bytes=4)
    expected, magnitude = exact(a) @ exact(b).T, abs(exact(a)) @ abs(exact(b)).T
    for how in [{"backend": "reference"}] + [{"backend": "emulator", "seed": 3, "asynchrony": "lazy"}] * sluice.built_with_emulator():
        d = numpy.full((m, n), numpy.nan, numpy.float32)
        made.run(a, b, d, **how)
        assert_near(d, expected, magnitude, "float32")


def test_a_plan_refuses_arrays_that_are_not_its_own():
    made = sluice.plan(32, 16, 64, device="h10", type_d="fp32")
    a, b, d = random(32, 64), random(16, 64), numpy.zeros((32, 16), numpy.float32)
    with pytest.raises(ValueError, match="a has 1984 elements from its first to its last; the plan reaches 2048"):
        made.run(a[:31], b, d)
    with pytest.raises(ValueError, match="b holds fp32; the plan is for bf16"):
        made.run(a, b.astype(numpy.float32), d)
    with pytest.raises(ValueError, match="read-only"):
        d.flags.writeable = False
        made.run(a, b, d)
    with pytest.raises(ValueError, match="neither 'reference' nor 'emulator'"):
        made.run(a, b, d.copy(), backend="cuda")
    with pytest.raises(ValueError, match="seed: options of the emulator"):
        made.run(a, b, d.copy(), seed=1)
    with pytest.raises(TypeError, match="list is no array"):
        made.run([1.0], b, d.copy())
    scaled = sluice.plan(4, 16, 256, device="h200", type_a="e4m3", scaling_a="1x128", scaling_b="tensor")
    q = random(16, 256, dtype=E4M3)
    with pytest.raises(ValueError, match="scale_a has 7 elements"):
        scaled.run(q[:4], q, random(4, 16), scale_a=numpy.ones(7, numpy.float32), scale_b=numpy.ones(1, numpy.float32))


def plan_file(path, *plans):
    planner = {"kernel": plans[0].kernel, "scheduler": "data-parallel", "splits": 1, "measured_us": 2.0}
    entries = [{"measured_us": 1.0, "planner": planner, "plan": json.loads(each.to_json())} for each in plans]
    path.write_text(json.dumps({"format": "sluice-plans", "version": 1, "plans": entries}))
    return path


def test_plan_files(tmp_path):
    other = sluice.plan(48, 80, 64, device="h200", kernel="bf16_rc_coop_128x128x64_c1x1", type_d="fp32")
    assert other != sluice.plan(48, 80, 64, device="h200", type_d="fp32")
    path = plan_file(tmp_path / "plans.json", other)
    assert [each.kernel for each in sluice.tuned_plans(path)] == [other.kernel]
    (tmp_path / "bad.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="is no plan file"):
        sluice.tuned_plans(tmp_path / "bad.json")
    broken = json.loads(path.read_text())
    broken["plans"][0]["plan"]["kernel"]["tile_m"] = 100
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    with pytest.raises(ValueError, match=r"plans\[0\]"):
        sluice.tuned_plans(tmp_path / "broken.json")


def test_operations_take_the_plans_of_a_file(tmp_path, monkeypatch):
    from sluice import operations

    monkeypatch.setattr(operations, "_preferred", {})
    fields = sluice.products.product(*(operations.spec(operations.view(each)) for each in (random(48, 64), random(80, 64).T)), out_dtype="fp32").fields
    ask = lambda: operations.plan_of(frozenset(fields.items()), operations.host_device())  # noqa: E731
    assert ask().kernel != "bf16_rc_coop_128x128x64_c1x1"
    asked = {name: value for name, value in fields.items() if name not in "mnk"}
    tuned = sluice.plan(48, 80, 64, device="h200", kernel="bf16_rc_coop_128x128x64_c1x1", **asked)
    assert sluice.use_plans(plan_file(tmp_path / "plans.json", tuned)) == 1
    assert ask().kernel == "bf16_rc_coop_128x128x64_c1x1"
    monkeypatch.undo()
    operations.prefer([])  # forgets what this test has preferred


def test_the_tool_is_mirrored(monkeypatch):
    said = subprocess.run([sys.executable, "-m", "sluice", "--version"], text=True, capture_output=True, check=True).stdout
    assert sluice.__version__ in said
    monkeypatch.setenv("SLUICE_EXECUTABLE", "/nowhere/sluice")
    with pytest.raises(RuntimeError, match="there is no program /nowhere/sluice"):
        tuning.executable()


def test_tune_says_what_the_tool_says(tmp_path):
    with pytest.raises(RuntimeError, match="nowhere"):
        sluice.tune([(1, 64, 64)], tmp_path / "nowhere" / "plans.json")
