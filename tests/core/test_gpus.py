"""Cards beside their peers: swings and jitter tell nothing, a leak and a shard error are told in time."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson
import pytest

from tests.core.gpu_fleet import Extra, Fleet, alarms, sample, watch
from verlwatch.core import steps
from verlwatch.core._sources import Sources
from verlwatch.core.cards import Cards
from verlwatch.core.types import NOBODY, Chunk, Diagnosis, Event, Origin, Samples

DATA = Path(__file__).parents[1] / "data"
ALL_RANKS = DATA / "verl-0.4.1.allranks-debug.nodedup.driver.log.gz"
ONSET = 30


def leaking(card: int, rate: float = 1.1, *, onset: int = ONSET, most: int = 20, by_steps: bool = True) -> Extra:
    """GB that one card holds besides: ``rate`` a step from ``onset`` on."""
    began: dict[str, float] = {}

    def more(number: int, at: float, step: int) -> float:
        if number != card or step < onset:
            return 0.0
        grown = step - onset + 1 if by_steps else (at - began.setdefault("at", at)) / 60.0
        return rate * min(most, grown)

    return more


def first_alarm(fleet: Fleet, count: int) -> tuple[int, list[Diagnosis]]:
    """The step at whose end people are first told, and of what."""
    for step, _, found in watch(fleet, count):
        if told := alarms(found):
            return step, told
    return -1, []


# ------------------------------------------------------------------------------------------------ nothing is wrong
@pytest.mark.parametrize(
    "fleet",
    [
        Fleet(seed=1),
        Fleet(seed=2, hosts=8, gpus=8),
        Fleet(seed=3, steady=True, gen_share=0.8),
        Fleet(seed=4, step_s=20.0),
        Fleet(seed=5, step_s=10.0),
        Fleet(seed=6, gen_share=0.15, varying_gb=5.0),
        Fleet(seed=7, hosts=2, lost=0.05, skew_s=0.004),
        Fleet(seed=8, gpus=2, noise_gb=0.5),
    ],
    ids=["plain", "64 cards", "steady lateness", "steps of 20 s", "of 10 s", "short gen", "lossy", "two cards"],
)
def test_swings_and_jitter_tell_nothing(fleet: Fleet) -> None:
    count = 40 if fleet.hosts < 8 else 12
    assert [d.title for _, _, found in watch(fleet, count) for d in alarms(found)] == []


class Pools(Fleet):
    """Two cards of eight are a critic's: other memory, that moves at other times."""

    def _sample(self, card: int, at: float, used: float, step: int) -> Event:
        return super()._sample(card, at, 20.0 + 25.0 * (at % 70 > 40) if card >= 6 else used, step)


def test_a_pool_with_other_memory_is_a_group_of_its_own() -> None:
    *_, (_, cards, _) = watch(Pools(seed=1), 25)
    assert sorted(len(group) for group in cards.members().values()) == [2, 6]
    assert [d.title for _, _, found in watch(Pools(seed=2), 25) for d in alarms(found)] == []


def test_groups_can_be_configured_and_actors_part_them() -> None:
    critic = Fleet(seed=3, said=lambda card: {"actors": f"{card}:{'Critic' if card > 6 else 'WorkerDict'}"})
    critic.more = lambda card, at, step: 15.0 if card > 6 else 0.0
    assert [d.title for _, _, found in watch(critic, 20) for d in alarms(found)] == []
    named = Fleet(seed=4, more=lambda card, at, step: 15.0 if card > 6 else 0.0)
    *_, (_, cards, found) = watch(named, 20, Cards("run", groups=(("critic", ("*:7",)),)))
    assert alarms(found) == []
    assert {row["group"] for row in cards.table()} == {"critic", "7 cards"}


def test_other_groups_hold_from_the_reload_on_and_after_a_restart() -> None:
    critic = (("critic", ("*:7",)),)
    cards = Cards("run")
    leaking = Fleet(seed=4, more=lambda card, at, step: 15.0 if card > 6 and step > 10 else 0.0)
    found: dict[int, list[str]] = {}
    for step, _, said in watch(leaking, 40, cards):
        found[step] = [diagnosis.title for diagnosis in alarms(said)]
        if step == 20:
            assert found[20] != []
            assert cards.outcomes() == {}
            cards.tune(critic)
            assert list(cards.outcomes().values()) == [
                "rank 7 does other work than the cards that it was compared with"
            ]
    assert [step for step, titles in found.items() if titles and step > 20] == []
    assert {row["group"] for row in cards.table()} == {"critic", "7 cards"}
    again = Cards("run")
    again.restore(orjson.loads(orjson.dumps(cards.state())))
    again.tune(())
    assert {row["group"] for row in again.table()} == {"7 cards", None}, "it is placed with its next sample"


def test_what_is_no_event_of_gpus_moves_nothing() -> None:
    cards = Cards("run")
    before = cards.state()
    assert not cards.hear(Event(Origin("host", 0, 0, NOBODY, "host"), "host_memory", {"used_gb": 9.0}), 32, 5.0)
    assert cards.state() == before


def test_an_actor_in_common_keeps_cards_together() -> None:
    names = ("WorkerDict", "WorkerDict;vLLMHttpServer")
    fleet = Fleet(seed=3, said=lambda card: {"actors": ",".join(f"1:{n}" for n in names[card % 2].split(";"))})
    *_, (_, cards, _) = watch(fleet, 6)
    assert [len(group) for group in cards.members().values()] == [8]


# ------------------------------------------------------------------------------------------------ a leak
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by_steps", [True, False])
def test_a_leak_is_told_within_four_steps_with_card_rate_and_forecast(seed: int, by_steps: bool) -> None:
    fleet = Fleet(seed=seed, more=leaking(5, by_steps=by_steps))
    step, cards, found = next(seen for seen in watch(fleet, ONSET + 6) if alarms(seen[2]))
    (leak,) = alarms(found)
    assert leak.rule == "memory_offset_change"
    assert leak.subject == "memory rank 5"
    assert dict(leak.scope) == {"host": "node-0", "gpu": "5", "rank": "5"}
    assert step - ONSET + 1 <= 4
    assert abs(leak.onset - ONSET) <= 1
    (card,) = [card for card in cards.view(step, 0.0).cards if card.rank == "5"]
    growth = card.apart.growth if card.apart else None
    assert growth is not None
    assert growth.gb_per_step == pytest.approx(1.1, rel=0.15)
    free = 80.0 - 68.0 - 1.1 * (step - ONSET + 1)
    assert growth.full_in_steps == pytest.approx(free / 1.1, abs=2.0)
    assert f"since step {leak.onset}, growing 1" in leak.title
    assert "full in " in leak.title


def test_a_leak_among_sixty_four_cards_of_eight_hosts_is_told_with_its_host() -> None:
    step, (leak,) = first_alarm(Fleet(hosts=8, more=leaking(21, onset=12)), 16)
    assert step <= 15
    assert dict(leak.scope) == {"host": "node-2", "gpu": "5", "rank": "21"}


def test_what_has_stopped_growing_is_said_to_hold_more_and_not_to_grow() -> None:
    *_, (_, _, found) = watch(Fleet(more=leaking(5, most=8)), ONSET + 20)
    (held,) = alarms(found)
    assert held.after - held.before == pytest.approx(8 * 1.1, abs=0.3)
    assert "growing" not in held.title


def test_a_leak_that_is_over_ends_with_words_for_it() -> None:
    def more(card: int, _: float, step: int) -> float:
        return 1.1 * (step - ONSET + 1) if card == 5 and ONSET <= step < ONSET + 10 else 0.0

    words: dict[str, str] = {}
    open_at_last: list[Diagnosis] = []
    for _, cards, found in watch(Fleet(more=more), ONSET + 16):
        words |= cards.outcomes()
        open_at_last = alarms(found)
    assert open_at_last == []
    assert words["memory rank 5"].startswith("rank 5 holds what it did before, beside its peers again")


# ------------------------------------------------------------------------------------------------ a shard error
@pytest.mark.parametrize("seed", range(6))
def test_a_shard_error_is_told_within_three_samples(seed: int) -> None:
    fleet = Fleet(seed=seed, low_gb=28.0, more=lambda card, at, step: 17.0 if card == 3 else 0.0)
    cards, seen = Cards("run"), list[float]()
    told: list[Diagnosis] = []
    for step, _, events in fleet.steps(2):
        for event in events:
            cards.hear(event, step - 1, event.at or 0.0)
            seen += [event.at or 0.0] if event.at not in seen else []
            told = told or alarms(cards.diagnose(step - 1, event.at or 0.0))
            if told:
                break
        if told:
            break
    (shard,) = told
    assert shard.subject == "memory rank 3"
    assert len(seen) <= 4  # the first sample behind the third says that all of it has come
    assert shard.after - shard.before == pytest.approx(17.0, abs=1.0)


def test_a_jump_in_the_middle_of_a_run_is_a_change_since_its_step() -> None:
    step, (jump,) = first_alarm(Fleet(more=lambda card, at, step: 17.0 if card == 3 and step >= 20 else 0.0), 25)
    assert step == 20
    assert (jump.rule, jump.onset) == ("memory_offset_change", 20)


# ------------------------------------------------------------------------------------------------ samples as they come
def feed(cards: Cards, events: Sequence[Event], now: float = 0.0) -> None:
    for event in events:
        cards.hear(event, 1, now or event.at or 0.0)


def test_hosts_that_lag_and_samples_that_are_lost_leave_cards_comparable() -> None:
    cards = Cards("run")
    behind: list[list[Event]] = []
    for tick in range(30):
        at = 1000.0 + 10.0 * tick
        near = [sample("a", gpu, at, 30.0) for gpu in range(4) if (tick + gpu) % 7]
        behind.append([sample("b", gpu, at + 0.003, 45.0 if gpu == 2 else 30.0) for gpu in range(4)])
        feed(cards, near, now=at)
        if tick >= 3:
            feed(cards, behind[tick - 3], now=at)
    (found,) = alarms(cards.diagnose(1, 1300.0))
    assert dict(found.scope) == {"host": "b", "gpu": "2"}
    unknown = cards.late
    assert unknown <= 4 * 4 + 1  # before anybody knew of a second host, or of a fourth card
    feed(cards, [sample("a", 0, 1010.0, 70.0)], now=1300.0)
    assert cards.late == unknown + 1


def test_a_host_that_falls_silent_holds_up_nobody() -> None:
    cards = Cards("run")
    for tick in range(20):
        at = 1000.0 + 10.0 * tick
        feed(cards, [sample("a", gpu, at, 45.0 if gpu == 1 and tick > 8 else 30.0) for gpu in range(4)])
        if tick < 5:
            feed(cards, [sample("b", gpu, at, 30.0) for gpu in range(4)])
    assert [dict(d.scope)["gpu"] for d in alarms(cards.diagnose(1, 1200.0))] == ["1"]


def test_a_card_that_vanishes_is_missing_and_one_that_comes_back_is_not() -> None:
    cards = Cards("run")
    for tick in range(30):
        feed(cards, [sample("a", gpu, 1000.0 + 10.0 * tick, 30.0) for gpu in range(4) if gpu != 2 or tick < 10])
    (missing,) = alarms(cards.diagnose(1, 1300.0))
    assert (missing.rule, dict(missing.scope)) == ("gpu_missing", {"host": "a", "gpu": "2"})
    assert missing.severity == "critical"
    feed(cards, [sample("a", gpu, 1310.0, 30.0) for gpu in range(4)])
    assert alarms(cards.diagnose(1, 1310.0)) == []


def test_memory_that_is_not_told_is_unknown_and_never_zero() -> None:
    cards = Cards("run")
    for tick in range(10):
        feed(cards, [sample("a", gpu, 1000.0 + 10.0 * tick, 30.0 if gpu else None) for gpu in range(4)])
    assert alarms(cards.diagnose(1, 1100.0)) == []
    assert cards.table()[0]["used_gb"] is None


def test_while_a_checkpoint_is_gathered_nobody_is_told_of_rank_zero() -> None:
    cards = Cards("run")
    saving = Event(Origin("log", 0, 9, NOBODY, "checkpoint"), "checkpoint", {})
    for tick in range(12):
        if tick == 6:
            cards.hear(saving, 1, 1060.0)
        feed(
            cards, [sample("a", gpu, 1000.0 + 10.0 * tick, 60.0 if tick > 5 and not gpu else 30.0) for gpu in range(4)]
        )
    assert alarms(cards.diagnose(1, 1200.0)) == []


# ------------------------------------------------------------------------------------------------ state
def test_the_state_is_small_and_a_leak_goes_on_being_told_after_a_restart() -> None:
    fleet = Fleet(hosts=2, more=leaking(5))
    *_, (_, cards, found) = watch(fleet, ONSET + 4)
    kept = orjson.loads(orjson.dumps(cards.state()))
    assert max(len(orjson.dumps(row)) for row in kept["cards"]) <= 256
    again = Cards("run")
    again.restore(kept)
    for step, end, events in fleet.steps(3, first=ONSET + 5):
        for event in events:
            again.hear(event, step - 1, event.at or 0.0)
        again.stepped(step, end, fleet.seconds())
        (goes_on,) = alarms(again.diagnose(step, end))
        assert (goes_on.subject, goes_on.onset) == (alarms(found)[0].subject, alarms(found)[0].onset)
    assert "growing 1." in goes_on.title


def test_the_state_is_due_about_once_a_minute() -> None:
    cards = Cards("run")
    assert not cards.due(0.0)
    feed(cards, [sample("a", 0, 1000.0, 30.0)])
    assert [cards.due(at) for at in (1000.0, 1030.0, 1061.0, 1062.0)] == [True, False, True, False]


def test_another_attempt_learns_anew() -> None:
    fleet = Fleet(more=lambda card, at, step: 17.0 if card == 3 and 20 <= step < 24 else 0.0)
    for step, cards, found in watch(fleet, 23):
        last = alarms(found)
        if step == 23:
            cards.begin()
            assert alarms(cards.diagnose(-1, 0.0)) == []
    assert [d.subject for d in last] == ["memory rank 3"]


# ------------------------------------------------------------------------------------------------ logs
def pieces(paths: Mapping[str, bytes]) -> Iterator[tuple[str, int, bytes]]:
    """Files side by side, a piece of each in turn."""
    size, longest = 1 << 16, max(map(len, paths.values()))
    for offset in range(0, longest, size):
        for name, data in paths.items():
            if offset < len(data):
                yield name, offset, data[offset : offset + size]


def read(*names: Path) -> tuple[Cards, dict[int, list[str]]]:
    """The cards of a run after its logs, and what people are told at each step."""
    sources, cards, now, last = Sources(1 << 20), Cards("run"), 0.0, -1
    told: dict[int, list[str]] = {}
    for name, offset, data in pieces({str(path.with_suffix("")): gzip.decompress(path.read_bytes()) for path in names}):
        extracts, _ = sources.feed(Chunk(name, 1, offset, data, run="run"), now)
        for record in (record for extract in extracts for record in extract.records):
            if isinstance(record, Samples):
                seconds = steps.timings(record.values)
                if seconds and record.step > last:
                    last, now = record.step, now + seconds.get("step", 0.0)
                    cards.stepped(last, now, seconds)
            else:
                cards.hear(record, last, now)
            if cards.changed:
                told.setdefault(last, []).extend(d.title for d in alarms(cards.diagnose(last, now)))
    return cards, told


@pytest.mark.parametrize(
    "names", [[ALL_RANKS], sorted((DATA / "ray_session").glob("*.gz"))], ids=["all ranks", "worker files"]
)
def test_logs_of_every_rank_tell_the_rank_that_climbs_from_step_180(names: list[Path]) -> None:
    cards, told = read(*names)
    titles = [title for found in told.values() for title in found]
    assert titles
    assert all(title.startswith("rank 3 holds ") for title in titles)
    assert any("since step 18" in title and "GB a step, full in " in title for title in titles)
    (held,) = alarms(cards.diagnose(300, 1e6))
    assert 179 <= held.onset <= 182
    assert held.title.startswith("rank 3 holds 22.")
    assert cards.known_ranks == {10543: "0", 10544: "1", 10598: "2", 10596: "3"}


def test_worker_files_read_as_they_are_written_tell_the_rate() -> None:
    lines: dict[int, list[list[Event]]] = {}
    for path in sorted((DATA / "ray_session").glob("*.err.gz")):
        extracts, _ = Sources(1 << 20).feed(Chunk(path.stem, 1, 0, gzip.decompress(path.read_bytes()), run="run"), 0.0)
        for record in (record for extract in extracts for record in extract.records if isinstance(record, Event)):
            of_steps = lines.setdefault(record.origin.writer.pid, [[]])
            if record.attributes.get("head") == "update_actor Before update_actor":
                of_steps.append([])
            of_steps[-1].append(record)
    cards, first = Cards("run"), dict[int, str]()
    for step in range(1, 200):
        for of_steps in lines.values():
            for event in of_steps[step] if step < len(of_steps) else ():
                cards.hear(event, step - 1, 60.0 * step)
        cards.stepped(step, 60.0 * step, {"step": 60.0})
        for diagnosis in alarms(cards.diagnose(step, 60.0 * step)):
            first[step] = diagnosis.title
    assert 181 <= min(first) <= 183
    assert all(title.startswith("rank 3 holds ") for title in first.values())
    growth = [title.split("growing ")[1].split(" GB")[0] for step, title in first.items() if 183 <= step <= 195]
    assert [abs(float(rate) / 1.1 - 1) <= 0.15 for rate in growth[1:]] == [True] * 12


def test_a_log_of_rank_zero_alone_compares_nothing() -> None:
    cards, told = read(DATA / "verl-0.4.1.debug.driver.log.gz")
    assert not told
    assert not cards.can_compare
    assert "only one process prints its memory" in cards.not_compared
    assert "RAY_DEDUP_LOGS=0" in cards.not_compared


def test_a_line_of_several_gpus_tells_at_once_the_one_that_is_full() -> None:
    cards, told = read(DATA / "tutorial-forms.log.gz")
    ((title,),) = told.values()
    assert title.startswith("GPU 0 holds 48.2 GB while its peers hold 12.1 GB: 36.1 GB more than its peers")
    (row, *_) = cards.table()
    assert (row["gpu"], row["used_gb"], row["total_gb"], row["rank"]) == ("0", 48.2, 80.0, None)


def row(gpu: int, used: float, stamp: str = "", source: str = "node-1.csv") -> Event:
    """A row of nvidia-smi in a file."""
    said: dict[str, str | int | float] = {"gpu": gpu, "used_gb": used, "total_gb": 80.0}
    return Event(
        Origin(source, 1, 0, NOBODY, "nvidia_smi"), "gpu_sample", {**said, **({"timestamp": stamp} if stamp else {})}
    )


def test_rows_of_nvidia_smi_in_files_are_compared_by_their_times_or_their_order() -> None:
    stamped, plain = Cards("run"), Cards("run")
    for tick in range(8):
        for gpu in range(4):
            for host in ("node-1", "node-2"):
                used = 45.0 if (host, gpu) == ("node-2", 1) else 28.0
                stamp = f"2026/05/21 10:3{tick}:00.123"
                assert stamped.hear(row(gpu, used, stamp, f"/data/{host}.csv"), 1, 5.0)
            assert plain.hear(row(gpu, 45.0 if gpu == 1 else 28.0), 1, 5.0)
    assert [d.scope for d in alarms(stamped.diagnose(1, 5.0))] == [(("host", "node-2"), ("gpu", "1"))]
    assert [d.scope for d in alarms(plain.diagnose(1, 5.0))] == [(("host", "node-1"), ("gpu", "1"))]
    stamped.hear(sample("node-1", 0, 9e9, 30.0), 1, 9e9)
    assert len(stamped.cards) == 1  # whoever samples knows better
