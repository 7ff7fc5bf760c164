"""devices, list, plan, explain, simulate."""

import json
import unittest
import xml.etree.ElementTree as ElementTree

from support import Matrix, SluiceTest

BUILT_IN = ("h200", "h100-sxm", "h100-pcie", "h20", "h10")
KERNEL_128 = "bf16_rc_coop_128x128x64_c1x1"
NINE_TILES = ("--m", 384, "--n", 384, "--k", 4096, "--device", "h10", "--kernel", KERNEL_128)
CUBE = ("--m", 1024, "--n", 1024, "--k", 1024)


class DevicesAndKernelsTest(SluiceTest):
    def test_devices(self):
        text = self.succeed("devices")
        answer = self.succeed_json("devices")
        self.assertEqual(tuple(device["name"] for device in answer["built_in"]), BUILT_IN)
        for device in answer["built_in"]:
            self.assertIn(device["name"], text)
            self.assertGreater(device["sm_count"], 0)
        self.assertEqual(answer["no_gpu_because"] is None, bool(answer["gpus"]))

    def test_list(self):
        kernels = self.succeed_json("list")["kernels"]
        names = [kernel["name"] for kernel in kernels]
        self.assertEqual(len(set(names)), len(names))
        text = self.succeed("list")
        for kernel in kernels:
            self.assertIn(kernel["name"], text)
            tile = f"{kernel['tile_m']}x{kernel['tile_n']}x{kernel['tile_k']}"
            self.assertIn(f"_{tile}_c{kernel['cluster_m']}x{kernel['cluster_n']}", kernel["name"])
            self.assertIn(f"{kernel['type'].replace(',', 'x')}_{kernel['layout']}", kernel["name"])
            element_bytes = 1 if kernel["type"].startswith("e") else 2
            bytes_b = 0.5 if kernel["type"].endswith("int4") else element_bytes
            operands = kernel["tile_k"] * (element_bytes * kernel["tile_m"] + bytes_b * kernel["tile_n"]) * kernel["stages"]
            self.assertGreaterEqual(kernel["stages"], 0 if kernel["schedule"] == "streaming" else 2)
            self.assertLess(operands, kernel["shared_memory_bytes"])
            self.assertLessEqual(kernel["shared_memory_bytes"], 232448)

    def test_list_filters(self):
        everything = self.succeed_json("list")["kernels"]
        for type_, layout, schedule in {(k["type"], k["layout"], k["schedule"]) for k in everything}:
            wanted = [k for k in everything if (k["type"], k["layout"], k["schedule"]) == (type_, layout, schedule)]
            flags = ("--type", type_, "--layout", layout, "--schedule", schedule)
            self.assertEqual(self.succeed_json("list", *flags)["kernels"], wanted)
            self.assertIn(f"\n{len(wanted)} kernels of {len(everything)}\n", self.succeed("list", *flags))


class PlanTest(SluiceTest):
    def test_says_which_device_it_plans_for(self):
        self.assertRegex(self.succeed("plan", *CUBE), r"^for +\S+, (the default, as|the current GPU)")
        self.assertRegex(self.succeed("plan", *CUBE, "--device", "h20"), r"^for +h20, built in")

    def test_every_layout_and_type(self):
        for layout in ("rc", "rr", "cc", "cr"):
            for kind in ("bf16", "fp16"):
                kernel = self.succeed_json("plan", *CUBE, "--layout", layout, "--type", kind, "--device", "h200")["kernel"]
                self.assertEqual(kernel["type_a"], kind)
                self.assertEqual(kernel["layout_a"][0] + kernel["layout_b"][0], layout)

    def test_fp8_operands_and_their_scales(self):
        def problem(*flags):
            return self.succeed_json("plan", *CUBE, "--device", "h200", *flags)["problem"]

        plain = problem("--type", "e4m3")
        self.assertEqual([plain[field] for field in ("type_a", "type_b", "type_d")], ["e4m3", "e4m3", "bf16"])
        self.assertEqual([plain[field] for field in ("scaling_a", "scaling_b")], ["none", "none"])
        mixed = problem("--type", "e4m3,e5m2", "--out-type", "fp32", "--scaling-a", "1x128", "--scaling-b", "128x128", "--scale-layout-a", "column-major")
        self.assertEqual([mixed[field] for field in ("type_a", "type_b", "type_d")], ["e4m3", "e5m2", "fp32"])
        self.assertEqual([mixed[field] for field in ("scaling_a", "scaling_b")], ["1x128", "128x128"])
        self.assertEqual([mixed[field] for field in ("scale_layout_a", "scale_layout_b")], ["column-major", "row-major"])
        self.assertEqual([mixed[field] for field in ("ld_scale_a", "ld_scale_b")], [mixed["m"], mixed["k"] // 128])
        wider = problem("--type", "e5m2", "--scaling-a", "128x128", "--scaling-b", "1x128", "--ld-scale-a", 100, "--ld-scale-b", 200)
        self.assertEqual([wider[field] for field in ("ld_scale_a", "ld_scale_b")], [100, 200])

        scales = ("--type", "e4m3", "--scaling-a", "vector", "--scaling-b", "tensor")
        for command in ("plan", "explain", "simulate"):
            self.assertIn("scales vector and tensor", self.succeed(command, *CUBE, *scales))
            self.refuse(command, *CUBE, "--type", "e4m3", "--scaling-a", "row", says=("--scaling-a 'row'", "none, tensor, vector, 1x128, 128x128"))
        self.refuse("plan", *CUBE, *scales, "--scale-layout-b", "rc", says=("--scale-layout-b 'rc'", "row-major, column-major"))
        self.refuse("plan", *CUBE, "--scaling-b", "tensor", says=("scaling_b = tensor with bf16 operands", "use alpha"))
        self.refuse("plan", *CUBE, "--type", "e4m3", "--scaling-b", "1x128", "--ld-scale-b", 1, says="ld_scale_b = 1 is shorter")
        self.refuse("plan", *CUBE, "--type", "e4m3", "--layout", "rr", says=("layout_b = row-major", "transpose"))
        self.refuse("plan", *CUBE, "--type", "e4m3,bf16", says=("type_a = e4m3 with type_b = bf16", "FP8 goes with FP8"))
        self.refuse("plan", *CUBE, "--type", "e4m3,", says=("--type 'e4m3,'", "e4m3,e5m2"))
        self.refuse("plan", *CUBE, "--type", "fp32", says="--type 'fp32'")

    def test_restrictions_are_obeyed(self):
        def chosen(*flags):
            return self.succeed_json("plan", *CUBE, "--device", "h200", *flags)["kernel"]

        one = chosen("--kernel", KERNEL_128)
        self.assertEqual((one["tile_m"], one["tile_n"], one["cluster_m"], one["cluster_n"]), (128, 128, 1, 1))
        self.assertEqual((one["schedule"], one["order"]), ("cooperative", "rows-of-a"))
        for schedule in ("cooperative", "pingpong"):
            self.assertEqual(chosen("--schedule", schedule)["schedule"], schedule)
        kernels = self.succeed_json("list", "--type", "bf16", "--layout", "rc")["kernels"]
        for tile in ("tile_m", "tile_n"):
            for size in {kernel[tile] for kernel in kernels if kernel["schedule"] != "streaming"}:
                self.assertEqual(chosen("--" + tile.replace("_", "-"), size)[tile], size)
        self.assertEqual(chosen("--alignment-a", 2)["load"], "threads")
        self.assertEqual(chosen("--lda", 1025)["load"], "threads")
        self.assertEqual(chosen()["load"], "tma")
        for flag, field, value in (
            ("--scheduler", "kind", "one-tile-per-cta"),
            ("--scheduler", "kind", "data-parallel"),
            ("--scheduler", "kind", "split-k"),
            ("--scheduler", "kind", "stream-k"),
            ("--scheduler", "kind", "hybrid"),
            ("--claim", "claim", "ticket"),
            ("--raster", "raster", "along-n"),
            ("--raster", "raster", "along-m"),
        ):
            self.assertEqual(self.succeed_json("plan", *CUBE, flag, value)["scheduler"][field], value)

    def test_cuts_reach_the_plan(self):
        def scheduler(*flags):
            return self.succeed_json("plan", *CUBE, "--device", "h200", "--kernel", KERNEL_128, *flags)["scheduler"]

        self.assertEqual(scheduler("--scheduler", "split-k", "--splits", 3)["splits"], 3)
        self.assertEqual(scheduler("--scheduler", "hybrid", "--min-k-tiles", 4)["min_k_tiles"], 4)
        regions = scheduler("--scheduler", "stream-k", "--regions", 4)
        self.assertEqual((regions["stream_k_regions"], regions["stream_k_tiles"], regions["stream_k_ranges"]), (4, 64, 132))
        self.refuse("plan", *CUBE, "--splits", 3, says="splits = 3 needs the scheduler split-k")
        self.refuse("plan", *CUBE, "--scheduler", "split-k", "--splits", 0, says="--splits")
        self.refuse("plan", *NINE_TILES, "--scheduler", "split-k", "--splits", 65, says=("splits = 65", "64"))
        self.refuse("plan", *CUBE, "--scheduler", "streamk", says=("'streamk'", "split-k, stream-k, hybrid"))
        self.refuse("plan", *CUBE, "--claim", "first", says=("'first'", "fixed, ticket"))

    def test_reductions_reach_the_plan(self):
        flags = ("--m", 16, "--n", 512, "--k", 4096, "--device", "h200", "--kernel", "bf16_rc_coop_16x64x128_c1x1_swap")
        split = (*flags, "--scheduler", "split-k", "--splits", 4)
        for reduction in ("workspace", "separate", "cluster"):
            plan = self.succeed_json("plan", *split, "--reduction", reduction)
            self.assertEqual(plan["scheduler"].get("reduction", "workspace"), reduction)
            self.assertEqual(plan["workspace_bytes"] == 0, reduction == "cluster")
        self.assertIn("in slices", self.succeed("plan", *split, "--reduction", "separate"))
        self.assertIn("in a cluster", self.succeed("plan", *split, "--reduction", "cluster"))
        self.refuse("plan", *split, "--reduction", "tree", says=("--reduction 'tree'", "workspace, separate, cluster"))
        self.refuse("plan", *flags, "--reduction", "separate", says="reduction = separate needs the scheduler split-k")
        self.refuse("plan", *flags, "--scheduler", "split-k", "--splits", 3, "--reduction", "cluster", says=("splits = 3", "2, 4 or 8"))

    def test_determinism_reaches_the_plan(self):
        deep = ("--m", 16, "--n", 512, "--k", 65536, "--device", "h200")

        def kind(*flags):
            return self.succeed_json("plan", *deep, *flags)["scheduler"]["kind"]

        self.assertNotIn(kind(), ("one-tile-per-cta", "data-parallel"))
        self.assertEqual(kind("--determinism", "deterministic"), kind())
        self.assertEqual(kind("--determinism", "fast"), kind())
        self.assertIn(kind("--determinism", "batch-invariant"), ("one-tile-per-cta", "data-parallel"))
        self.refuse("plan", *deep, "--determinism", "no", says=("--determinism 'no'", "fast, deterministic, batch-invariant"))
        self.refuse(
            "plan", *deep, "--determinism", "batch-invariant", "--scheduler", "stream-k", says="batch-invariant needs whole tiles, which stream-k cuts"
        )

    def test_constants_reach_the_plan(self):
        for constant, expected in (("a", (True, False)), ("b", (False, True)), ("ab", (True, True)), ("none", (False, False))):
            problem = self.succeed_json("plan", *CUBE, "--constant", constant)["problem"]
            self.assertEqual((problem["constant_a"], problem["constant_b"]), expected)
        self.assertIn("constant B", self.succeed("plan", *CUBE, "--constant", "b"))
        self.assertFalse(self.succeed_json("plan", *CUBE)["problem"]["constant_b"])
        self.refuse("plan", *CUBE, "--constant", "c", says="--constant")

    def test_epilogue_reaches_the_plan(self):
        flags = ("--alpha", 0.5, "--beta", 2, "--bias", "per_row", "--activation", "silu", "--out-type", "fp32", "--batch", 3)
        problem = self.succeed_json("plan", *CUBE, *flags)["problem"]
        self.assertEqual(problem["epilogue"], {"alpha": 0.5, "beta": 2.0, "bias": "per_row", "activation": "silu"})
        self.assertEqual((problem["type_a"], problem["type_d"], problem["batch"]), ("bf16", "fp32", 3))

    def test_bad_problems(self):
        self.refuse("plan", "--m", -1, "--n", 1, "--k", 1, says="m = -1")
        self.refuse("plan", *CUBE, "--lda", 1000, says=("lda = 1000", "1024"))
        self.refuse("plan", *CUBE, "--alignment-b", 3, says="alignment_b")
        self.refuse("plan", "--m", 2**40, "--n", 1, "--k", 1, says="m = 1099511627776")
        self.refuse("plan", *CUBE, "--tile-m", 77, says="sluice list")

    def test_unknown_device_lists_the_known_ones(self):
        self.refuse("plan", *CUBE, "--device", "h300", says=("'h300'", *BUILT_IN, ".json"))

    def test_device_from_a_file(self):
        device = next(d for d in self.succeed_json("devices")["built_in"] if d["name"] == "h10")
        device.update(name="eight", sm_count=8, clusters_of_2=4)
        self.write("eight.json", json.dumps(device))
        self.assertRegex(self.succeed("plan", *CUBE, "--device", "eight.json"), r"^for +eight, from eight.json")
        simulation = self.succeed_json("simulate", *CUBE, "--device", "./eight.json", "--kernel", KERNEL_128)
        self.assertEqual(simulation["waves"], 8)
        self.write("broken.json", '{"name": ')
        self.refuse("plan", *CUBE, "--device", "broken.json", says="broken.json")
        self.refuse("plan", *CUBE, "--device", "missing.json", says=("cannot open missing.json",))

    def test_nothing_to_compute(self):
        for shape in ((0, 5, 5), (5, 0, 5), (5, 5, 0)):
            flags = [word for pair in zip(("--m", "--n", "--k"), shape) for word in pair]
            for command in ("plan", "explain", "simulate"):
                self.succeed(command, *flags)
                self.succeed_json(command, *flags)


class PlanFileTest(SluiceTest):
    """--plans, with a file as `sluice tune` writes it."""

    def plan_file(self, name, *products):
        plans = [
            {
                "measured_us": 12.5,
                "planner": {"kernel": "another", "scheduler": "split-k", "splits": 2, "measured_us": 14.25},
                "plan": self.succeed_json("plan", *product),
            }
            for product in products
        ]
        return self.write(name, json.dumps({"format": "sluice-plans", "version": 1, "plans": plans}))

    def test_a_plan_that_fits_is_taken(self):
        self.plan_file("plans.json", (*CUBE, "--device", "h200", "--kernel", KERNEL_128, "--scheduler", "split-k", "--splits", 3))
        answer = self.succeed_json("plan", *CUBE, "--device", "h200", "--plans", "plans.json")
        self.assertEqual((answer["kernel"]["tile_m"], answer["scheduler"]["kind"], answer["scheduler"]["splits"]), (128, "split-k", 3))
        text = self.succeed("plan", *CUBE, "--device", "h200", "--plans", "plans.json")
        self.assertIn("tuned, from plans.json: 12.50 us measured, 14.25 us the planner's choice (another, split-k)", text)

    def test_what_the_file_lacks_is_planned(self):
        self.plan_file("plans.json", (*CUBE, "--device", "h200", "--kernel", KERNEL_128, "--scheduler", "split-k", "--splits", 3))
        for other in (("--device", "h20"), ("--device", "h200", "--constant", "b"), ("--device", "h200", "--out-type", "fp32")):
            own = self.succeed_json("plan", *CUBE, *other)
            self.assertEqual(self.succeed_json("plan", *CUBE, *other, "--plans", "plans.json"), own)
            text = self.succeed("plan", *CUBE, *other, "--plans", "plans.json")
            self.assertIn("the planner's choice: none of the 1 in plans.json is for this problem and device", text)

    def test_gemm_carries_the_plan_out(self):
        self.write_matrix("a.npy", Matrix.random(24, 64, "bf16", 1))
        self.write_matrix("b.npy", Matrix.random(40, 64, "bf16", 2))
        product = ("--m", 24, "--n", 40, "--k", 64, "--device", "h200")
        self.plan_file("plans.json", (*product, "--kernel", KERNEL_128))
        flags = ("a.npy", "b.npy", "--transpose-b", "--device", "h200", "--backend", "reference", "--check")
        answer = self.succeed_json("gemm", *flags, "--plans", "plans.json")
        self.assertEqual(answer["kernel"], KERNEL_128)
        self.assertTrue(answer["check"]["ok"])
        self.assertNotEqual(self.succeed_json("gemm", *flags)["kernel"], KERNEL_128)
        self.assertIn("tuned, from plans.json", self.succeed("gemm", *flags, "--plans", "plans.json"))

    def test_files_that_cannot_be_used(self):
        self.refuse("plan", *CUBE, "--plans", "missing.json", says="cannot open missing.json")
        self.write("plan.json", self.succeed("plan", *CUBE, "--json"))
        self.refuse("plan", *CUBE, "--plans", "plan.json", says=("plan.json: ", "sluice-plans", "sluice tune"))
        self.plan_file("plans.json", (*CUBE, "--device", "h200"))
        with open(self.path("plans.json"), encoding="utf-8") as file:
            content = json.load(file)
        content["plans"][0]["plan"]["kernel"]["tile_n"] = 24
        self.write("other.json", json.dumps(content))
        self.refuse("plan", *CUBE, "--plans", "other.json", says=("other.json: plans[0] (1024 x 1024 x 1024).plan", "this build has no"))

    def test_contradicts_what_restricts_the_planner(self):
        self.plan_file("plans.json", (*CUBE, "--device", "h200"))
        for flag in (("--kernel", KERNEL_128), ("--splits", 2), ("--claim", "fixed"), ("--tile-m", 64)):
            self.refuse("plan", *CUBE, "--plans", "plans.json", *flag, says=("--plans", flag[0]))
        self.refuse("gemm", "a.npy", "b.npy", "--plans", "plans.json", "--plan-file", "p.json", says=("--plans", "--plan-file"))


class ExplainTest(SluiceTest):
    def test_most_limits_the_candidates(self):
        for most in (1, 5):
            self.assertEqual(len(self.succeed_json("explain", *CUBE, "--most", most)["candidates"]), most)
        few, many = (len(self.succeed("explain", *CUBE, "--most", most).splitlines()) for most in (3, 10))
        self.assertEqual(few + 7, many)

    def test_first_candidate_is_the_chosen_one(self):
        answer = self.succeed_json("explain", *CUBE, "--device", "h200")
        text = self.succeed("explain", *CUBE, "--device", "h200")
        self.assertEqual(answer["candidates"][0]["verdict"], "chosen")
        self.assertIn("chosen", text)
        self.assertEqual(answer["candidates"][0]["kernel"], answer["kernel"])
        totals = [candidate["predicted"]["total_us"] for candidate in answer["candidates"]]
        self.assertEqual(totals, sorted(totals))


class SimulateTest(SluiceTest):
    def test_nine_tiles_on_four_sms(self):
        whole = (*NINE_TILES, "--scheduler", "data-parallel")
        answer = self.succeed_json("simulate", *whole)
        self.assertEqual((answer["output_tiles"], answer["waves"], answer["makespan"]), (9, 3, 3.0))
        self.assertEqual(answer["utilisation"], 0.75)
        self.assertEqual((answer["uncovered_k_tiles"], answer["repeated_k_tiles"]), (0, 0))
        self.assertEqual((answer["device"], answer["kernel"]), ("h10", KERNEL_128))
        text = self.succeed("simulate", *whole)
        self.assertIn("3 waves", text)
        self.assertIn("75", text)

    def test_nine_tiles_in_pieces(self):
        for scheduler in ("stream-k", "hybrid"):
            answer = self.succeed_json("simulate", *NINE_TILES, "--scheduler", scheduler)
            self.assertEqual((answer["makespan"], answer["utilisation"], answer["waiting"]), (2.25, 1.0, 0.0))
            self.assertEqual(sum(piece["peers"] == piece["peer"] + 1 for piece in answer["pieces"]), 9)
        text = self.succeed("simulate", *NINE_TILES, "--scheduler", "stream-k")
        self.assertIn("9 tiles in 12 pieces, makespan 2.25 tiles", text)
        self.assertEqual(self.succeed_json("simulate", *NINE_TILES, "--scheduler", "split-k", "--splits", 2)["makespan"], 2.5)
        two = ("--m", 256, "--n", 128, "--k", 4096, "--device", "h10", "--kernel", KERNEL_128)
        self.assertEqual(self.succeed_json("simulate", *two, "--scheduler", "stream-k", "--regions", 2)["makespan"], 0.5)

    def test_few_resident_clusters(self):
        for claim in ("fixed", "ticket"):
            flags = ("--scheduler", "stream-k", "--claim", claim, "--resident", 2)
            self.assertEqual(self.succeed_json("simulate", *NINE_TILES, *flags)["makespan"], 4.5)
        self.write("plan.json", self.succeed("plan", *NINE_TILES, "--scheduler", "hybrid", "--json"))
        self.assertEqual(self.succeed_json("simulate", "--plan", "plan.json", "--resident", 4)["makespan"], 2.25)
        self.refuse("simulate", *NINE_TILES, "--resident", 0, says="--resident")

    def test_svg_is_well_formed(self):
        self.assertIn("wrote nine.svg", self.succeed("simulate", *NINE_TILES, "--svg", "nine.svg"))
        root = ElementTree.parse(self.path("nine.svg")).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        self.assertGreaterEqual(sum(element.tag.endswith("rect") for element in root.iter()), 9)

    def test_svg_that_cannot_be_written(self):
        self.refuse("simulate", *NINE_TILES, "--svg", "no/such/folder.svg", code=1, says="no/such/folder.svg")

    def test_width(self):
        narrow, wide = (max(map(len, self.succeed("simulate", *NINE_TILES, "--width", w).splitlines()[4:])) for w in (60, 160))
        self.assertLess(narrow, wide)
        self.refuse("simulate", *NINE_TILES, "--width", 3, says="--width")

    def test_plan_from_a_file_is_the_same_plan(self):
        self.write("plan.json", self.succeed("plan", *NINE_TILES, "--json"))
        self.assertEqual(self.succeed_json("simulate", "--plan", "plan.json"), self.succeed_json("simulate", *NINE_TILES))

    def test_plan_file_stands_alone(self):
        self.write("plan.json", self.succeed("plan", *NINE_TILES, "--json"))
        self.refuse("simulate", "--plan", "plan.json", "--m", 5, says="--m contradicts --plan")
        self.refuse("simulate", "--plan", "plan.json", "--device", "h20", says="--device contradicts --plan")
        self.refuse("simulate", "--m", 5, says=("--n is missing", "--plan"))
        self.refuse("simulate", "--plan", "missing.json", says="missing.json")

    def test_plan_file_that_holds_something_else(self):
        self.write("plan.json", "[1, 2]")
        self.refuse("simulate", "--plan", "plan.json", says="plan.json")
        whole = self.succeed("plan", *NINE_TILES, "--json")
        self.write("half.json", whole[: len(whole) // 2])
        self.refuse("simulate", "--plan", "half.json", says="half.json")


if __name__ == "__main__":
    unittest.main()
