"""Flags beat the environment, the environment the file, the file the built-in value."""

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app import toml_text
from specchat.app.decoding.settings import Sampling
from specchat.app.options import GGUF, Number, add_chat_settings, options_of
from specchat.app.parsers import chat_parser
from specchat.app.presets import preset_of, save_preset, with_preset
from specchat.app.requests import AnswerOptions, Drafting
from specchat.app.settings import (
    BUILT_IN,
    FLAG,
    Setting,
    SettingsError,
    SettingsFile,
    all_settings,
    chat_settings,
    in_force,
)
from specchat.app.settings_file import chosen_path, default_path, read_settings

KNOWN = all_settings()
BY_DEST = {setting.dest: setting for setting in KNOWN}
NOTHING = SettingsFile()
NUMBERS = {
    "ctx_size": 4096, "threads": 3, "gpu_layers": 7, "gpu_layers_draft": 8, "max_tokens": 9, "temp": 0.25,
    "top_k": 11, "top_p": 0.5, "min_p": 0.125, "repeat_penalty": 1.5, "seed": 12, "draft_max": 13,
    "draft_p_min": 0.75,
}  # fmt: skip


def some_value(setting: Setting) -> Any:
    """A value that is not the built-in one."""
    if setting.option.choices is not None:
        return next(choice for choice in setting.option.choices if choice != setting.built_in)
    if isinstance(setting.built_in, bool):
        return not setting.built_in
    if setting.dest == "model_folders":
        return ["/a folder", "/b"]
    return NUMBERS.get(setting.dest, f"/some/{setting.key}")


def as_word(value: Any) -> str:
    if isinstance(value, list):
        return os.pathsep.join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def written(folder: Path, text: str, name: str = "config.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def what_is_wrong(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read_settings(written(folder, text), KNOWN)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(str(folder / "config.toml"))
    return message.removeprefix(f"{folder / 'config.toml'}: ")


def flag_words(setting: Setting, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{'' if value else 'no-'}{setting.key}"]
    return [setting.option.option_strings[-1], str(value)]


def test_every_option_of_models_answers_and_drafting_is_a_setting():
    no_settings = {"help", "debug", "version", "config", "no_config", "go_on"}
    options = {action.dest for _, action in options_of(chat_parser())}
    chat = argparse.ArgumentParser(add_help=False)
    add_chat_settings(chat)
    assert options - no_settings | {action.dest for _, action in options_of(chat)} == set(BY_DEST)
    assert len(KNOWN) == len(BY_DEST)


def test_keys_and_variables_are_named_as_the_flags_are():
    assert BY_DEST["ctx_size"].key == "ctx-size"
    assert BY_DEST["ctx_size"].variable == "SPECCHAT_CTX_SIZE"
    assert {setting.table for setting in KNOWN} == {"models", "answers", "drafting", "chat"}
    for setting in KNOWN:
        assert f"--{setting.key}" in setting.option.option_strings


@pytest.mark.parametrize("setting", KNOWN, ids=lambda setting: setting.key)
def test_every_setting_comes_back_from_the_file_and_from_its_variable(setting: Setting, tmp_path: Path):
    value = some_value(setting)
    text = f"[{setting.table}]\n{setting.key} = {toml_text.literal(value)}\n"
    file = read_settings(written(tmp_path, text), KNOWN)
    from_file = in_force(KNOWN, {}, {}, file)[setting.dest]
    from_variable = in_force(KNOWN, {}, {setting.variable: as_word(value)}, NOTHING)[setting.dest]
    assert (from_file.value, from_file.source) == (value, "config.toml")
    assert (from_variable.value, from_variable.source) == (value, setting.variable)
    assert type(from_file.value) is type(value)


@pytest.mark.parametrize(
    "setting", [setting for setting in KNOWN if setting.table != "chat"], ids=lambda setting: setting.key
)
def test_a_flag_says_the_same_as_the_file(setting: Setting, tmp_path: Path):
    value = some_value(setting)
    options = chat_parser().parse_args(flag_words(setting, value))
    text = f"[{setting.table}]\n{setting.key} = {toml_text.literal(value)}\n"
    file = read_settings(written(tmp_path, text), KNOWN)
    assert getattr(options, setting.dest) == file.values[setting.dest]


subsets = st.sets(st.sampled_from(sorted(BY_DEST)))


@given(subsets, subsets, subsets)
def test_a_flag_goes_before_a_variable_before_the_file_before_the_built_in(
    flags: set[str], variables: set[str], in_file: set[str]
):
    # Only a variable is judged here: what a flag and a file say was judged when it was read.
    file = SettingsFile(Path("/x/config.toml"), {dest: f"file {dest}" for dest in in_file})
    environment = {BY_DEST[dest].variable: as_word(some_value(BY_DEST[dest])) for dest in variables}
    said = in_force(KNOWN, {dest: f"flag {dest}" for dest in flags}, environment, file)
    for dest, setting in BY_DEST.items():
        expected = (setting.built_in, BUILT_IN)
        if dest in in_file:
            expected = (f"file {dest}", "config.toml")
        if dest in variables:
            expected = (some_value(setting), setting.variable)
        if dest in flags:
            expected = (f"flag {dest}", FLAG)
        assert (said[dest].value, said[dest].source) == expected


def test_an_empty_variable_is_as_good_as_none_and_an_empty_text_takes_a_value_away(tmp_path: Path):
    file = read_settings(written(tmp_path, '[models]\ndraft = "d.gguf"\n[answers]\nsystem = "x"\n'), KNOWN)
    said = in_force(KNOWN, {"draft": ""}, {"SPECCHAT_SYSTEM": "", "SPECCHAT_SEED": ""}, file)
    assert (said["draft"].value, said["draft"].source) == (None, FLAG)
    assert (said["system"].value, said["seed"].value) == ("x", None)


numbers = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(allow_nan=True, allow_infinity=True), st.booleans(), st.text()
)


@given(st.sampled_from([setting for setting in KNOWN if isinstance(setting.option.type, Number)]), numbers)
def test_a_number_in_the_file_is_judged_as_on_the_command_line(setting: Setting, value: Any):
    kind = setting.option.type
    assert isinstance(kind, Number)
    try:
        expected = kind(str(value)) if not isinstance(value, str | bool) else None
    except argparse.ArgumentTypeError:
        expected = None
    try:
        found = setting.from_toml(value, Path("/"))
    except ValueError:
        found = None
    assert found == expected


@given(st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
), st.sampled_from(KNOWN))  # fmt: skip
def test_a_value_of_any_kind_is_taken_or_refused_in_words(value: Any, setting: Setting):
    try:
        setting.from_toml(value, Path("/"))
    except ValueError:
        assert toml_text.literal(value).isprintable()


@given(st.one_of(st.text(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.lists(st.text())))
def test_what_is_written_as_toml_reads_back_and_is_printable(value: Any):
    line = f"{toml_text.key('a b', 'c')} = {toml_text.literal(value)}"
    assert line.isprintable()
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "[keys]\n" + f"x = {toml_text.literal(str(value))}\n")
        if not any("\ud800" <= character < "\ue000" for character in str(value)):
            assert read_settings(path, KNOWN).keys["x"] == str(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[answers]\ntemp = "warm"', 'answers.temp takes a number from 0 on, not "warm"'),
        ('[answers]\ntemp = "0.5"', 'answers.temp takes a number from 0 on, not "0.5"'),
        ("[answers]\ntemp = -1", "answers.temp takes a number from 0 on, not -1"),
        ("[answers]\ntemp = nan", "answers.temp takes a number from 0 on, not nan"),
        ("[answers]\ntop-k = 40.0", "answers.top-k takes a whole number from 0 on, not 40.0"),
        ("[answers]\ntop-k = true", "answers.top-k takes a whole number from 0 on, not true"),
        ("[answers]\nsystem = 3", "answers.system takes a text, not 3"),
        ('[drafting]\nspeculate = "on"', 'drafting.speculate takes "auto", "always", "off", not "on"'),
        ('[drafting]\nstrict = "yes"', 'drafting.strict takes true or false, not "yes"'),
        ("[chat]\nhistory = true", "chat.history takes a text, or false, not true"),
        ('[chat]\nmodel-folders = "x"', 'chat.model-folders takes a list of texts, not "x"'),
        ("[chat]\nmodel-folders = [1]", "chat.model-folders takes a list of texts, not [1]"),
        ('[models]\ntarget = "a\\u0000b"', 'models.target takes a text, not "a\\u0000b"'),
        ("[keys]\nstop = 3", "keys.stop takes a text, not 3"),
        ("answers = 3", "answers takes a table: [answers], not 3"),
        ("[presets]\nx = 3", "presets.x takes a table: [presets.x], not 3"),
        ("[presets.x]\ntop-p = 2", "presets.x.top-p takes a number from 0 to 1, not 2"),
        ("[answers]\ntmp = 1", "there is no setting answers.tmp; did you mean answers.temp?"),
        ("[models]\ntemp = 1", "there is no setting models.temp; did you mean answers.temp?"),
        ("temp = 1", "there is no setting temp; did you mean answers.temp?"),
        ("[models]\nctx_size = 1", "there is no setting models.ctx_size; did you mean models.ctx-size?"),
        ("[answer]\ntemp = 1", "there is no setting answer; did you mean answers?"),
        ("[presets.x]\ntarget = 'y'", "there is no setting presets.x.target; specchat config shows all"),
        ('["a\\u001b[2J"]', 'there is no setting "a\\u001b[2J"; specchat config shows all'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_the_key_and_what_is_allowed(tmp_path: Path, text: str, message: str):
    assert what_is_wrong(tmp_path, text) == message


@pytest.mark.parametrize(
    "content", [b"[answers", b"temp 3", b"\xff\xfe", b"x = " + b"[" * 5000, b"x = " + b"9" * 5000, b"\x00"]
)
def test_a_file_that_is_no_toml_is_said_in_one_line(tmp_path: Path, content: bytes):
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="is no TOML") as caught:
        read_settings(path, KNOWN)
    assert str(caught.value).isprintable()


def test_a_long_value_is_not_repeated_whole(tmp_path: Path):
    assert len(what_is_wrong(tmp_path, '[answers]\ntemp = "' + "x" * 9000 + '"')) < 200


def test_a_folder_or_a_missing_file_is_said(tmp_path: Path):
    with pytest.raises(SettingsError, match="does not exist"):
        read_settings(tmp_path / "none.toml", KNOWN)
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        read_settings(tmp_path, KNOWN)


def test_the_users_own_file_need_not_be_there():
    assert read_settings(default_path(), KNOWN).values == {}


def test_a_byte_order_mark_is_no_fault(tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xef\xbb\xbf[answers]\r\ntemp = 1\r\n")
    assert read_settings(path, KNOWN).values == {"temp": 1.0}


def test_paths_in_the_file_start_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/someone")
    (tmp_path / "there" / "own").mkdir(parents=True)
    (tmp_path / "there" / "own" / "x.gguf").touch()
    text = """
        [models]
        target = "q4.gguf"
        draft = "~/tiny.gguf"
        chat-template = "../t.jinja"
        log-file = "/var/log"
        [chat]
        model-folders = ["m", "~/models"]
        history = "talks.db"
    """
    values = read_settings(written(tmp_path, text), KNOWN).values
    assert values["target"] == str(tmp_path / "q4.gguf")
    assert values["draft"] == "/home/someone/tiny.gguf"
    assert values["chat_template"] == str(tmp_path / "../t.jinja")
    assert values["log_file"] == "/var/log"
    assert values["model_folders"] == [str(tmp_path / "m"), "/home/someone/models"]
    assert values["history"] == str(tmp_path / "talks.db")
    target = BY_DEST["target"]
    assert target.option.metavar == GGUF
    for name in ("repository/x.gguf", "repository:x.gguf", "repository:Q4_K_M", "repository"):
        assert target.from_toml(f"owner/{name}", tmp_path) == f"owner/{name}"
    assert target.from_toml("models/x.gguf", tmp_path) == str(tmp_path / "models/x.gguf")
    assert target.from_toml("../other/x.gguf", tmp_path) == str(tmp_path / "../other/x.gguf")
    assert target.from_toml("there/own/x.gguf", tmp_path) == str(tmp_path / "there/own/x.gguf")


def test_which_file_is_read(tmp_path: Path):
    environment = {"SPECCHAT_CONFIG": "/from/variable.toml"}
    assert chosen_path("/a.toml", False, environment) == Path("/a.toml")
    assert chosen_path(None, False, environment) == Path("/from/variable.toml")
    assert chosen_path(None, False, {}) == default_path()
    assert chosen_path(None, True, environment) is None
    assert tmp_path in default_path().parents


def test_a_variable_says_yes_and_no_and_is_judged():
    for word, value in {"1": True, "on": True, "True": True, "no": False, "0": False}.items():
        assert in_force(KNOWN, {}, {"SPECCHAT_STRICT": word}, NOTHING)["strict"].value is value
    assert in_force(KNOWN, {}, {"SPECCHAT_HISTORY": "off"}, NOTHING)["history"].value is False
    for variable, word in {
        "SPECCHAT_STRICT": "maybe",
        "SPECCHAT_TEMP": "warm",
        "SPECCHAT_DRAFTER": "x",
    }.items():
        with pytest.raises(SettingsError, match=f'{variable} takes .*, not "{word}"'):
            in_force(KNOWN, {}, {variable: word}, NOTHING)


def test_the_chat_gets_its_settings_keys_and_presets(tmp_path: Path):
    text = """
        [chat]
        theme = "light"
        panel = false
        history = false
        [keys]
        stop = "ctrl+x,escape"
        [presets."my own"]
        temp = 0.5
        strict = true
    """
    file = read_settings(written(tmp_path, text), KNOWN)
    chat = chat_settings(in_force(KNOWN, {}, {"SPECCHAT_EDITOR": "vi -n"}, file), file)
    assert (chat.theme, chat.panel, chat.history, chat.editor) == ("light", False, False, "vi -n")
    assert chat.keys == {"stop": "ctrl+x,escape"}
    assert chat.presets == {"my own": {"temp": 0.5, "strict": True}}
    assert chat.presets_path == tmp_path / "presets.toml"
    bare = chat_settings(in_force(KNOWN, {}, {}, NOTHING), NOTHING)
    assert (bare.theme, bare.panel, bare.history, bare.presets_path) == ("dark", True, None, None)


ANSWER = AnswerOptions(
    Sampling(temperature=0.3, top_k=5, top_p=0.5, min_p=0.25, repeat_penalty=1.25, seed=7),
    Drafting("always", "lookup", draft_max=3, draft_p_min=0.25, draft_sampling="argmax", strict=True),
    max_tokens=99,
)


def test_a_saved_preset_brings_every_option_back(tmp_path: Path):
    config = written(tmp_path, "# mine\n[answers]\ntemp = 1\n")
    save_preset(tmp_path / "presets.toml", 'a "name"', preset_of(ANSWER, 'be "brief"\n'), KNOWN)
    found = read_settings(config, KNOWN).presets['a "name"']
    assert with_preset(AnswerOptions(), found) == ANSWER
    assert found["system"] == 'be "brief"\n'
    assert config.read_text() == "# mine\n[answers]\ntemp = 1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "presets.toml"]


def test_a_preset_changes_only_what_it_says():
    changed = with_preset(ANSWER, {"temp": 0.0, "speculate": "off"})
    assert changed.sampling == replace(ANSWER.sampling, temperature=0.0)
    assert changed.drafting == replace(ANSWER.drafting, speculate="off")
    assert changed.max_tokens == 99
    assert with_preset(ANSWER, {}) == ANSWER


def test_a_preset_of_the_same_name_is_replaced_and_goes_before_that_of_the_settings_file(tmp_path: Path):
    config = written(tmp_path, "[presets.x]\ntemp = 1\n[presets.y]\ntop-k = 3\n")
    path = tmp_path / "presets.toml"
    save_preset(path, "other", {"seed": 3}, KNOWN)
    for temp in (0.25, 0.5):
        save_preset(path, "x", {"temp": temp}, KNOWN)
    assert read_settings(config, KNOWN).presets == {
        "x": {"temp": 0.5}, "y": {"top_k": 3}, "other": {"seed": 3},
    }  # fmt: skip


def test_a_preset_that_cannot_be_kept_is_said(tmp_path: Path):
    with pytest.raises(SettingsError, match="needs a name"):
        save_preset(tmp_path / "presets.toml", " ", {}, KNOWN)
    with pytest.raises(SettingsError, match="cannot be"):
        save_preset(Path("/proc/nowhere/presets.toml"), "x", {}, KNOWN)
    broken = written(tmp_path, "[presets", "presets.toml")
    with pytest.raises(SettingsError, match="is no TOML"):
        save_preset(broken, "x", {}, KNOWN)
    assert broken.read_text() == "[presets"


def test_a_broken_presets_file_is_named(tmp_path: Path):
    written(tmp_path, "[presets.x]\ntemp = 'hot'\n", "presets.toml")
    with pytest.raises(SettingsError, match=r"presets\.toml: presets\.x\.temp takes a number"):
        read_settings(written(tmp_path, ""), KNOWN)
