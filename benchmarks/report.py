"""Turn a file that speed.py wrote into the Markdown tables of RESULTS.md.

python benchmarks/report.py results.json
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from speed import cost

Answers = list[dict[str, Any]]


def main() -> None:
    found = json.loads(Path(sys.argv[1]).read_text())
    target_s = {int(size): seconds for size, seconds in found["target_s"].items()}
    one = target_s[1]
    print(
        f"Measured {found['date']} on {', '.join(found['machine'])}; {found['target']}; {found['build']}.\n"
    )
    print("| n | " + " | ".join(str(size) for size in target_s) + " |")
    print("|---" * (len(target_s) + 1) + "|")
    print("| T(n) / T(1) | " + " | ".join(f"{seconds / one:.2f}" for seconds in target_s.values()) + " |\n")
    drafts = ", ".join(f"{seconds / one:.2f} ({name})" for name, seconds in found["draft_s"].items())
    print(f"T(1) = {1e3 * one:.0f} ms; D / T(1) = {drafts}.\n")
    by_temperature: dict[float, Answers] = defaultdict(list)
    for answer in found["answers"]:
        by_temperature[answer["temperature"]].append(answer)
    for temperature, answers in by_temperature.items():
        table(temperature, answers, target_s, found["draft_s"])


def table(
    temperature: float, answers: Answers, target_s: dict[int, float], draft_s: dict[str, float]
) -> None:
    """One temperature: kinds down, settings across; each the median of its prompts."""
    settings = [name for name in dict.fromkeys(answer["setting"] for answer in answers) if name != "plain"]
    kinds = list(dict.fromkeys(answer["kind"] for answer in answers))
    plain = {
        (answer["kind"], answer["prompt"]): answer["tokens_per_second"]
        for answer in answers
        if answer["setting"] == "plain"
    }
    print(f"Temperature {temperature}: tokens/s over plain, median (lowest to highest); counted; accepted\n")
    print("| | " + " | ".join(settings) + " |")
    print("|---" * (len(settings) + 1) + "|")
    columns: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in settings}
    for kind in kinds:
        cells = []
        for name in settings:
            mine = [answer for answer in answers if (answer["kind"], answer["setting"]) == (kind, name)]
            ratios = [answer["tokens_per_second"] / plain[kind, answer["prompt"]] for answer in mine]
            draft = next((seconds for one, seconds in draft_s.items() if one in name), 0.0)
            counted = [
                answer["tokens"]
                * target_s[1]
                / (
                    sum(count * cost(target_s, int(size)) for size, count in answer["sizes"].items())
                    + answer["draft_passes"] * draft
                )
                for answer in mine
            ]
            columns[name][0].append(statistics.median(ratios))
            columns[name][1].append(statistics.median(counted))
            drafted = sum(answer["drafted"] for answer in mine)
            accepted = f"{sum(answer['accepted'] for answer in mine) / drafted:.0%}" if drafted else "-"
            cells.append(
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
                f"{statistics.median(counted):.2f}; {accepted}"
            )
        print(f"| {kind} | " + " | ".join(cells) + " |")
    means = [
        f"{statistics.geometric_mean(ratios):.2f}; {statistics.geometric_mean(counted):.2f}"
        for ratios, counted in columns.values()
    ]
    print("| mean | " + " | ".join(means) + " |\n")


if __name__ == "__main__":
    main()
