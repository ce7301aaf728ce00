"""Reads what the three runs of the step deepspeed-founding left, and says whether it is the founding story."""
import json
import pathlib
import sys

STEPS = 20


def lines(root, name, rank):
    text = (root / f"{name}.{rank}.out").read_text(errors="replace")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def steps(root, name, rank):
    return [line for line in lines(root, name, rank) if "step" in line]


def judge_recorded(root, expect, mended):
    """What was recorded of the hang explains it, and the mended run is as without the recorder."""
    hang, text = json.loads((root / "trace-shipped.json").read_text()), (root / "trace-shipped.txt").read_text()
    print(text)
    expect(not any(steps(root, "recorded-shipped", rank) for rank in (0, 1)), "recorded: as shipped, type:embed finishes no step")
    expect(hang["verdict"] in ("deadlock", "imbalance", "mismatch"), f"recorded: the hang is a {hang['verdict']}")
    expect("get_grad_norm_direct" in json.dumps(hang), "recorded: get_grad_norm_direct is named")
    counts = [entry["by_rank"] for finding in hang["findings"] for entry in finding.get("counts", [])]
    expect(any(len(set(by_rank.values())) > 1 for by_rank in counts), f"recorded: calls of a group differ between the ranks: {counts[:3]}")
    fine = json.loads((root / "trace-mended.json").read_text())
    expect(fine["verdict"] == "consistent", f"recorded: mended, it is {fine['verdict']}")
    again = [steps(root, "recorded-mended", rank) for rank in (0, 1)]
    expect(again == mended and all(len(run) == STEPS for run in again), f"recorded: mended, it completes {STEPS} steps, with equal losses and norms")


def main():
    root = pathlib.Path(sys.argv[1])
    failures = []

    def expect(holds, what):
        print(("ok      " if holds else "FAILED  ") + what)
        if not holds:
            failures.append(what)

    about = next((line for line in lines(root, "transformer", 0) if "deepspeed" in line), {})
    print(f"DeepSpeed {about.get('deepspeed')}, torch {about.get('torch')}")
    reference = [steps(root, "transformer", rank) for rank in (0, 1)]
    expect(all(len(run) == STEPS for run in reference), f"type:transformer completes {STEPS} steps")

    groups = [next((line["kept_groups"] for line in lines(root, "shipped", rank) if "kept_groups" in line), 0) for rank in (0, 1)]
    stacks = [(root / f"shipped.{rank}.err").read_text(errors="replace") for rank in (0, 1)]
    expect(groups == [2, 1], f"type:embed: optimizer groups by rank are {groups}")
    expect(not any(steps(root, "shipped", rank) for rank in (0, 1)), "as shipped, type:embed finishes no step")
    expect("in get_grad_norm_direct" in stacks[0] and "in _model_parallel_all_reduce" in stacks[0],
           "rank 0 stands in get_grad_norm_direct, in its reduction over the model-parallel group")
    expect("in _aggregate_total_loss" in stacks[1] and "in get_grad_norm_direct" not in stacks[1],
           "rank 1 has left it and stands in _aggregate_total_loss")

    mended = [steps(root, "mended", rank) for rank in (0, 1)]
    expect(all(len(run) == STEPS for run in mended), f"mended, type:embed completes {STEPS} steps")
    apart = max((abs(a["grad_norm"] - b["grad_norm"]) / a["grad_norm"]
                 for run, other in zip(reference, mended) for a, b in zip(run, other)), default=float("nan"))
    expect(apart < 1e-5, f"its gradient norms equal those of type:transformer: largest relative difference {apart:.1e}")
    if (root / "trace-shipped.json").is_file():
        judge_recorded(root, expect, mended)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
