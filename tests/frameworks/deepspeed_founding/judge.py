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
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
