"""`specchat config`: what it prints is a settings file that says the same."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.config_command import as_toml, template, unknown_variables
from specchat.app.settings import SettingsFile, all_settings, in_force
from specchat.app.settings_file import default_path, read_settings
from tests.app.test_cli import specchat
from tests.app.test_settings import BY_DEST, KNOWN, as_word, some_value
from tests.tiny_models import TinyPair

CHANGED = {dest: some_value(setting) for dest, setting in BY_DEST.items()}


def config(text: str) -> Path:
    """The user's own settings file, with this in it."""
    path = default_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read_back(printed: str) -> SettingsFile:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_text(printed, encoding="utf-8")
        return read_settings(path, KNOWN)


def values_of(file: SettingsFile, environment: dict[str, str] | None = None) -> dict[str, Any]:
    return {dest: said.value for dest, said in in_force(KNOWN, {}, environment or {}, file).items()}


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
some_presets = st.fixed_dictionaries({}, optional={"temp": st.floats(0, 9), "system": texts})


@given(
    st.sets(st.sampled_from(sorted(BY_DEST))),
    st.sets(st.sampled_from(sorted(BY_DEST))),
    st.dictionaries(texts, texts, max_size=3),
    st.dictionaries(texts, some_presets, max_size=3),
    texts,
)
def test_what_it_prints_says_the_same_as_the_sources_did(
    in_file: set[str], variables: set[str], keys: dict[str, str], presets: dict[str, Any], system: str
):
    said = {dest: CHANGED[dest] for dest in in_file} | {"system": system.replace("\0", "")}
    file = SettingsFile(Path("/x/config.toml"), said, keys, {
        name: {dest: value for dest, value in preset.items() if "\0" not in str(value)}
        for name, preset in presets.items()
    })  # fmt: skip
    environment = {BY_DEST[dest].variable: as_word(CHANGED[dest]) for dest in variables}
    values = in_force(KNOWN, {}, environment, file)
    again = read_back(as_toml(KNOWN, values, file, Path("/x")))
    assert values_of(again) == values_of(file, environment)
    assert (again.keys, again.presets) == (file.keys, file.presets)


def test_the_template_changes_nothing_and_names_every_setting():
    file = read_back(template(KNOWN))
    assert (file.values, file.keys, file.presets) == ({}, {}, {})
    for setting in KNOWN:
        assert f"# {setting.key} = " in template(KNOWN)
        assert setting.help in template(KNOWN)


def test_the_template_without_its_marks_is_the_built_in_settings():
    lines = [line.removeprefix("# ") for line in template(KNOWN).splitlines()]
    said = [
        line
        for line in lines
        if line in TABLE_HEADS
        or (line.split()[1:2] == ["="] and line.split()[2].strip('"') not in PLACEHOLDERS)
    ]
    file = read_back("\n".join(said[: said.index("[keys]")]))
    assert len(file.values) >= 15
    assert values_of(file) == values_of(SettingsFile())


PLACEHOLDERS = {setting.option.metavar for setting in KNOWN}
TABLE_HEADS = {f"[{setting.table}]" for setting in KNOWN} | {"[keys]"}


def test_each_value_is_printed_with_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config('[answers]\ntemp = 0.5\ntop-k = 3\n[keys]\nstop = "f9"\n[presets.calm]\ntemp = 0.25\n')
    monkeypatch.setenv("SPECCHAT_TOP_K", "5")
    done = specchat("config", "--seed", 7)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "temp = 0.5 # config.toml" in lines
    assert "top-k = 5 # SPECCHAT_TOP_K" in lines
    assert "seed = 7 # flag" in lines
    assert "top-p = 0.95 # built in" in lines
    assert "# max-tokens # built in: until it ends or the context is full" in lines
    assert {"[keys]", 'stop = "f9"', "[presets.calm]", "temp = 0.25"} < set(lines)


def test_a_relative_path_of_a_flag_is_printed_whole(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "specchat.tui.entry", "config", "-m", "q4.gguf"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f'target = "{tmp_path / "q4.gguf"}"' in done.stdout


def test_json_has_values_and_sources(monkeypatch: pytest.MonkeyPatch):
    path = config("[drafting]\nstrict = true\n[presets.calm]\ntop-k = 2\n")
    told = json.loads(specchat("config", "--json", "--no-strict", "--temp", 0.5).stdout)
    assert told["file"] == str(path)
    assert told["drafting"]["strict"] == {"value": False, "source": "flag"}
    assert told["answers"]["temp"] == {"value": 0.5, "source": "flag"}
    assert told["models"]["target"] == {"value": None, "source": "built in"}
    assert told["presets"] == {"calm": {"top-k": 2}}


def test_the_path_is_printed_also_where_the_file_is_broken(tmp_path: Path):
    path = config("[")
    assert specchat("config", "--path").stdout == f"{path}\n"
    assert specchat("config", "--path", "--config", tmp_path / "x.toml").stdout == f"{tmp_path / 'x.toml'}\n"
    assert specchat("config", "--path", "--no-config").returncode == 2


def test_init_writes_the_template_once():
    done = specchat("config", "--init")
    assert (done.returncode, done.stdout) == (0, f"{default_path()}\n")
    assert default_path().read_text() == template(KNOWN)
    default_path().write_text("# mine\n")
    again = specchat("config", "--init")
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (2, "", 1)
    assert default_path().read_text() == "# mine\n"


@pytest.mark.parametrize("command", [["config"], ["run", "-m", "x.gguf", "-p", "x"], ["-m", "x.gguf"]])
def test_a_fault_in_the_file_or_a_variable_is_one_line_and_exit_code_two(
    command: list[str], monkeypatch: pytest.MonkeyPatch
):
    config("[answers]\ntemp = -1\n")
    done = specchat(*command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "answers.temp" in done.stderr
    monkeypatch.setenv("SPECCHAT_TEMP", "warm")
    done = specchat(*command, "--no-config")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "SPECCHAT_TEMP" in done.stderr


def test_a_variable_that_sets_nothing_is_told_on_stderr(monkeypatch: pytest.MonkeyPatch):
    assert unknown_variables(
        KNOWN, {"SPECCHAT_TEMPS": "1", "SPECCHAT_CONFIG": "x", "SPECCHAT_TEMP": "1"}
    ) == ["SPECCHAT_TEMPS sets nothing; did you mean SPECCHAT_TEMP?"]
    monkeypatch.setenv("SPECCHAT_ZZZZ", "1")
    done = specchat("config")
    assert (done.returncode, done.stderr) == (0, "specchat config: SPECCHAT_ZZZZ sets nothing\n")


def test_run_takes_its_model_and_answers_from_the_file(tiny_pair: TinyPair):
    folder = os.path.relpath(tiny_pair.target.parent, default_path().parent)
    config(
        f'[models]\ntarget = "{folder}/{tiny_pair.target.name}"\nthreads = 1\n'
        "[answers]\nmax-tokens = 3\ntemp = 0\n[drafting]\nspeculate = 'off'\n"
    )
    told = json.loads(specchat("run", "-p", "hello", "--json").stdout)
    assert (told["completion_tokens"], told["stats"]["drafted"]) == (3, 0)
    told = json.loads(specchat("run", "-p", "hello", "--json", "-n", 2).stdout)
    assert told["completion_tokens"] == 2
    alone = specchat("run", "-p", "hello", "--no-config")
    assert (alone.returncode, alone.stderr.count("\n")) == (2, 1)
    assert "--target" in alone.stderr


def test_the_demos_answer_is_not_the_settings_business():
    config("[models]\ntarget = '/nowhere.gguf'\n[answers]\nmax-tokens = 1\ntemp = 'hot'\n")
    told = json.loads(specchat("demo", "-p", "Say hello.", "-n", 4, "--json").stdout)
    assert told["completion_tokens"] > 1


def test_settings_are_read_without_screen_or_engine():
    config("[answers]\ntemp = 0.5\n[presets.x]\ntemp = 1\n")
    code = (
        "import sys; from specchat.tui.entry import main; main()\n"
        "heavy = {'textual', 'llama_cpp', 'numpy', 'gguf', 'jinja2', 'rich', 'multiprocessing'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, "config"], stdout=subprocess.DEVNULL, check=True)


def test_all_settings_are_the_same_each_time():
    assert [setting.key for setting in all_settings()] == [setting.key for setting in KNOWN]


def test_the_example_in_the_readme_is_a_settings_file():
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
    file = read_back(readme.split("```toml\n")[1].split("```")[0])
    assert file.values["temp"] == 0.7
    assert file.presets["careful"]["temp"] == 0.2
