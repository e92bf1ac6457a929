"""`specchat doctor`: what it finds out here, and what it says where llama.cpp dies of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specchat.app.deaths import REBUILD, how_it_died
from specchat.app.doctor import Surroundings, doctor, what_it_means
from specchat.app.memory_room import Room
from specchat.app.places import folder_figures, users_places
from specchat.app.processor import Processor, from_cpuinfo
from specchat.app.self_test import Trying
from specchat.app.trial import TrialFailed, told_by
from tests.app import failing_self_tests as fakes
from tests.app.test_cli import specchat
from tests.models.gguf_writing import write_gguf
from tests.tiny_models import TinyPair


def examined(
    capsys: pytest.CaptureFixture[str], self_test: Any, *, as_json: bool = False, code: int = 0
) -> str:
    """What is printed where llama.cpp is as the self-test has it."""
    surroundings = Surroundings(
        environment=dict(os.environ),
        processor=lambda: Processor("A processor", frozenset({"AVX2", "AMX_INT8"})),
        self_test=self_test,
        silence_s=3.0 if self_test is fakes.hanging else 30.0,
    )
    assert doctor(None, 1, as_json, surroundings) == code
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("self_test", "sentence"),
    [
        (fakes.built_wrongly, "In a pass over 2 tokens, llama.cpp was killed by SIGILL; this "
         "llama.cpp was built for another processor, or by a compiler that breaks it (the README's build "
         f"flags say more); build it again here: {REBUILD}"),
        (fakes.giving_up, "While it loaded the model, llama.cpp was killed by SIGABRT; llama.cpp found that "
         "something was wrong and gave up; its log has the reason "
         "(it last said: ggml.c:12: GGML_ASSERT(x > 0)\ufffd[2J failed)"),
        (fakes.hanging, "llama.cpp did not answer within 3 seconds"),
        (fakes.leaving, "While it loaded the model, llama.cpp ended unexpectedly (exit code 3)"),
        (fakes.unloadable, "While it was loaded, llama.cpp failed with ImportError: libgomp.so.1: cannot"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_a_llama_cpp_that_dies_is_told_in_a_sentence_and_the_rest_is_examined(
    capsys: pytest.CaptureFixture[str], self_test: Any, sentence: str
):
    text = " ".join(examined(capsys, self_test, code=1).split())
    assert sentence in text[text.index("FAILED: ") :]
    assert text.index("FAILED: ") < text.index(" folders ") < text.index(" terminal ")
    assert text.endswith("1 of these failed: see above")


def test_a_program_reads_the_same_of_a_llama_cpp_that_dies(capsys: pytest.CaptureFixture[str]):
    found = json.loads(examined(capsys, fakes.built_wrongly, as_json=True, code=1))
    (failure,) = found["failures"]
    assert "SIGILL" in failure
    assert "-fno-dse" in failure
    assert found["self_test"] == {"passed": False, "notes": [], "failures": [failure]}
    assert {"folders", "terminal"} <= set(found)


def test_passes_are_told_in_seconds_and_in_single_passes(capsys: pytest.CaptureFixture[str]):
    found = json.loads(examined(capsys, fakes.sound, as_json=True))
    assert found["passes"]["seconds"] == {"1": 0.1, "4": 0.2}
    assert found["passes"]["times_one"] == {"1": 1.0, "4": 2.0}
    assert found["passes"]["weights_read_bytes_per_s"] == 1e10
    assert found["llama_cpp"]["features_not_used"] == ["AMX_INT8"]


def test_what_is_several_is_a_list_for_programs_and_sizes_are_numbers(capsys: pytest.CaptureFixture[str]):
    found = json.loads(examined(capsys, fakes.sound, as_json=True))
    several = [
        found["machine"]["features"], found["llama_cpp"]["features_not_used"], found["llama_cpp"]["devices"],
        found["self_test"]["passes_of"], found["terminal"]["clipboard_tools"],
    ]  # fmt: skip
    assert all(isinstance(one, list) for one in several)
    assert several[0] == ["AMX_INT8", "AVX2"]
    assert all(isinstance(found["terminal"][name], int) for name in ("columns", "lines"))


def test_a_home_where_nothing_can_be_kept_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, "/proc/x")
    said = examined(capsys, fakes.sound, code=1)
    assert "CANNOT BE WRITTEN" in said
    assert "all is well" not in said


def test_what_a_person_reads_fits_eighty_columns(capsys: pytest.CaptureFixture[str]):
    said = examined(capsys, fakes.sound)
    text = " ".join(said.split())
    assert "T(1) 100 ms, T(4) 200 ms" in text
    assert "3 drafted tokens pay where more than 33% are accepted" in text
    assert "features AMX_INT8, AVX2" in text
    assert "The processor has AMX_INT8, which this llama.cpp was not built to use" in text
    assert text.endswith("all is well")
    assert all(len(line) <= 80 for line in said.splitlines() if "/" not in line)


@pytest.mark.parametrize(
    ("seconds", "judged"),
    [
        ({1: 1.0, 8: 1.5}, "pays for most texts"),
        ({1: 1.0, 4: 2.0}, "where a text can be foreseen"),
        ({1: 1.0, 4: 3.5}, "only where a text repeats itself"),
        ({1: 1.0, 4: 4.2}, "drafting does not pay"),
        ({1: 1.0, 2: 2.0, 8: 2.0}, "7 drafted tokens"),
        ({1: 1.0, 2: 0.9}, "1 drafted token pays where more than 0%"),
        ({1: 1.0}, "could not be timed"),
    ],
)
def test_the_cheapest_size_says_what_drafting_is_worth(seconds: dict[int, float], judged: str):
    assert judged in what_it_means(seconds)


def test_nobodys_home_is_shown(capsys: pytest.CaptureFixture[str]):
    for as_json in (False, True):
        text = examined(capsys, fakes.at_home, as_json=as_json, code=1)
        assert "~/models/secret.gguf is gone" in " ".join(text.split())
        assert str(Path.home()) not in text


def test_where_a_limit_leaves_less_than_nothing_none_is_available(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("specchat.app.doctor.memory_room", lambda: Room(-5, "ulimit -v"))
    machine = json.loads(examined(capsys, fakes.leaving, as_json=True, code=1))["machine"]
    assert (machine["available_bytes"], machine["available_within"]) == (0, "ulimit -v")


def test_a_settings_file_that_cannot_be_read_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "config.toml"
    path.write_text("[answers\n")
    monkeypatch.setenv("SPECCHAT_CONFIG", str(path))
    (failure,) = json.loads(examined(capsys, fakes.sound, as_json=True, code=1))["failures"]
    assert "config.toml" in failure


def test_a_file_that_is_no_model_is_bad_usage(tmp_path: Path):
    done = specchat("doctor", "-m", write_gguf(tmp_path / "bad.gguf", architecture="bert"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_this_machine_is_examined_with_a_real_model(tiny_pair: TinyPair):
    done = specchat("doctor", "-m", tiny_pair.target, "-t", 1, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr, found["failures"]) == (0, "", [])
    assert found["self_test"]["passed"] is True
    assert found["self_test"]["passes_of"][:3] == [1, 2, 3]
    assert {"1", "2"} <= set(found["passes"]["seconds"])
    assert found["memory_bandwidth"]["one_thread_bytes_per_s"] > 0
    assert found["llama_cpp"]["build"].startswith(found["versions"]["llama-cpp-python"])
    assert found["folders"]["history"]["path"].endswith("history.db")


def test_llama_cpp_is_loaded_by_the_other_process_alone(tiny_pair: TinyPair):
    code = (
        "import sys; sys.argv = ['specchat', 'doctor', '-m', sys.argv[1], '-t', '1', '--json']\n"
        "from specchat.tui.entry import main\n"
        "if __name__ == '__main__':\n"
        "    assert main() == 0\n"
        "    assert not {'llama_cpp', 'textual'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tiny_pair.target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# Its parts


def test_what_a_process_told_before_it_died_is_heard():
    told = told_by(fakes.built_wrongly, (None, 1), 30.0)
    assert [next(told), next(told)] == [fakes.BUILT, Trying(2)]
    with pytest.raises(TrialFailed, match="SIGILL"):
        next(told)


def test_work_that_succeeds_ends_what_is_told():
    assert len(list(told_by(fakes.sound, (None, 1), 30.0))) == 5


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-4, "killed by SIGILL"),
        (-9, "out of memory"),
        (-11, "SIGSEGV"),
        (-99, "signal 99"),
        (3, "exit code 3"),
        (None, "ended unexpectedly"),
    ],
)
def test_every_death_has_its_words(code: int | None, words: str):
    assert words in how_it_died(code)


def test_another_build_is_one_of_the_version_that_is_needed():
    project = (Path(__file__).parent.parent.parent / "pyproject.toml").read_text()
    pinned = re.search(r"llama-cpp-python==[\d.]+", project)
    assert pinned
    assert REBUILD.endswith(pinned[0])


CPUINFO = """\
processor\t: 0
model name\t: Intel(R) Xeon(R) Platinum
flags\t\t: fpu avx avx2 fma f16c bmi2 pni ssse3 avx512f avx512cd avx512vl avx512dq avx512bw amx_tile amx_int8
"""


def test_a_processors_features_have_llama_cpps_names():
    processor = from_cpuinfo(CPUINFO)
    assert processor.name == "Intel(R) Xeon(R) Platinum"
    assert {"AVX2", "AVX512", "AMX_INT8"} <= processor.features
    assert "AVX512_BF16" not in processor.features
    assert {"Q4_0", "Q8_0", "Q6_K"} <= processor.repacked
    assert "AVX512" not in from_cpuinfo(CPUINFO.replace("avx512bw", "")).features
    assert from_cpuinfo("Features\t: fp asimd asimddp i8mm\n").features == {"NEON", "DOTPROD", "MATMUL_INT8"}
    assert from_cpuinfo("").features == frozenset()


def test_a_folder_that_is_not_there_is_judged_by_the_one_it_would_be_made_in(tmp_path: Path):
    figures = folder_figures(tmp_path / "not" / "there")
    assert (figures["exists"], figures["writable"], figures["size_bytes"]) == (False, True, None)
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert folder_figures(tmp_path / "a")["size_bytes"] == 5
    assert isinstance(figures["free_bytes"], int)


@pytest.mark.parametrize("place", ["/proc/x", "/proc/x/y", "/dev/full/x", "{file}/x"])
def test_where_no_folder_can_be_made_nothing_can_be_written(tmp_path: Path, place: str):
    (tmp_path / "file").write_text("mine")
    assert not folder_figures(Path(place.format(file=tmp_path / "file")))["writable"]


def test_the_places_are_those_that_the_parts_use(tmp_path: Path):
    places = users_places({"SPECCHAT_CONFIG": str(tmp_path / "mine.toml")})
    assert places["settings"] == tmp_path / "mine.toml"
    assert places["measured"].parent == places["cache"]
    assert places["history"].name == "history.db"
