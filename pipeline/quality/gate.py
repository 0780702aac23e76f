"""The gate: may this build replace the live catalog? Each question is one verdict; the first failed verdict stops the publish.

A verdict compares figures of the build with those of the live snapshot and with limits that an operator can set. Its message names the
figures and the remedy. build_figures.py computes the figures; pipeline/defs/quality_assets.py binds the verdicts to Dagster.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from catalog_store.platforms import INPUTS
from pipeline.dumps.staging.data_drift import DriftLimits, describe_losses, find_losses, is_short, list_settings
from pipeline.dumps.staging.staging_profile import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.quality.build_figures import Figures
    from pipeline.quality.code_loss import CodeLoss
    from pipeline.quality.id_drift import IdDrift

SLACK = 20
"""Growth in recordings or codes since yesterday that has no meaning yet, however small the catalog."""
ROUNDING = 1e-9
"""Slack for rates that only differ in the last bits of a float."""
_TWICE = ("mixed", "twice_on_a_release")
"""Has a limit of its own, which does not depend on the live snapshot."""
_WHOLE = {"mixed": ("rows", "recording"), "conflicts": ("rows", "isrc_owner")}


@dataclass(frozen=True)
class Limits:
    """The limits of change to the catalog by one build; see `pipeline.settings.Settings`."""

    shrink: float = 0.2
    precision: float = 0.98
    recall: float = 0.93
    golden_precision: float = 0.93
    golden_recall: float = 0.77
    fall: float = 0.002
    jump: float = 1.5
    move: float = 0.02
    loss: float = 0.1
    rows: float = 0.7
    twice: float = 0.0

    @property
    def may_shrink(self) -> bool:
        """Return whether the operator accepts a smaller catalog, and with it the loss of the records in the missing part."""
        # Otherwise one decision would need three settings: a catalog without a platform also lacks its values and its codes.
        return self.shrink >= 1 or self.loss >= 1 or self.rows <= 0


@dataclass(frozen=True)
class Verdict:
    """The answer to one question. `message` gives the reason of a refusal, or the values found in order."""

    name: str
    passed: bool
    message: str


QUESTIONS = {
    "catalog_did_not_shrink": "the new catalog is not much smaller than the live one (setting largest_shrink)",
    "golden_pairs_hold": "rates over the golden pairs (settings lowest_golden_precision, lowest_golden_recall, largest_fall)",
    "simulated_truth_holds": "the same against a simulated world's truth, when the dumps carry one (lowest_precision, lowest_recall)",
    "no_jump_of_mixed_recordings": "signs of two recordings under one id did not become much more frequent (setting largest_jump)",
    "releases_list_recordings_once": "no recording holds two tracks of one release that nothing strong joins (setting largest_twice)",
    "no_jump_of_isrc_conflicts": "contested codes did not become much more frequent (setting largest_jump)",
    "platforms_keep_their_values": "rows per staging table and values per column of each platform (settings lowest_rows, largest_loss)",
    "columns_keep_their_values": "values per column of each published table (setting largest_loss)",
    "codes_stay": "ISRCs, ISWCs and barcodes of the live snapshot are still there (setting largest_loss)",
    "ids_stay": "few records stand under another id than in the live snapshot (setting largest_move)",
}
"""Name of each verdict -> its question. The asset has a check for each."""


def judge_build(now: Figures, before: Figures, drift: IdDrift | None, limits: Limits, codes: Sequence[CodeLoss] = ()) -> list[Verdict]:
    """Return one verdict per question, in the order of QUESTIONS.

    When nothing is published, `before` and `codes` are empty and `drift` is None.
    """
    return [
        _judge_size(now, before, limits),
        _judge_golden_pairs(now, before, limits),
        _judge_truth(now, before, limits),
        _judge_jump("no_jump_of_mixed_recordings", "mixed", now, before, limits),
        _judge_twice(now, limits),
        _judge_jump("no_jump_of_isrc_conflicts", "conflicts", now, before, limits),
        _judge_platforms(now, before, limits),
        _judge_columns(now, before, limits),
        _judge_codes(codes, limits),
        _judge_moves(drift, limits),
    ]


def _judge_size(now: Figures, before: Figures, limits: Limits) -> Verdict:
    rows, were = int(now["rows", "recording"]), int(before.get(("rows", "recording"), 0))
    missing = were * (1 - limits.shrink) - rows
    if missing <= 0:
        return Verdict("catalog_did_not_shrink", passed=True, message=f"{rows:,} recordings, {were:,} in the live snapshot")
    return Verdict(
        "catalog_did_not_shrink",
        passed=False,
        message=f"the build has {rows:,} recordings, the live snapshot {were:,}: at most {limits.shrink:.0%} may be missing. Look for the "
        "platform that lost rows (sources in the report); if the build is right, build once with CATALOG_LARGEST_SHRINK=1",
    )


def _judge_golden_pairs(now: Figures, before: Figures, limits: Limits) -> Verdict:
    """Compare the pairs that both builds know. The lowest rates alone judge a pair that is new in the file."""
    failed_before = {name for (topic, name), right in before.items() if topic == "golden_pair" and not right}
    # Pairs are compared one by one. A rate would also fall when a hard pair is added to the file, and stay when two changes cancel out.
    known = {name for topic, name in before if topic == "golden_pair"}
    wrong = sorted(name for (topic, name), right in now.items() if topic == "golden_pair" and not right)
    newly = [name for name in wrong if name in known - failed_before]
    falls = list(_iterate_falls("golden", now, {}, limits, (limits.golden_precision, limits.golden_recall)))
    if newly and len(newly) > limits.fall * now["golden", "pairs"]:
        falls.append(f"the live snapshot's build had these pairs right, and this build has them wrong: {', '.join(newly)}")
    if not falls:
        return Verdict("golden_pairs_hold", passed=True, message=f"{_format_rates('golden', now)}; wrong: {', '.join(wrong) or 'none'}")
    return Verdict(
        "golden_pairs_hold",
        passed=False,
        message=f"{'; '.join(falls)}. All wrong pairs: {', '.join(wrong) or 'none'}. The dumps cannot cause this: undo the change of keys, "
        "guards or pairs; if a pair is judged wrongly, correct it in pipeline/linkage/golden; to publish anyway, build once with "
        "CATALOG_LARGEST_FALL=1 (and CATALOG_LOWEST_GOLDEN_PRECISION or CATALOG_LOWEST_GOLDEN_RECALL)",
    )


def _judge_truth(now: Figures, before: Figures, limits: Limits) -> Verdict:
    # Only a simulated world has a truth; dumps of platforms pass.
    if ("truth", "precision") not in now:
        return Verdict("simulated_truth_holds", passed=True, message="the dumps carry no truth")
    falls = list(_iterate_falls("truth", now, before, limits, (limits.precision, limits.recall)))
    if not falls:
        return Verdict("simulated_truth_holds", passed=True, message=_format_rates("truth", now))
    return Verdict(
        "simulated_truth_holds",
        passed=False,
        message=f"{'; '.join(falls)}. `python -m pipeline evaluate` names the platforms; undo the change of keys or guards, or, if the "
        "simulated world has more errors than the last, build once with CATALOG_LARGEST_FALL=1 (and CATALOG_LOWEST_PRECISION or "
        "CATALOG_LOWEST_RECALL)",
    )


def _iterate_falls(topic: str, now: Figures, before: Figures, limits: Limits, floors: tuple[float, float]) -> Iterator[str]:
    """Yield a message for each rate that fell; `floors` of precision and recall."""
    # Another night of a small world may be three standard errors lower by chance. The golden pairs are fixed, so they get no such slack.
    for name, floor in zip(("precision", "recall"), floors, strict=True):
        value, was = now[topic, name], before.get((topic, name), 0.0)
        # Three standard errors of a share `was` over this many pairs (binomial distribution).
        chance = 3 * sqrt(was * (1 - was) / before[topic, "true_pairs"]) if before.get((topic, "true_pairs")) else 0.0
        if value < floor - ROUNDING:
            yield f"{topic} {name} {value:.4f} is below {floor:.4f}"
        elif value < was - limits.fall - chance - ROUNDING:
            yield f"{topic} {name} fell from {was:.4f} to {value:.4f}"


def _format_rates(topic: str, figures: Figures) -> str:
    return f"precision {figures[topic, 'precision']:.4f}, recall {figures[topic, 'recall']:.4f}"


def _judge_jump(name: str, topic: str, now: Figures, before: Figures, limits: Limits) -> Verdict:
    """Check that each figure of the topic grew at most by the factor `jump`, the catalog's size taken into account, SLACK aside."""
    # A catalog that doubles may have twice the signs, and SLACK lets a jump from 1 to 3 pass. A live snapshot without golden pairs was
    # published without figures: there is nothing to compare with.
    whole = _WHOLE[topic]
    growth = now.get(whole, 0.0) / before[whole] if before.get(whole) else 1.0
    found = {figure: value for (of, figure), value in sorted(now.items()) if of == topic and (of, figure) != _TWICE}
    jumps = [
        f"{figure} {before.get((topic, figure), 0.0):,.0f} -> {value:,.0f}"
        for figure, value in found.items()
        if ("golden", "pairs") in before and value > before.get((topic, figure), 0.0) * growth * limits.jump + SLACK
    ]
    if not jumps:
        counts = ", ".join(f"{figure} {value:,.0f}" for figure, value in found.items()) or "none"
        return Verdict(name, passed=True, message=counts)
    return Verdict(
        name,
        passed=False,
        message=f"{', '.join(jumps)} against the live snapshot. Look at the examples in the report. Either one platform delivered wrong "
        "codes or durations (keep the live snapshot and tell the platform), or a guard is switched off (undo that). If the build is right, "
        "build once with CATALOG_LARGEST_JUMP=1000",
    )


def _judge_twice(now: Figures, limits: Limits) -> Verdict:
    name, found = "releases_list_recordings_once", now.get(_TWICE, 0.0)
    if found <= now["rows", "recording"] * limits.twice:
        return Verdict(name, passed=True, message=f"{found:,.0f} recordings hold two tracks of one release")
    return Verdict(
        name,
        passed=False,
        message=f"{found:,.0f} recordings hold two tracks of one release without a common code, at most {limits.twice:.2%} may. Linkage "
        "separates such tracks: undo the change of its rules (pipeline/linkage/release_mates.py), or confirm the pairs in the overrides; "
        "to publish anyway, build once with CATALOG_LARGEST_TWICE=1",
    )


def _judge_platforms(now: Figures, before: Figures, limits: Limits) -> Verdict:
    """Check each platform's dump against the live snapshot."""
    # Staging made the same comparison with the dump before. But an operator may have overruled it, or removed the staging it compares with.
    name = "platforms_keep_their_values"
    # An operator who lets a catalog shrink expects platforms to lose rows, so no loss of theirs counts.
    drift = DriftLimits(0.0, 1.0) if limits.shrink >= 1 else DriftLimits(limits.rows, limits.loss)
    were, are = _collect_profiles(before), _collect_profiles(now)
    found = {platform: find_losses(were[platform], are.get(platform, Profile()), drift) for platform in INPUTS if platform in were}
    lost = {platform: lacks for platform, lacks in found.items() if lacks}
    if not lost:
        return Verdict(name, passed=True, message=f"{len(are)} platforms compared with {len(were)} of the live snapshot")
    return Verdict(
        name,
        passed=False,
        message=f"{'; '.join(f'{platform}: {describe_losses(lacks)}' for platform, lacks in lost.items())} against the live snapshot. The "
        "platform may have renamed columns or left out files, or an adapter reads the dump in another way. Compare the dump with "
        "docs/reference/formats, mark it broken or undo the change; if the build is right, build once with "
        f"{list_settings([loss for lacks in lost.values() for loss in lacks])}",
    )


def _collect_profiles(figures: Figures) -> dict[str, Profile]:
    """Return the figures of staging by platform."""
    found: dict[str, Profile] = {}
    for (topic, name), value in figures.items():
        if topic in ("staged", "filled"):
            platform, _, what = name.partition(".")
            profile = found.setdefault(platform, Profile())
            (profile.rows if topic == "staged" else profile.filled)[what] = int(value)
    return found


def _judge_columns(now: Figures, before: Figures, limits: Limits) -> Verdict:
    name, lost = "columns_keep_their_values", []
    for (topic, column), share in sorted(before.items()):
        rows, were = (figures.get(("rows", column.partition(".")[0]), 0.0) for figures in (now, before))
        # A column that this version of the program no longer has cannot have lost its values.
        if topic != "nulls" or not were or ("nulls", column) not in now:
            continue
        # The loss of whole rows is judged elsewhere. So the values of before are scaled down to the rows of now.
        filled, was = rows * (1 - now["nulls", column]), were * (1 - share)
        if is_short(filled, was * min(1.0, rows / were), 1 - limits.loss):
            lost.append(
                f"{column} {was:,.0f} -> {filled:,.0f} values (empty in {share:.1%} of the rows before, {now['nulls', column]:.1%} now)"
            )
    if not lost or limits.may_shrink:
        return Verdict(name, passed=True, message=f"lost values: {', '.join(lost) or 'none'}")
    return Verdict(
        name,
        passed=False,
        message=f"{', '.join(lost)} against the live snapshot: at most {limits.loss:.0%} may be lost. Look for the platform that gave "
        "them (empty values and sources in the report) or undo the change of code or rules; if the build is right, build once with "
        "CATALOG_LARGEST_LOSS=1",
    )


def _judge_codes(codes: Sequence[CodeLoss], limits: Limits) -> Verdict:
    counts = ", ".join(f"{loss.lost:,} of {loss.were:,} {loss.kind}s gone" for loss in codes) or "nothing is published yet"
    lost = [loss for loss in codes if is_short(loss.were - loss.lost, loss.were, 1 - limits.loss)]
    if not lost or limits.may_shrink:
        return Verdict("codes_stay", passed=True, message=counts)
    return Verdict(
        "codes_stay",
        passed=False,
        message=f"{counts}: at most {limits.loss:.0%} of a kind may be lost, because callers look up by these codes. Look for the "
        "platform that gave them (sources and empty values in the report); if the build is right, build once with CATALOG_LARGEST_LOSS=1",
    )


def _judge_moves(drift: IdDrift | None, limits: Limits) -> Verdict:
    if drift is None:
        return Verdict("ids_stay", passed=True, message="nothing is published yet")
    # Two percent of a small catalog are a handful of records: SLACK lets those pass.
    counts = f"{drift.moved:,} of {drift.records:,} records under another id ({drift.merged:,} ids merged, {drift.split:,} split off)"
    if drift.moved <= max(SLACK, limits.move * drift.records):
        return Verdict("ids_stay", passed=True, message=counts)
    return Verdict(
        "ids_stay",
        passed=False,
        message=f"{counts}: at most {limits.move:.1%} may move, because callers hold these ids. Check whether the registry of the live "
        "snapshot was read, whether a platform renumbered its records, and whether a change of linkage was meant to merge so much. If the "
        "build is right, build once with CATALOG_LARGEST_MOVE=1",
    )
