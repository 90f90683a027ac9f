"""Every phase of a job's life is reached from what was seen, and only the steps of the table are taken."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.lifecycle.decide import TRANSITIONS, decide
from include.lifecycle.model import (
    AskToStop,
    Decision,
    Deploy,
    Desired,
    Ended,
    GiveUp,
    Heartbeat,
    Incident,
    JobPhase,
    Kill,
    NoteFailure,
    Observation,
    Process,
    Wait,
    Wish,
)
from spark_jobs.settings import JobSpec, RestartSection
from tests.harness import make_spec

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPEC = make_spec(
    supervise={"enabled": True, "stall_after": "30 seconds", "stop_within": "10 seconds"},
    restart={"strategy": "failure_rate", "max_failures": 3, "interval": "5 minutes", "delay": "10 seconds"},
)
MINUTE = timedelta(minutes=1)
LIVING = Observation(
    NOW,
    Desired(),
    Process(7, 70, NOW - 10 * MINUTE, SPEC.fingerprint),
    is_alive=True,
    heartbeat=Heartbeat(NOW - timedelta(seconds=1), 5, None),
)
DEAD = replace(LIVING, is_alive=False)


def verdict(seen: Observation, spec: JobSpec = SPEC) -> Decision:
    found = decide(spec, spec.fingerprint, seen)
    assert type(found.action).__name__ in TRANSITIONS[found.phase], found
    return found


def failures(*seconds_ago: float, process: str = "7-70") -> tuple[Incident, ...]:
    return tuple(Incident(NOW - timedelta(seconds=ago), "failure", "it fell", process) for ago in seconds_ago)


def with_restart(**section: object) -> JobSpec:
    return SPEC.model_copy(update={"restart": RestartSection.model_validate(section)})


def test_a_job_that_never_ran_is_deployed() -> None:
    assert verdict(Observation(NOW, Desired())) == Decision(JobPhase.CREATED, Deploy("first start"))


def test_an_idle_source_is_healthy() -> None:
    assert verdict(LIVING) == Decision(JobPhase.RUNNING, Wait("the source has nothing new"))


def test_a_batch_in_hand_is_healthy_until_the_stall_time() -> None:
    held = replace(LIVING, heartbeat=Heartbeat(NOW, 5, NOW - timedelta(seconds=29)))
    assert verdict(held).phase is JobPhase.RUNNING
    hung = replace(LIVING, heartbeat=Heartbeat(NOW, 5, NOW - timedelta(seconds=31)))
    assert verdict(hung) == Decision(JobPhase.STALLED, Kill("one batch in hand for 31 s", is_failure=True))


def test_a_heart_that_stopped_is_a_stall() -> None:
    frozen = replace(LIVING, heartbeat=Heartbeat(NOW - timedelta(seconds=31), 5, None))
    assert verdict(frozen).action == Kill("no heartbeat for 31 s", is_failure=True)


@pytest.mark.parametrize(("age", "phase"), [(29, JobPhase.STARTING), (31, JobPhase.STALLED)])
def test_a_driver_without_a_heartbeat_is_starting_until_the_stall_time(age: int, phase: JobPhase) -> None:
    process = Process(7, 70, NOW - timedelta(seconds=age), SPEC.fingerprint)
    assert verdict(replace(LIVING, process=process, heartbeat=None)).phase is phase


@pytest.mark.parametrize("state", [Wish.SUSPENDED, Wish.CANCELLED])
def test_a_living_job_that_is_not_wanted_is_asked_once_and_then_killed(state: Wish) -> None:
    unwanted = replace(LIVING, desired=Desired(state, "night"))
    assert verdict(unwanted) == Decision(JobPhase.STOPPING, AskToStop(f"{state}: night"))
    asked = replace(unwanted, stop_asked_at=NOW - timedelta(seconds=9))
    assert isinstance(verdict(asked).action, Wait)
    overdue = replace(unwanted, stop_asked_at=NOW - timedelta(seconds=11))
    assert isinstance(verdict(overdue).action, Kill)
    assert not verdict(overdue).action.is_failure  # type: ignore[union-attr]
    assert verdict(replace(asked, is_alive=False)).phase == str(state)


def test_a_changed_spec_rolls_the_job() -> None:
    changed = replace(LIVING, process=replace(LIVING.process, fingerprint="old"))  # type: ignore[type-var]
    assert verdict(changed).action == AskToStop("the spec has changed")
    stopped = replace(changed, is_alive=False, stop_asked_at=NOW, ended=Ended(NOW, 0, "stopped as asked", False))
    assert verdict(stopped) == Decision(JobPhase.RESTARTING, Deploy("stopped as asked"))


def test_a_spec_that_cannot_continue_leaves_the_job_running_and_says_why() -> None:
    refused = replace(LIVING, refusal="time.zone was …")
    assert verdict(refused) == Decision(JobPhase.RUNNING, Wait("time.zone was …"))


def test_a_restart_replaces_only_drivers_from_before_it() -> None:
    asked = replace(LIVING, desired=Desired(restart_before=NOW - 20 * MINUTE))
    assert verdict(asked).phase is JobPhase.RUNNING
    assert verdict(replace(LIVING, desired=Desired(restart_before=NOW))).phase is JobPhase.STOPPING


def test_a_driver_that_used_up_its_input_has_finished() -> None:
    assert verdict(replace(DEAD, ended=Ended(NOW, 0, "the input is used up", True))).phase is JobPhase.FINISHED


def test_a_finished_job_starts_again_when_a_person_asks_later() -> None:
    finished = replace(DEAD, ended=Ended(NOW - MINUTE, 0, "the input is used up", True))
    assert verdict(replace(finished, desired=Desired(since=NOW - 2 * MINUTE))).phase is JobPhase.FINISHED
    assert isinstance(verdict(replace(finished, desired=Desired(since=NOW))).action, Deploy)


def test_a_driver_that_was_ended_from_outside_starts_again() -> None:
    terminated = replace(DEAD, ended=Ended(NOW, 0, "stopped as asked", False))
    assert isinstance(verdict(terminated).action, Deploy)


def test_an_end_that_nobody_asked_for_is_noted_then_waits_then_starts_again() -> None:
    silent = verdict(DEAD)
    assert silent.phase is JobPhase.FAILING
    assert isinstance(silent.action, NoteFailure)
    assert "no word" in silent.action.reason
    told = replace(DEAD, ended=Ended(NOW, 1, "a file vanished", False))
    assert verdict(told).action == NoteFailure("a file vanished")
    noted = verdict(replace(DEAD, incidents=failures(4)))
    assert noted == Decision(JobPhase.RESTARTING, Wait("starts again in 6 s; it fell"))
    assert isinstance(verdict(replace(DEAD, incidents=failures(11))).action, Deploy)


def test_the_fourth_failure_in_a_strategy_of_three_gives_up_until_a_person_resumes() -> None:
    three = (*failures(90, 60, process="old"), *failures(11))
    assert isinstance(verdict(replace(DEAD, incidents=three)).action, Deploy)
    four = (*failures(120, process="old"), *three)
    given_up = verdict(replace(DEAD, incidents=four))
    assert given_up.action == GiveUp("4 failures within 0:05:00; failure_rate allows 3; last: it fell")
    noted = (*four, Incident(NOW, "gave up", "4 failures"))
    assert verdict(replace(DEAD, incidents=noted)) == Decision(JobPhase.FAILED, Wait("4 failures"))
    cleared = (*noted, Incident(NOW, "cleared", "fixed"))
    assert verdict(replace(DEAD, incidents=cleared)).action == Deploy("a person cleared the failures")


def test_old_failures_do_not_count_in_a_rate() -> None:
    long_ago = (*failures(4_000, 3_900, 3_800, process="old"), *failures(11))
    assert isinstance(verdict(replace(DEAD, incidents=long_ago)).action, Deploy)


def test_a_fixed_delay_counts_attempts_and_none_allows_none() -> None:
    fixed = with_restart(strategy="fixed_delay", attempts=2, delay="1 second")
    assert isinstance(verdict(replace(DEAD, incidents=failures(900, 2)), fixed).action, Deploy)
    assert isinstance(verdict(replace(DEAD, incidents=failures(9_000, 900, 2)), fixed).action, GiveUp)
    assert isinstance(verdict(replace(DEAD, incidents=failures(900)), with_restart(strategy="none")).action, GiveUp)


@pytest.mark.parametrize(
    ("ages", "delay"),
    [((0,), 1), ((5, 0), 2), ((9, 5, 0), 4), ((60, 50, 40, 30, 20, 10, 0), 10), ((8_000, 7_900, 0), 1)],
)
def test_an_exponential_delay_grows_to_its_end_and_begins_anew_after_a_good_while(
    ages: tuple[float, ...], delay: int
) -> None:
    growing = with_restart(
        strategy="exponential", initial="1 second", max="10 seconds", multiplier=2, reset_after="1 hour"
    )
    seen = replace(DEAD, incidents=failures(*ages))
    assert isinstance(verdict(seen, growing).action, Wait)
    almost = replace(seen, now=NOW + timedelta(seconds=delay - 0.1))
    assert isinstance(verdict(almost, growing).action, Wait)
    assert isinstance(verdict(replace(seen, now=NOW + timedelta(seconds=delay)), growing).action, Deploy)


def test_the_documents_show_the_table_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lifecycle.md").read_text(encoding="utf-8")
    rows = page.split("| phase | action |")[1].split("\n\n")[0].splitlines()
    shown = [line for line in rows if line.startswith("| `")]
    wanted = [
        f"| `{phase}` | {action} | {', '.join(f'`{after}`' for after in sorted(following))} |"
        for phase, actions in TRANSITIONS.items()
        for action, following in actions.items()
    ]
    assert shown == wanted
