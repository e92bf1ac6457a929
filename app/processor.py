"""The processor: its name, and which of its features llama.cpp could use."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

# llama.cpp's name for a feature, and the system's names for what it needs.
_LINUX: Mapping[str, tuple[str, ...]] = {
    "SSE3": ("pni",),
    "SSSE3": ("ssse3",),
    "AVX": ("avx",),
    "AVX2": ("avx2",),
    "AVX_VNNI": ("avx_vnni",),
    "F16C": ("f16c",),
    "FMA": ("fma",),
    "BMI2": ("bmi2",),
    "AVX512": ("avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"),
    "AVX512_VBMI": ("avx512vbmi",),
    "AVX512_VNNI": ("avx512_vnni",),
    "AVX512_BF16": ("avx512_bf16",),
    "AMX_INT8": ("amx_tile", "amx_int8"),
    "NEON": ("asimd",),
    "DOTPROD": ("asimddp",),
    "FP16_VA": ("asimdhp",),
    "MATMUL_INT8": ("i8mm",),
    "SVE": ("sve",),
    "SME": ("sme",),
}
_MACOS: Mapping[str, str] = {
    "NEON": "hw.optional.neon",
    "DOTPROD": "hw.optional.arm.FEAT_DotProd",
    "FP16_VA": "hw.optional.arm.FEAT_FP16",
    "MATMUL_INT8": "hw.optional.arm.FEAT_I8MM",
    "SME": "hw.optional.arm.FEAT_SME",
    "AVX2": "hw.optional.avx2_0",
    "AVX512": "hw.optional.avx512f",
}


@dataclass(frozen=True)
class Processor:
    """What the system says of the processor."""

    name: str
    features: frozenset[str]
    """By llama.cpp's names; empty where the system does not say."""

    @property
    def repacked(self) -> frozenset[str]:
        """Types whose weights llama.cpp stores in another layout here, for faster kernels."""
        types = frozenset[str]()
        if "AVX2" in self.features:
            types |= {"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"}
        if "AVX512" in self.features:
            types |= {"Q2_K"}
        if "AMX_INT8" in self.features:
            types |= {"Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"}
        if "DOTPROD" in self.features:
            types |= {"Q4_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "Q8_0", "MXFP4"}
        return types


def this_processor() -> Processor:
    """The processor that this runs on."""
    system = platform.system()
    if system == "Linux":
        try:
            return from_cpuinfo(Path("/proc/cpuinfo").read_text(errors="replace"))
        except OSError:
            pass
    if system == "Darwin":
        return _from_sysctl()
    return Processor(platform.processor() or platform.machine(), frozenset())


def from_cpuinfo(text: str) -> Processor:
    """What Linux's /proc/cpuinfo says."""

    def said(key: str) -> str:
        found = re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)
        return found[1].strip() if found else ""

    flags = set((said("flags") or said("Features")).split())
    features = frozenset(name for name, needed in _LINUX.items() if flags.issuperset(needed))
    return Processor(said("model name") or platform.machine(), features)


def _from_sysctl() -> Processor:
    def said(name: str) -> str:
        try:
            return subprocess.run(
                ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False
            ).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return ""

    features = frozenset(name for name, key in _MACOS.items() if said(key) == "1")
    return Processor(said("machdep.cpu.brand_string") or platform.machine(), features)


def thread_count(asked: int | None = None) -> int:
    """The asked number of threads, or one per physical core."""
    return asked or psutil.cpu_count(logical=False) or 1
