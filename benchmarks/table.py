"""Tables of the results of ``benchmarks.run``, in Markdown.

    python -m benchmarks.table results.json

The ratio of a peer is its median over that of the fastest peer with a right result. ``~`` marks
a spread (the middle half of the samples over the median) of more than a quarter, ``*`` a wrong
result.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any


def ratio_table(results: dict[str, Any], names: list[str]) -> list[str]:
    """Return the lines of the table of ratios."""
    lines = [
        "| kernel | input | type | fastest | ms | " + " | ".join(names) + " |",
        "|" + " --- |" * (5 + len(names)),
    ]
    for cell in results["cells"]:
        peers = cell["peers"]
        right = {name: p["median"] for name, p in peers.items() if p.get("right")}
        if not right:
            continue
        best = min(right, key=lambda name: right[name])
        columns = [_ratio(peers.get(name, {}), right[best]) for name in names]
        head = [cell["kernel"], cell["data"], cell["dtype"], best, f"{1e3 * right[best]:.3g}"]
        lines.append("| " + " | ".join([*head, *columns]) + " |")
    return lines


def _ratio(peer: dict[str, Any], best: float) -> str:
    if "median" not in peer:
        return "-"
    marks = ("" if peer["right"] else "*") + ("~" if peer["spread"] > 0.25 else "")
    return f"{peer['median'] / best:.2f}{marks}"


def summary(results: dict[str, Any]) -> list[str]:
    """Return how sparsejit stands beside the best of the others."""
    ratios = []
    for cell in results["cells"]:
        peers = {n: p["median"] for n, p in cell["peers"].items() if p.get("right")}
        ours = peers.pop("sparsejit", None)
        if ours and peers:
            ratios.append(min(peers.values()) / ours)
    if not ratios:
        return []
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    lost = sum(ratio < 1 / 1.1 for ratio in ratios)
    return [
        f"Over {len(ratios)} rows, the best other peer takes {mean:.2f} times as long as sparsejit "
        f"(geometric mean); in {lost} rows sparsejit is slower than it by more than 10 %."
    ]


def bandwidth_table(results: dict[str, Any], names: list[str]) -> list[str]:
    """Return the fractions of the measured bandwidth, where the bytes to be moved are known."""
    rate = results["bandwidth"]
    lines = [
        f"Fraction of {rate:.1f} GB/s (copying), every operand and result moved once:",
        "",
        "| kernel | input | type | " + " | ".join(names) + " |",
        "|" + " --- |" * (3 + len(names)),
    ]
    for cell in results["cells"]:
        if cell["traffic"] and "tiny" not in cell["data"]:
            moved = cell["traffic"] / 1e9
            shares = [
                f"{moved / peer['least'] / rate:.2f}" if "least" in peer else "-"
                for peer in (cell["peers"].get(name, {}) for name in names)
            ]
            head = [cell["kernel"], cell["data"], cell["dtype"]]
            lines.append("| " + " | ".join([*head, *shares]) + " |")
    return lines


def memory_table(results: dict[str, Any], names: list[str]) -> list[str]:
    """Return the memory of one call on top of its operands."""
    lines = [
        "Memory of one warm call, MB:",
        "",
        "| kernel | input | " + " | ".join(names) + " |",
        "|" + " --- |" * (2 + len(names)),
    ]
    for cell in results["cells"]:
        if cell["dtype"] == "float64" and "tiny" not in cell["data"]:
            sizes = [
                f"{peer['peak_mb']:.0f}" if "peak_mb" in peer else "-"
                for peer in (cell["peers"].get(name, {}) for name in names)
            ]
            lines.append("| " + " | ".join([cell["kernel"], cell["data"], *sizes]) + " |")
    return lines


def first_table(results: dict[str, Any]) -> list[str]:
    """Return the first calls in fresh processes."""
    lines = [
        "First call in a fresh process (tiny input), ms; the import is on top of NumPy and SciPy:",
        "",
        "| peer | kernel | cache | import | first call | warm call | resident, MB |",
        "|" + " --- |" * 7,
    ]
    for row in results["first"]:
        times = [f"{1e3 * row[name]:.3g}" for name in ("import", "first", "warm")]
        head = [row["peer"], row["kernel"], row["cache"]]
        lines.append("| " + " | ".join([*head, *times, f"{row['peak_mb']:.0f}"]) + " |")
    return lines


def skipped(results: dict[str, Any]) -> list[str]:
    """Return what is not in the tables, and why."""
    lines = [f"- {name}: {reason}" for name, reason in results["missing"].items()]
    found: dict[tuple[str, str], list[str]] = {}
    for cell in results["cells"]:
        for name, peer in cell["peers"].items():
            if "skipped" in peer:
                found.setdefault((name, peer["skipped"]), []).append(
                    f"{cell['kernel']} {cell['data']}"
                )
    lines += [f"- {name}, {', '.join(where)}: {why}" for (name, why), where in found.items()]
    return ["Left out:", "", *lines] if lines else []


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="what benchmarks.run wrote")
    asked = parser.parse_args()
    try:
        results = json.loads(asked.results.read_text())
    except (OSError, ValueError) as problem:
        parser.error(f"{asked.results} holds no results: {problem}")
    if not isinstance(results, dict) or not results.get("cells"):
        parser.error(f"{asked.results} holds no results: nothing was measured")
    names = list(dict.fromkeys(name for cell in results["cells"] for name in cell["peers"]))
    loads = [cell["load"] for cell in results["cells"]]
    print(f"{results['started']}, {results['threads']} threads, load {min(loads):.1f} to "
          f"{max(loads):.1f}. Ratios of medians to the fastest peer.\n")  # fmt: skip
    parts = (
        ratio_table(results, names),
        summary(results),
        bandwidth_table(results, names),
        memory_table(results, names),
        first_table(results),
        skipped(results),
    )
    print("\n\n".join("\n".join(part) for part in parts if part))


if __name__ == "__main__":
    main()
