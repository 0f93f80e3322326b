"""One configuration, from the command line and the environment, complete or not at all (decisions 8)."""

import contextlib
from dataclasses import FrozenInstanceError, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.config.config import Config, ConfigError
from deskwire.config.environment import CLIENT_VARIABLES
from deskwire.config.parsers import as_text
from deskwire.config.settings import SETTINGS, VARIABLES

SECRET = "correct horse battery staple, and more"
ENDINGS = ("_s", "_bytes", "_kib")


def refusal(environ: dict[str, str], **options: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        Config.load(environ, options)
    return caught.value


def test_every_setting_has_its_default_without_input() -> None:
    config = Config.load({}, {})
    assert config == Config()
    assert set(config.origin.values()) == {"default"}
    assert config.origin.keys() == SETTINGS.keys() == Config().origin.keys()


def test_an_option_beats_the_environment_which_beats_the_default() -> None:
    config = Config.load({"DESKWIRE_PORT": "1", "DESKWIRE_HOST": "::"}, {"port": 2, "demo": None})
    assert (config.port, config.host, config.demo) == (2, "::", True)
    assert (config.origin["port"], config.origin["host"]) == ("option", "environment")
    assert config.origin["demo"] == "default"


def test_an_option_may_be_text_or_already_a_value() -> None:
    for options in ({"data_dir": Path("x"), "demo": False}, {"data_dir": "x", "demo": "false"}):
        config = Config.load({}, options)
        assert (config.data_dir, config.demo) == (Path("x"), False)


def test_an_empty_variable_counts_as_not_set() -> None:
    config = Config.load({"DESKWIRE_PORT": "", "DESKWIRE_SECRET": ""}, {})
    assert (config.port, config.secret, config.origin["port"]) == (8080, None, "default")


def test_an_empty_option_is_a_mistake_and_not_a_default() -> None:
    assert refusal({}, data_dir="").problems == ("--data must be a path, not ''",)


def test_variables_of_other_programs_are_left_alone() -> None:
    assert Config.load({"PATH": "x", "PORT": "y", "deskwire_port": "z"}, {}) == Config()


def test_server_ignores_the_variables_of_other_commands_and_knows_their_names() -> None:
    environ = {
        "DESKWIRE_URL": "nonsense",
        "DESKWIRE_KEY": "sk_1",
        "DESKWIRE_API_KEY": "sk_1",
        "DESKWIRE_CACERT": "x",
    }
    assert CLIENT_VARIABLES.keys() == environ.keys()
    assert Config.load(environ, {}) == Config()
    (problem,) = refusal({"DESKWIRE_KEYS": "sk_1"}).problems
    assert problem == "DESKWIRE_KEYS is not a setting; did you mean DESKWIRE_KEY?"


def test_every_bad_variable_is_named_in_one_error() -> None:
    error = refusal(
        {"DESKWIRE_WEBHOOK_ALLOW": "10.0.0.1/8", "DESKWIRE_SECRET": "short", "DESKWIRE_PROT": "1"},
        port="x",
        log_level="loud",
    )
    assert len(error.problems) == 5
    for name in ("DESKWIRE_WEBHOOK_ALLOW", "DESKWIRE_SECRET", "DESKWIRE_PROT", "--port", "--log-level"):
        assert sum(problem.startswith(f"{name} ") for problem in error.problems) == 1
        assert name in error.message


def test_an_unknown_variable_is_answered_with_the_likely_name() -> None:
    assert refusal({"DESKWIRE_PROT": "1"}).problems == (
        "DESKWIRE_PROT is not a setting; did you mean DESKWIRE_PORT?",
    )
    assert "deskwire config" in refusal({"DESKWIRE_QQQQQQQQQQ": "1"}).problems[0]


def test_an_option_that_is_no_setting_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError, match="prot"):
        Config.load({}, {"prot": 1})


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        (
            {"DESKWIRE_ALLOW_PRIVATE_WEBHOOKS": "1", "DESKWIRE_WEBHOOK_ALLOW": "10.0.0.0/8"},
            {"DESKWIRE_WEBHOOK_ALLOW", "DESKWIRE_ALLOW_PRIVATE_WEBHOOKS"},
        ),
        ({"DESKWIRE_WEBHOOK_HORIZON_S": "43"}, {"DESKWIRE_WEBHOOK_HORIZON_S", "DESKWIRE_WEBHOOK_TIMEOUT_S"}),
        ({"DESKWIRE_WEBHOOK_MEMORY_DELIVERIES": "15"}, {"DESKWIRE_WEBHOOK_CONCURRENCY"}),
        ({"DESKWIRE_MODEL_NAME": "small-1"}, {"DESKWIRE_MODEL_URL", "DESKWIRE_MODEL_NAME"}),
        ({"DESKWIRE_MODEL_KEY": "sk-1"}, {"DESKWIRE_MODEL_KEY", "DESKWIRE_MODEL_URL"}),
        ({"DESKWIRE_EVENT_WINDOW_S": "7199"}, {"DESKWIRE_STREAM_RESUME_WINDOW_S", "DESKWIRE_EVENT_WINDOW_S"}),
    ],
)
def test_values_that_contradict_each_other_are_refused_by_name(
    environ: dict[str, str], named: set[str]
) -> None:
    (problem,) = refusal(environ).problems
    assert all(name in problem for name in named)


def test_values_at_the_edge_of_a_contradiction_are_accepted() -> None:
    environ = {
        "DESKWIRE_WEBHOOK_HORIZON_S": "44",  # 4 times 5 s, and 2 + 6 + 12 s and a fifth of it
        "DESKWIRE_WEBHOOK_MEMORY_DELIVERIES": "16",
        "DESKWIRE_EVENT_WINDOW_S": "7200",
    }
    assert Config.load(environ, {}).webhook_horizon_s == 44.0


def test_the_smallest_queue_of_the_writer_has_room_for_a_start() -> None:
    assert Config.load({"DESKWIRE_WRITER_QUEUE": "16"}, {}).writer_queue == 16
    (problem,) = refusal({"DESKWIRE_WRITER_QUEUE": "15"}).problems
    assert "DESKWIRE_WRITER_QUEUE" in problem


def test_a_bad_value_is_not_reported_as_a_contradiction_too() -> None:
    error = refusal({"DESKWIRE_WEBHOOK_ALLOW": "nonsense", "DESKWIRE_ALLOW_PRIVATE_WEBHOOKS": "1"})
    assert len(error.problems) == 1


def test_a_secret_is_in_no_error_and_no_representation() -> None:
    config = Config.load({"DESKWIRE_SECRET": SECRET}, {})
    assert config.secret == SECRET
    assert SECRET not in repr(config)
    assert SETTINGS["secret"].shown(config.secret) == "set"
    assert SETTINGS["secret"].shown(None) == "unset"
    assert "hunter2" not in refusal({"DESKWIRE_SECRET": "hunter2"}).message


def test_a_configuration_cannot_be_changed() -> None:
    config: Any = Config()
    with pytest.raises(FrozenInstanceError):
        config.port = 1
    with pytest.raises(TypeError):
        config.origin["port"] = "option"


def test_the_defaults_are_those_of_the_contract_and_the_decisions() -> None:
    config = Config()
    assert config.webhook_timeout_s == 5  # contract 6.4.1
    assert config.webhook_retry_after_s == (2, 6, 12)  # contract 6.4.2
    assert config.network_logs_limit_bytes == 2 * 1024**2  # contract 8
    assert config.body_limit_bytes == 1024**2  # decisions 8, as all that follow
    assert (config.idle_connection_s, config.mailbox_commands) == (120, 256)
    assert (config.event_window_s, config.delivery_log_s) == (7 * 86_400, 30 * 86_400)
    assert (config.retention_interval_s, config.stream_resume_window_s) == (600, 7_200)


@pytest.mark.parametrize("name", SETTINGS)
def test_parser_of_each_setting_accepts_its_default(name: str) -> None:
    each = SETTINGS[name]
    if each.default not in (None, ()):
        assert each.parse(as_text(each.default)) == each.default


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_a_variable_and_one_sentence(name: str) -> None:
    each = SETTINGS[name]
    assert each.variable == ("DESKWIRE_DATA" if name == "data_dir" else f"DESKWIRE_{name.upper()}")
    assert each.variable in VARIABLES
    assert each.meaning.endswith(".")
    assert "|" not in each.meaning + each.shown(each.default)


def test_names_of_durations_and_sizes_end_in_their_unit() -> None:
    for each in fields(Config):
        if each.type is float and each.name != "webhook_retry_jitter":
            assert each.name.endswith(ENDINGS)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "port": st.integers(0, 65_535),
            "body_timeout_s": st.floats(0.1, 3_600),
            "demo": st.booleans(),
            "log_format": st.sampled_from(["auto", "text", "json"]),
            "webhook_retry_after_s": st.tuples(*[st.floats(0, 900)] * 3),
            "webhook_allow": st.just((ip_network("10.0.0.0/8"), ip_network("fd00::/8"))),
            "secret": st.text(min_size=32),
            "metrics_token": st.text(min_size=32),
        },
    )
)
def test_shown_value_reads_back_as_the_same_value(values: dict[str, object]) -> None:
    environ = {SETTINGS[name].variable: as_text(value) for name, value in values.items()}
    config = Config.load(environ, {})
    assert {name: getattr(config, name) for name in values} == values
    assert all((config.origin[name] == "environment") == (name in values) for name in SETTINGS)


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES)), st.text()), st.text())
def test_any_text_gives_a_configuration_or_one_error(environ: dict[str, str], port: str) -> None:
    with contextlib.suppress(ConfigError):
        Config.load(environ, {"port": port})


@pytest.mark.parametrize("url", ["postgresql://u:hidden@db/x", "postgresql://u@db/x?password=hidden"])
def test_database_url_with_a_password_is_refused_only_on_the_command_line(url: str) -> None:
    secret = {"DESKWIRE_SECRET": "correct horse battery staple, and more"}
    with pytest.raises(ConfigError) as refused:
        Config.load(secret, {"database_url": url})
    assert "DESKWIRE_DATABASE_URL, PGPASSWORD or ~/.pgpass" in str(refused.value)
    assert "hidden" not in str(refused.value)
    assert Config.load({**secret, "DESKWIRE_DATABASE_URL": url}, {}).database_url == url
    assert Config.load(secret, {"database_url": "postgresql://u@db/x"}).database_url is not None
