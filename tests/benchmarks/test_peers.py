"""The comparison with peers: the rounds that count, the factors, and the tables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.generator import carried_out
from benchmarks.job import Call, Job, Outcome
from benchmarks.peers import environment, process_tree
from benchmarks.peers.peer import (
    APPEND,
    HITS,
    READ,
    WORD,
    Asked,
    Facts,
    NotInstalled,
    Running,
    bodies_of,
)
from benchmarks.peers.rounds import Round, Rounds, factor, in_turn, judged, take, thrown_away
from benchmarks.peers.tables import Compared, State, sections
from benchmarks.rendering import END, PEERS_BEGIN, render_peers
from benchmarks.report import save
from benchmarks.scale import QUICK

from tests.benchmarks.serving import served


def a_round(rate: float) -> Round:
    return Round(rate, 1.0, 2.0, 3.0, 0.5, 0.0, 0.1)


def answered(*failures: str) -> Outcome:
    return Outcome(rate=10.0, answers=20, latencies=[1.0, 2.0, 9.0], failures=list(failures), busy=0.2)


def test_a_round_has_its_times_and_the_processor_time_for_each_answer() -> None:
    assert judged(answered(), 40.0, 10.0) == Round(10.0, 2.0, 9.0, 9.0, 2.0, 0.5, 0.2)


def test_one_refused_answer_is_enough_for_a_round_not_to_count() -> None:
    found = judged(answered("HTTP/1.1 500"), 40.0, 10.0)
    assert found == "1 of 20 answers: HTTP/1.1 500"


def test_a_round_without_an_answer_in_time_does_not_count() -> None:
    assert judged(Outcome(), 0.0, 0.0) == "no answer came in time"


def test_a_generator_that_fails_makes_a_round_that_does_not_count_and_says_why() -> None:
    def fails(_: Job) -> Outcome:
        raise TimeoutError("the server does not answer")

    running = Running(1, [], [], {})
    assert take(running, Job(1), fails) == "TimeoutError: the server does not answer"


def test_peers_take_turns_in_alternating_order_and_bad_rounds_are_kept_apart() -> None:
    order = list[str]()

    def result(name: str, rate: float) -> Round | str:
        order.append(name)
        return "refused" if name == "b" and len(order) > 2 else a_round(rate)

    found = in_turn(2, {"a": lambda: result("a", 8.0), "b": lambda: result("b", 2.0)})
    assert order == ["a", "b", "b", "a"]
    assert found["a"].taken == [a_round(8.0), a_round(8.0)]
    assert found["b"].taken == [a_round(2.0), None]
    assert found["b"].reasons == ["refused"]
    assert thrown_away(list(found.values())) == (1, 4)


def test_a_factor_is_the_median_of_pairs_of_rounds_that_both_count() -> None:
    ours = Rounds([a_round(100.0), a_round(300.0), a_round(90.0), a_round(50.0)])
    theirs = Rounds([a_round(10.0), None, a_round(3.0), a_round(2.5)])
    assert factor(ours, theirs) == 20.0  # of 10, 30 and 20
    assert factor(ours, Rounds([None] * 4)) is None


def test_the_median_of_rounds_leaves_out_those_that_do_not_count() -> None:
    assert Rounds([a_round(1.0), None, a_round(3.0), a_round(8.0)]).middle() == a_round(3.0)
    assert Rounds([None]).middle() is None


def compared(theirs: Rounds) -> Compared:
    facts = {name: Facts(f"{name} 1.0", "yes", "much", "some") for name in ("Deskwire", "other")}
    ours = Rounds([a_round(100.0)])
    states = {name: State([1.5], (70.0, 0.0), (90.0, 20.0)) for name in facts}
    states["Deskwire"].ages = {"webhook": [2.0, 3.0, 40.0]}
    return Compared(
        facts, {(APPEND, 16): {"Deskwire": ours, "other": theirs}, (READ, 16): {"Deskwire": ours}}, states
    )


def test_the_tables_show_factors_missing_operations_and_peers_that_are_not_there() -> None:
    figures, state, about = sections(QUICK, [compared(Rounds([a_round(5.0)]))], {"RT": "no such package"})
    assert figures.columns == ("operation", "connections", "Deskwire", "other")
    assert list(figures.rows) == [
        (APPEND, 16, "100; 1.0/2.0/3.0; 0.50", "5.00; 1.0/2.0/3.0; 0.50 **20x**"),
        (READ, 16, "100; 1.0/2.0/3.0; 0.50", "-"),
    ]
    assert "thrown away: 0 of 3" in figures.note
    assert ("after these loads, MB", "90+20", "90+20") in state.rows
    assert ("webhook, ms", "3.0 / 40", "none") in state.rows
    assert ("RT", "not measured", "no such package", "-") in about.rows


def test_the_table_says_which_rounds_were_thrown_away_and_why() -> None:
    figures = sections(QUICK, [compared(Rounds([None], ["1 of 9 answers: HTTP/1.1 500"]))], {})[0]
    assert figures.rows[0][3] == "-"
    assert (
        "thrown away: 1 of 3. other, append a message, 16 connections: 1 of 9 answers: HTTP/1.1 500."
        in figures.note
    )


def test_rendering_replaces_the_tables_of_peers_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Before\n\n{PEERS_BEGIN}\nold\n{END}\n\n## Behind\n")
    found = {
        "cores": 2,
        "cpu": "a processor",
        "system": "Linux",
        "python": "3.11",
        "versions": {},
        "sqlite": "3",
        "load before": 0.31,
    }
    saved = save(tmp_path / "results", found, {}, sections(QUICK, [compared(Rounds([a_round(5.0)]))], {}), [])
    assert render_peers(saved, page) == [page]
    text = page.read_text()
    assert text.startswith("# Before\n\n")
    assert text.endswith("\n\n## Behind\n")
    assert "old" not in text
    assert "load average before was 0.3" in text
    assert "| append a message | 16 | 100; 1.0/2.0/3.0; 0.50 | 5.00; 1.0/2.0/3.0; 0.50 **20x** |" in text


def test_the_word_of_the_search_is_in_a_hundred_conversations() -> None:
    for count in (100, 250, 2_000):
        texts = bodies_of(count, word=True)
        assert len(texts) == count
        assert sum(WORD in text for text in texts) == HITS
    assert not any(WORD in text for text in bodies_of(16, word=False))


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server in a process of its own that answers each request with 200 and `{"a": [1, 1]}`."""
    code = (
        "from http.server import BaseHTTPRequestHandler as Handler, ThreadingHTTPServer\n"
        "class H(Handler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def log_message(self, *_): pass\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.send_header('Content-Length', '13'); self.end_headers()\n"
        "        self.wfile.write(b'{\"a\": [1, 1]}')\n"
        "s = ThreadingHTTPServer(('127.0.0.1', 0), H); print(s.server_port, flush=True); s.serve_forever()"
    )
    with served(code) as port:
        yield port


@pytest.mark.parametrize(("times", "failures"), [(2, 0), (3, 6)])
def test_answers_with_another_content_than_expected_fail_and_end_the_run(
    port: int, times: int, failures: int
) -> None:
    asked = Asked([Call("GET", "/")], "1", times)
    job = Running(port, [], [], {READ: asked}).job(READ, connections=1, count=6)
    outcome = carried_out(job)
    assert len(outcome.failures) == failures
    assert all(each.startswith("2 times 1, not 3") for each in outcome.failures)


def test_a_drained_run_counts_the_answers_after_its_time_with_their_time(port: int) -> None:
    outcome = carried_out(Job(port, ["/"], "GET", connections=8, for_s=1e-6, drained=True))
    assert len(outcome.latencies) == outcome.answers >= 8
    assert outcome.rate <= outcome.answers / (outcome.latencies[0] / 1e3)
    assert len(carried_out(Job(port, ["/"], "GET", connections=8, for_s=1e-6)).latencies) == 4


def test_a_run_by_time_ends_if_each_answer_is_wrong(port: int) -> None:
    outcome = carried_out(Job(port, ["/"], "GET", holds="1", times=3, for_s=0.05))
    assert outcome.failures
    assert not outcome.latencies


def test_the_processes_of_a_server_count_with_all_their_children() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    assert len(process_tree.tree([process.pid])) == 2
    both, child = (
        process_tree.pss_mb([process.pid]),
        process_tree.pss_mb(process_tree.tree([process.pid])[1:]),
    )
    assert both > child > 1
    assert process_tree.cpu_s([process.pid]) >= 0
    process_tree.wait_until_quiet([process.pid])
    process.communicate("\n")
    assert process_tree.pss_mb([process.pid]) == 0


def test_a_server_that_never_becomes_quiet_is_reported() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with pytest.raises(TimeoutError, match="is busy 1 s after"):
            process_tree.wait_until_quiet([process.pid], give_up_s=1.0)
    finally:
        process.kill()
        process.wait()


def test_a_peer_that_can_not_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peers.txt").write_text("no-such-system==1.0 --hash=sha256:" + "0" * 64 + "\n")
    monkeypatch.setattr(environment, "REQUIREMENTS", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    program = tmp_path / "packages/bin/python"
    with pytest.raises(NotInstalled, match=r"no-such-system==1\.0"):
        environment.python(program.parents[1], "peers.txt")
    assert not (program.parents[1] / "installed").exists()


def test_an_environment_is_made_once_for_the_same_requirements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = tmp_path / "peers.txt"
    requirements.write_text("")
    monkeypatch.setattr(environment, "REQUIREMENTS", tmp_path)
    program = environment.python(tmp_path / "packages", "peers.txt")
    mark = tmp_path / "packages/mark"
    mark.touch()
    assert environment.python(tmp_path / "packages", "peers.txt") == program
    assert mark.exists()
    requirements.write_text("# another\n")
    environment.python(tmp_path / "packages", "peers.txt")
    assert not mark.exists()
