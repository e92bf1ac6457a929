"""Asks pip-audit what is known to be wrong with the locked packages; the last line says how many it knew.

    python .ci/audit.py

Exit code 1 where a vulnerability is known. Where nothing can be asked (no network, an index that has packages
alone), that is said, and the exit code is 0.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent.parent / "requirements-dev.lock"
INSTALL = "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit>=2.9,<3"
AUDIT = "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json", "--requirement", str(LOCK)


def main() -> int:
    """Install pip-audit beside what it audits, and ask it."""
    if run(*INSTALL).returncode:
        print("audit skipped: pip-audit cannot be installed from here")
        return 0
    asked = run(*AUDIT)
    try:
        line, code = told(json.loads(asked.stdout))
    except ValueError:
        reason = next((line for line in reversed(asked.stderr.splitlines()) if line.strip()), "no answer")
        line, code = f"audit skipped: pip-audit could not ask ({reason.strip()})", 0
    print(line)
    return code


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run this Python with these arguments."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


def told(report: dict[str, Any]) -> tuple[str, int]:
    """What pip-audit's report comes to, in words, and the exit code.

    Raises:
        ValueError: It is no such report.
    """
    if not isinstance(report, dict) or not isinstance(report.get("dependencies"), list):
        raise ValueError("no list of dependencies")
    packages = report["dependencies"]
    asked = [package for package in packages if "skip_reason" not in package]
    if not asked:
        return f"audit skipped: of {len(packages)} packages none is known where pip-audit asks", 0
    found = [
        f"{package['name']} {package['version']}: {flaw['id']}, "
        f"mended in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for package in asked
        for flaw in package["vulns"]
    ]
    summary = f"audit: {len(asked)} of {len(packages)} packages looked up, {len(found)} vulnerabilities known"
    return "\n".join([*found, summary]), int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
